"""Attempts in processes of their own: what they are given and give back, how they fail, and that nothing is left."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import Handlers, JobContext, child_process
from hascheduler.processor.attempts import StopReason
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import RetryPolicy
from tests.tiers import spread
from tests.unit.processor.process_handlers import handlers
from tests.unit.processor.world import ME, Job, Stage, staged, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


async def ended(stage: Stage, definition: str, payload: Any = None, **more: Any) -> Job:
    job = stage.world.dispatch("a", definition, payload, **more)
    await job.ended()
    return job


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    with suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        return state not in "ZX"
    return False


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def takes_nothing() -> None: ...


async def test_a_process_gets_the_job_and_its_result_progress_and_log_lines_come_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    payload = {"text": "ä" * 70_000, "large": 2**63 - 1, "none": None}
    async with staged(handlers, deadline_ms=60_000) as stage:
        job = await ended(stage, "tell", payload, rules=Definition(name="tell", timeout_ms=60_000))
        assert job.outcome is not None
        result = job.outcome.result
    assert result["pid"] != os.getpid()
    assert not is_alive(result["pid"])
    assert (result["leads"], result["payload"], result["asked"]) == (True, payload, [False, False])
    assert result["job"] == ["a", 1, "tell", 1_060_000, 1]
    assert [(record.name, record.getMessage()) for record in caplog.records if "process_handlers" in record.name] == [
        ("tests.unit.processor.process_handlers", "plain 7"),
        ("tests.unit.processor.process_handlers", "event='structured' width=3"),
    ]


@pytest.mark.parametrize(
    ("payload", "error", "again"),
    spread(
        [
            ("raise", "ValueError: no answer of http://me:secret@there/", True),
            ("permanent", "PermanentError: never", False),
            ("later", "RetryLater: retry in 90s", True),
            ("percent", "InvalidInput: percent: '101'; expected a number from 0 to 100, or None", False),
            ("no json", "InvalidInput: result.at: not JSON: object", False),
            ("exit", "ProcessDied: the handler's process exited with status 7 and no result", True),
            ("quit", "ProcessDied: the handler's process exited with status 0 and no result", True),
            (
                "kill",
                "ProcessDied: the handler's process was killed by SIGKILL; the kernel does this when memory",
                True,
            ),
        ],
        check=4,
    ),
)
async def test_a_process_that_fails_or_dies_is_a_failure_that_says_how(payload: str, error: str, again: bool) -> None:
    async with staged(handlers, deadline_ms=60_000) as stage:
        job = await ended(stage, "fail", payload, rules=Definition(name="fail", retry=RetryPolicy(attempts_max=3)))
    assert job.outcome is not None
    assert (job.outcome.error or "").startswith(error)
    assert (job.outcome.retry_at_ms is not None) is again
    if payload == "raise":
        assert (job.outcome.traceback or "").endswith("ValueError: no answer of http://***@there/")
    elif error.startswith("ProcessDied"):
        assert job.outcome.traceback is None, "nothing of the handler's raised it"


@pytest.mark.parametrize(
    "function", [lambda job: None, lambda: None, *(type("Callable", (), {"__call__": lambda self, job: None})(),)]
)
def test_what_a_process_can_not_import_is_refused_when_it_is_registered(function: Any) -> None:
    def inner(job: JobContext) -> None: ...

    anything: Any = (function, inner, takes_nothing)
    for refused in anything:
        with pytest.raises(InvalidInput, match=r"named function of a module|can't be called"):
            Handlers().handler("x", process=True)(refused)


async def test_a_payload_that_is_no_json_fails_the_job_with_a_clear_error() -> None:
    async with staged(handlers, deadline_ms=60_000) as stage:
        job = await ended(stage, "tell", {"at": object()})
    assert job.outcome is not None
    assert (job.outcome.error or "").startswith("InvalidInput: payload: can't be passed to a process")


@pytest.mark.parametrize(
    ("how", "deaf"), spread(product(["timeout", "cancel", "revoked", "fenced", "drain"], [False, True]), check=6)
)
async def test_whatever_stops_an_attempt_kills_its_process_with_all_that_it_started(
    how: str, deaf: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if deaf:
        monkeypatch.setattr(child_process, "GRACE_S", 0.05)
        monkeypatch.setattr(child_process, "_GRACE_GIVEN_UP_S", 0.05)
    else:
        monkeypatch.setattr(child_process, "_GRACE_GIVEN_UP_S", 20)
        monkeypatch.setattr(child_process, "GRACE_S", 20)
    place = tmp_path / "pids"
    async with staged(handlers, drain_grace_ms=0, deadline_ms=60_000) as stage:
        held = stage.processor.attempts
        job = stage.world.dispatch("a", "hold", {"file": str(place), "deaf": deaf})
        await until(place.exists)
        pids = [int(pid) for pid in place.read_text(encoding="utf-8").split()]
        assert all(map(is_alive, pids))
        occasion: dict[str, Callable[[], Any]] = {
            "timeout": lambda: held.stop(("a", 1), StopReason.TIMED_OUT),
            "cancel": lambda: stage.world.tell(MessageKind.CANCEL, "a"),
            "revoked": lambda: setattr(job, "processor", "another"),
            "fenced": lambda: held.stop_started(StopReason.FENCED),
            "drain": stage.processor.drain,
        }
        occasion[how]()
        await until(lambda: not held.held)
        # Each of them has its signal by now, and dies when its turn comes.
        await until(lambda: not any(map(is_alive, pids)))
        assert not is_there(pids[0]), "no zombie"
        match how:
            case "timeout":
                assert job.outcome is not None
                assert job.outcome.error == "timed out"
            case "cancel":
                assert job.outcome == AttemptOutcome(JobState.CANCELLED)
            case "revoked":
                assert (job.outcome, job.reasons) == (None, [])
            case _:
                assert len(job.reasons) == 1
    if not deaf:
        asked = place.with_suffix(".end").read_text(encoding="utf-8")
        assert asked == f"True {how == 'cancel'}", "it had time for its finally"


async def test_a_stop_that_comes_just_before_a_call_begins_ends_that_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_GRACE_GIVEN_UP_S", 600)
    place = tmp_path / "pids"
    async with staged(handlers, deadline_ms=60_000) as stage:
        stage.world.dispatch("a", "hold", {"file": str(place), "late": True})
        await until(place.exists)
        stage.processor.attempts.stop_started(StopReason.FENCED)
        await until(lambda: not stage.processor.attempts.held)
    assert place.with_suffix(".end").read_text(encoding="utf-8") == "True False"


async def test_a_processor_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    """The kernel does it: the child ignores SIGTERM, and sleeps in a call of the system."""
    place = tmp_path / "pids"
    processor = await asyncio.create_subprocess_exec(sys.executable, "-c", _PROCESSOR, str(place), cwd=ROOT)
    try:
        await until(place.exists)
        pids = [int(pid) for pid in place.read_text(encoding="utf-8").split()]
        assert all(map(is_alive, pids))
    finally:
        processor.send_signal(signal.SIGKILL)
        await processor.wait()
    await until(lambda: not any(map(is_alive, pids)))


_PROCESSOR = f"""
import asyncio, sys
from tests.unit.processor.process_handlers import handlers
from tests.unit.processor.world import staged

async def main():
    async with staged(handlers, deadline_ms=60_000) as stage:
        stage.world.dispatch("a", "hold", {{"file": sys.argv[1], "deaf": True}}, processor={ME!r})
        await asyncio.Event().wait()

asyncio.run(main())
"""
