# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Handlers, and tests of them; each `type: ignore` stands at a mistake that type checkers must find."""

from datetime import datetime
from typing import Any, assert_type

from hascheduler.client import JobState
from hascheduler.processor import Handlers, JobContext, PermanentError, RetryLater
from hascheduler.testing import Call, VirtualScheduler

handlers = Handlers()


@handlers.handler("resize")
async def resize(job: JobContext) -> dict[str, int]:
    assert_type(job.payload, Any)
    assert_type(job.fencing_token, int)
    job.progress(50, "half of it")
    job.progress("half of it")  # type: ignore[arg-type]
    job.id = "another"  # type: ignore[misc]
    if job.cancel_requested:
        raise PermanentError("cancelled")
    return {"width": 1}


@handlers.handler("report", process=True)
def report(job: JobContext) -> str:
    raise RetryLater(10)


@handlers.handler("mistaken")  # type: ignore[type-var]
def mistaken(job: JobContext, other: int) -> None: ...


@handlers.handler(7)  # type: ignore[arg-type]
def numbered(job: JobContext) -> None: ...


async def test_a_handler_keeps_its_type(job: JobContext) -> None:
    assert_type(await resize(job), dict[str, int])
    assert_type(report(job), str)


def test_a_report_is_made_each_night(virtual_scheduler: VirtualScheduler) -> None:
    virtual_scheduler.handle("report", lambda job: job.id)
    job = virtual_scheduler.submit("report", {"day": 1})
    assert_type(virtual_scheduler.wait(job, within="1d").state, JobState)
    assert_type(virtual_scheduler.calls("report"), list[Call])
    assert_type(virtual_scheduler.now, datetime)
    virtual_scheduler.advance(None)  # type: ignore[arg-type]
    virtual_scheduler.crash_next("report", "during")  # type: ignore[arg-type]
