"""Errors for a user without the rights, on a server with access control."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from hascheduler.embedded.children import free_port, start_child
from hascheduler.embedded.mongod import find_mongod
from hascheduler.errors import DatabaseUnfit
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.schema.migrate import migrate, prepare, require_readable
from tests.system.processes import eventually

_PATIENCE_S = 60


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[str]:
    """A replica set of one member, whose user ``admin`` may do everything."""
    key = tmp_path / "key"
    key.write_text("OneKeyForAllOfThem")
    key.chmod(0o400)
    data = tmp_path / "data"
    data.mkdir()
    host = f"127.0.0.1:{free_port()}"
    arguments = [
        *(find_mongod(), "--dbpath", str(data), "--port", host.rpartition(":")[2], "--bind_ip", "127.0.0.1"),
        *("--replSet", "rs0", "--keyFile", str(key), "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
    ]
    child = await start_child("mongod", arguments, tmp_path / "mongod.log", environment=os.environ)
    try:
        await asyncio.wait_for(_initiated(host), _PATIENCE_S)
        yield host
    finally:
        await child.stop()


async def _initiated(host: str) -> None:
    """From this machine a server without users lets the first one be made."""
    config = {"_id": "rs0", "members": [{"_id": 0, "host": host}]}
    async with AsyncMongoClient[dict[str, Any]](f"mongodb://{host}/?directConnection=true") as client:
        while True:
            try:
                await client.admin.command("replSetInitiate", config)
                break
            except PyMongoError:
                await asyncio.sleep(0.1)  # it is starting

        async def is_primary() -> bool:
            return bool((await client.admin.command("hello"))["isWritablePrimary"])

        await eventually(is_primary, "it is the primary")
        await client.admin.command("createUser", "admin", pwd="secret", roles=["root"])


async def _as(host: str, user: str) -> Database:
    client = connect(f"mongodb://{user}:secret@{host}/?replicaSet=rs0&authSource=admin")
    return open_database(client, "hascheduler")


async def _made(host: str, user: str, roles: list[dict[str, str]]) -> Database:
    admin = await _as(host, "admin")
    await admin.client.admin.command("createUser", user, pwd="secret", roles=roles)
    await admin.client.close()
    return await _as(host, user)


async def test_a_missing_right_is_named_at_once(host: str) -> None:
    of = {"db": "hascheduler"}
    no_rights = await _made(host, "nobody", [])
    for attempt in (migrate(no_rights, _silent), prepare(no_rights), require_readable(no_rights)):
        with pytest.raises(
            DatabaseUnfit, match=r"^read the schema version: this user of MongoDB has no right to that$"
        ):
            await attempt
    reader = await _made(host, "reader", [{"role": "read", **of}])
    await require_readable(reader)
    assert len((await migrate(reader, _silent, dry_run=True)).steps) > 30
    with pytest.raises(DatabaseUnfit, match=r"^create the collection definitions: this user"):
        await migrate(reader, _silent)
    writer = await _made(host, "writer", [{"role": "readWrite", **of}])
    assert (await migrate(writer, _silent)).after == 1
    assert (await migrate(reader, _silent)).steps == []
    for database in (no_rights, reader, writer):
        await database.client.close()


def _silent(*_: object) -> None:
    pass
