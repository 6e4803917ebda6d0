"""How commands end: the whole tree, however the attempt ends, and without waiting for those who escape."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import uvloop

from hascheduler.handlers import command as running
from hascheduler.handlers.command import ALLOW, CommandFailed, command
from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import child_process, load_handlers
from tests.unit.processor.ready_made import make_job
from tests.unit.processor.world import Stage, staged, until

# A shell that starts another one, which starts a third; all say who they are and then wait.
TREE = """
echo $$ >> "$1"
sh -c 'echo $$ >> "$1"; sleep 600 & echo $! >> "$1"; wait' sh "$1" &
wait
"""
DEAF_TREE = f"trap '' TERM\n{TREE}"
# On SIGTERM it says so in a file, takes its time, and ends with another file. Not a shell: dash may lose a signal.
HEEDFUL = """
import os, signal, sys, time
def clean(*_):
    open(sys.argv[2] + ".begun", "w").close()
    time.sleep(float(sys.argv[3]))
    open(sys.argv[2], "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, clean)
with open(sys.argv[1], "a") as book:
    print(os.getpid(), file=book)
while True:
    signal.pause()
"""


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, f"{sys.executable} -c, /bin/sh -c")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Where the processes of a test write their ids."""
    return tmp_path / "book"


def tree(book: Path, program: str = TREE, **payload: Any) -> dict[str, Any]:
    return {"argv": ["/bin/sh", "-c", program, "sh", str(book)], **payload}


def listed(book: Path) -> list[int]:
    return [int(line) for line in book.read_text().split()] if book.exists() else []


def living(book: Path) -> list[int]:
    """Those that still run; an orphan that waits to be reaped by init does not."""
    return [pid for pid in listed(book) if psutil.pid_exists(pid) and not _is_zombie(pid)]


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def our_zombies() -> list[int]:
    return [child.pid for child in psutil.Process().children() if _is_zombie(child.pid)]


def our_pipes() -> list[str]:
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return sorted(str(link.readlink()) for link in links if link.is_symlink() and str(link.readlink())[:5] == "pipe:")


async def grown(book: Path) -> None:
    await until(lambda: len(listed(book)) == 3)


async def cancel(stage: Stage, _: Path) -> None:
    stage.world.tell(MessageKind.CANCEL, "a")


async def drain(stage: Stage, _: Path) -> None:
    stage.processor.drain()


async def revoke(stage: Stage, _: Path) -> None:
    stage.world.jobs["a"].attempt = 2


async def fence(stage: Stage, book: Path) -> None:
    stage.world.down = True
    stage.clock.now_ms += 400
    await until(lambda: not living(book))
    stage.world.down = False


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (cancel, JobState.CANCELLED),
        (drain, JobState.PENDING),
        (revoke, JobState.RUNNING),
        (fence, JobState.PENDING),
    ],
)
@pytest.mark.parametrize("program", [TREE, DEAF_TREE], ids=["heeds", "deaf"])
async def test_however_the_attempt_is_taken_away_the_whole_tree_ends(
    monkeypatch: pytest.MonkeyPatch,
    book: Path,
    program: str,
    end: Callable[[Stage, Path], Awaitable[None]],
    state: JobState,
) -> None:
    monkeypatch.setattr(running, "GRACE_S", 0.3)
    async with staged(load_handlers(["hascheduler.handlers.command"]), drain_grace_ms=1) as stage:
        job = stage.world.dispatch("a", "command", tree(book, program))
        await grown(book)
        assert len(living(book)) == 3
        await end(stage, book)
        await until(lambda: not living(book))
        await until(lambda: job.state is state)
    await until(lambda: not our_zombies())


@pytest.mark.slow
async def test_the_grace_is_enough_to_clean_up_in(tmp_path: Path, book: Path) -> None:
    """Cleaning up takes longer than the hurried grace, and it is not the leader that does it: that ends at once."""
    cleaned = tmp_path / "cleaned"
    program = f"{sys.executable} -c '{HEEDFUL}' {book} {cleaned} 1 & wait"
    async with staged(load_handlers(["hascheduler.handlers.command"])) as stage:
        job = stage.world.dispatch("a", "command", {"argv": ["/bin/sh", "-c", program]})
        await until(lambda: len(listed(book)) == 1)
        stage.world.tell(MessageKind.CANCEL, "a")
        assert await job.ended() == AttemptOutcome(JobState.CANCELLED)
    assert cleaned.exists()
    await until(lambda: not living(book))  # its file is there a moment before it has gone


async def test_a_cancellation_at_any_moment_leaves_no_process_and_no_pipe(book: Path) -> None:
    await command(make_job(tree(book, ":")))
    pipes = our_pipes()
    for turns in range(8):
        task = asyncio.create_task(command(make_job(tree(book))))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    await until(lambda: not living(book))
    assert our_pipes() == pipes
    await until(lambda: not our_zombies())


async def test_what_a_command_leaves_running_ends_with_it(book: Path) -> None:
    program = 'sleep 600 & echo $! >> "$1"; echo said'
    result = await command(make_job(tree(book, program)))
    assert result == {"exit_code": 0, "stdout": "said\n", "stderr": "", "truncated": False}
    assert len(listed(book)) == 1
    await until(lambda: not living(book))


async def test_a_process_that_escapes_with_the_output_open_is_not_waited_for(book: Path) -> None:
    program = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    with open(sys.argv[1], "a") as book:
        print(os.getpid(), file=book)
    time.sleep(600)
while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
    time.sleep(0.01)
print("said")
"""
    try:
        result = await command(make_job({"argv": [sys.executable, "-c", program, str(book)]}))
        assert result["stdout"] == "said\n"
        assert len(living(book)) == 1
    finally:
        for pid in living(book):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_all_of_it_works_on_the_event_loop_of_the_processors_too(
    monkeypatch: pytest.MonkeyPatch, book: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "GRACE_S", 0.3)

    async def both() -> None:
        flood = "head -c 1000000 /dev/zero | tr '\\0' x"
        result = await command(make_job({"argv": ["/bin/sh", "-c", flood]}))
        assert (result["exit_code"], result["truncated"]) == (0, True)
        with pytest.raises(CommandFailed, match=r"^timed out after 2s$"):
            await command(make_job(tree(book, DEAF_TREE, timeout="2s")))
        await until(lambda: not living(book))
        task = asyncio.create_task(command(make_job(tree(tmp_path / "second"))))
        await grown(tmp_path / "second")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not living(tmp_path / "second") and not our_zombies())

    uvloop.run(both())
    assert len(listed(book)) == 3
    assert our_zombies() == []


async def test_a_command_whose_end_nobody_can_watch_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def refused(*, name: str, **_: object) -> None:
        started.append(int(name.removeprefix("exit of ")))
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(child_process, "threading", SimpleNamespace(Thread=refused))
    with pytest.raises(CommandFailed, match=r"can't be watched: can't start new thread$"):
        await command(make_job({"argv": ["/bin/sh", "-c", "sleep 600"]}))
    assert [psutil.pid_exists(pid) for pid in started] == [False]
