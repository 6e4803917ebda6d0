"""A coroutine handler that blocks its event loop: nothing there is lost, and everybody is told who did it."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.system.processes import Processes, eventually

STOOD_STILL = "stood still for"
REMEDY = "in the handler of 'block': make it `def`, or process=True"
MODULE = "tests.system.replicas.blocking_handlers"
BLOCKS_S = 8
"""Many times the heartbeat timeout."""


async def said_why(processes: Processes, job_id: str) -> str:
    """What `why` says, once it names the stall."""

    async def look() -> str | None:
        summary = str((await processes.get(f"/v1/jobs/{job_id}/why"))["summary"])
        return summary if STOOD_STILL in summary else None

    return await eventually(look, f"why says what {job_id} does")


async def logged(processes: Processes, name: str, event: str) -> list[dict[str, Any]]:
    async def look() -> list[dict[str, Any]]:
        return processes.logged(event, name)

    return await eventually(look, f"{name} logs {event}")


@pytest.mark.parametrize("child", [False, True], ids=["in the handler", "in a task of the handler"])
async def test_a_handler_that_blocks_its_event_loop_loses_no_job_and_is_named(
    processes: Processes, tmp_path: Path, child: bool
) -> None:
    await processes.replica("one")
    await processes.processor("p", MODULE)
    siblings = [await processes.submit("nap", seconds=3) for _ in range(3)]
    for sibling in siblings:
        await processes.in_state(sibling, "running")
    blocking = await processes.submit("block", seconds=BLOCKS_S, file=str(tmp_path / "book"), child=child)
    assert REMEDY in await said_why(processes, blocking)
    assert REMEDY in await said_why(processes, siblings[0])
    for job_id in [blocking, *siblings]:
        job = await processes.ended(job_id)
        assert (job["state"], job["attempt"], job["losses"]) == ("succeeded", 1, 0), job
    assert (tmp_path / "book").read_text() == "begun\n"
    [goes_on] = await logged(processes, "p", "handler_loop_goes_on")
    assert REMEDY in goes_on["reason"]
    [stands_still] = await logged(processes, "p", "handler_loop_stands_still")
    assert stands_still["job"] == blocking
    assert "blocking_handlers.py" in stands_still["at"]


async def test_one_that_blocks_beyond_its_timeout_has_timed_out_and_says_why(
    processes: Processes, tmp_path: Path
) -> None:
    await processes.replica("one")
    await processes.processor("p", MODULE)
    await processes.put("/v1/definitions/block", {"timeout": "2s", "retry": {"attempts": 2, "backoff": "1m"}})
    blocking = await processes.submit("block", seconds=600, file=str(tmp_path / "book"))

    async def look() -> dict[str, Any] | None:
        job = await processes.get(f"/v1/jobs/{blocking}")
        return job if job["attempts"] else None

    failed = await eventually(look, "the attempt has ended")
    [attempt] = failed["attempts"]
    assert (attempt["outcome"], failed["failures"], failed["losses"]) == ("failed", 1, 0)
    assert attempt["error"].startswith("timed out after 2s; the event loop stood still for")
    assert attempt["error"].endswith(REMEDY)
    assert REMEDY in await said_why(processes, blocking)


async def test_a_processor_with_a_blocked_loop_ends_in_good_order(processes: Processes, tmp_path: Path) -> None:
    await processes.replica("one")
    processor = await processes.processor("p", MODULE, HASCHEDULER_DRAIN_GRACE="1s")
    blocking = await processes.submit("block", seconds=600, file=str(tmp_path / "book"))
    await said_why(processes, blocking)
    processor.signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await processor.wait() == 0
    assert await logged(processes, "p", "handler_loop_abandoned")
    job = await processes.get(f"/v1/jobs/{blocking}")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["given_back"]


async def test_what_has_not_begun_there_runs_elsewhere_at_once(processes: Processes, tmp_path: Path) -> None:
    await processes.replica("one")
    await processes.processor("p", MODULE)
    blocking = await processes.submit("block", seconds=600, file=str(tmp_path / "book"))
    await said_why(processes, blocking)
    waiting = [await processes.submit("nap", seconds=0) for _ in range(8)]
    await processes.processor("q", MODULE)
    for job_id in waiting:
        job = await processes.ended(job_id)
        assert (job["state"], job["losses"]) == ("succeeded", 0), job
        assert job["attempts"][-1]["processor"].startswith("q."), job
    assert (await processes.get(f"/v1/jobs/{blocking}"))["attempt"] == 1
