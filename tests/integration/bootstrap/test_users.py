"""MongoDB's users are made, and made right again, through the command as the Job runs it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from hascheduler.embedded.children import Child, start_child
from tests.integration.bootstrap.deployment import Deployment, done, hascheduler
from tests.integration.bootstrap.members import Client, Members, as_user
from tests.manifests.making import make_secrets

_AUTHENTICATION_FAILED = 18


@pytest.fixture
async def fresh(members: Members, tmp_path: Path) -> Deployment:
    """A server that runs, and its secrets; nothing else has been done."""
    made = Deployment(tmp_path / "secrets", members.address())
    make_secrets(made.secrets, TLS="no", MEMBERS=made.member)
    await members.start(made.member, key=made.read("hascheduler-mongodb", "keyfile"))
    return made


async def _gets_in(deployment: Deployment, user: str) -> bool:
    database = "admin" if user == "admin" else "hascheduler"
    password = deployment.read("hascheduler-mongodb", f"{user}-password")
    async with as_user(deployment.member, user=user, password=password, database=database) as client:
        try:
            await client[database].command("ping")
        except OperationFailure as error:
            if error.code == _AUTHENTICATION_FAILED:
                return False
            raise
    return True


async def _stored(deployment: Deployment) -> Sequence[Mapping[str, Any]]:
    async with Client(deployment.admin_uri) as client:
        users = await client.admin.system.users.find().sort("_id").to_list()
        return users + await client.admin.system.roles.find().sort("_id").to_list()


def _change(deployment: Deployment, user: str, password: str) -> None:
    (deployment.secrets / "hascheduler-mongodb" / f"{user}-password").write_text(password)


async def test_each_user_gets_in_with_its_password_and_a_second_run_writes_nothing(fresh: Deployment) -> None:
    first = await done(*fresh.bootstrap_arguments())
    assert '"scheduler":"created"' in first.err
    assert [await _gets_in(fresh, user) for user in ("scheduler", "processor", "admin")] == [True] * 3
    before = await _stored(fresh)
    again = await done(*fresh.bootstrap_arguments())
    assert '"scheduler":"unchanged","processor":"unchanged","admin":"unchanged"' in again.err
    assert await _stored(fresh) == before


async def test_a_changed_password_is_in_force_and_the_old_one_no_more(fresh: Deployment) -> None:
    await done(*fresh.bootstrap_arguments())
    old = fresh.read("hascheduler-mongodb", "processor-password")
    # With a line break, as an editor leaves it, and characters that a URI has to escape.
    _change(fresh, "processor", "new:/@ one\n")
    told = (await done(*fresh.bootstrap_arguments())).err
    assert '"scheduler":"unchanged","processor":"changed"' in told
    assert "new:" not in told
    for password, is_right in (("new:/@ one", True), (old, False)):
        _change(fresh, "processor", password)
        assert await _gets_in(fresh, "processor") is is_right


async def test_changed_rights_are_restored(fresh: Deployment) -> None:
    await done(*fresh.bootstrap_arguments())
    before = await _stored(fresh)
    async with Client(fresh.admin_uri) as client:
        ours = client.hascheduler
        more = {"resource": {"db": "hascheduler", "collection": "tokens"}, "actions": ["find"]}
        await ours.command("grantPrivilegesToRole", "processor", privileges=[more])
        await ours.command("grantRolesToUser", "scheduler", roles=["dbOwner"])
    assert await _stored(fresh) != before
    told = (await done(*fresh.bootstrap_arguments())).err
    assert '"scheduler":"changed","processor":"changed","admin":"unchanged"' in told

    def rights(stored: Sequence[Mapping[str, Any]]) -> list[tuple[object, object, object]]:
        return [(one["_id"], one["roles"], one.get("privileges")) for one in stored]

    assert rights(await _stored(fresh)) == rights(before)


async def test_the_users_get_their_rights_in_the_databases_of_all_shards(fresh: Deployment) -> None:
    await done(*fresh.bootstrap_arguments())
    told = (await done(*fresh.bootstrap_arguments(), HASCHEDULER_SHARDS="3")).err
    assert '"scheduler":"changed","processor":"changed","admin":"unchanged"' in told
    again = (await done(*fresh.bootstrap_arguments(), HASCHEDULER_SHARDS="3")).err
    assert '"scheduler":"unchanged","processor":"unchanged","admin":"unchanged"' in again
    password = fresh.read("hascheduler-mongodb", "scheduler-password")
    async with as_user(fresh.member, user="scheduler", password=password) as client:
        for database in ("hascheduler", "hascheduler-0001", "hascheduler-0002"):
            await client[database].jobs.insert_one({"_id": "j"})
        with pytest.raises(OperationFailure, match="not authorized"):
            await client["hascheduler-0003"].jobs.insert_one({"_id": "j"})
    password = fresh.read("hascheduler-mongodb", "processor-password")
    async with as_user(fresh.member, user="processor", password=password) as client:
        for database in ("hascheduler", "hascheduler-0001", "hascheduler-0002"):
            assert await client[database].jobs.find_one({"_id": "j"})
        assert await client["hascheduler"].routing.find_one({}) is None


async def test_a_wrong_key_ends_with_one_clear_line(fresh: Deployment) -> None:
    (fresh.secrets / "hascheduler-mongodb/keyfile").write_text("AnotherKeyAltogether")
    ended = await hascheduler(*fresh.bootstrap_arguments())
    assert ended.status == 2
    assert ended.err.splitlines()[-1] == (
        f"hascheduler: --keyfile: {fresh.member} does not take this key; expected the one that it was started with"
    )
    assert "AnotherKeyAltogether" not in ended.err


async def test_sigterm_ends_the_waiting(fresh: Deployment, members: Members) -> None:
    await members.stop(fresh.member)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hascheduler", *fresh.bootstrap_arguments(), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    assert b'"bootstrap_waiting"' in await asyncio.wait_for(process.stderr.readline(), 60)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 130
    assert await process.stderr.read() == b""


async def test_what_was_started_before_the_set_and_its_users_comes_through_by_itself(
    fresh: Deployment, tmp_path: Path
) -> None:
    over_mongodb = {"HASCHEDULER_TRANSPORT": "mongo", "HASCHEDULER_STARTUP_PATIENCE": "1m"}
    of_scheduler = {**fresh.settings("hascheduler-scheduler"), **over_mongodb}
    of_processor = {**fresh.settings("hascheduler-processor"), **over_mongodb}
    async with (
        _started(tmp_path / "replica", "serve", "--http-port", "0", **of_scheduler) as replica,
        _started(tmp_path / "worker", "processor", "hascheduler.handlers.log", **of_processor) as worker,
    ):
        for log in (replica.log, worker.log):
            await _said(log, "waiting_for_mongodb")
        await done(*fresh.bootstrap_arguments())
        await _said(replica.log, "mirror_complete")
        await _said(worker.log, "processor_registered")


@asynccontextmanager
async def _started(log: Path, *arguments: str, **variables: str) -> AsyncIterator[Child]:
    environment = {**os.environ, **variables, "HASCHEDULER_LOG_FORMAT": "json"}
    command = [sys.executable, "-m", "hascheduler", *arguments]
    child = await start_child(arguments[0], command, log, environment=environment)
    try:
        yield child
    finally:
        child.signal(signal.SIGKILL)
        await child.wait()


async def _said(log: Path, event: str) -> None:
    async with asyncio.timeout(60):
        while not (log.exists() and event in log.read_text()):  # noqa: ASYNC110, ASYNC240  # another's process sets no event
            await asyncio.sleep(0.05)
