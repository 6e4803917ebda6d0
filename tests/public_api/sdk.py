# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Programs that use the SDK, as three type checkers read it; each `type: ignore` stands at a mistake they must find."""

from datetime import datetime
from typing import Any, assert_type

from hascheduler.client import (
    AsyncScheduler,
    Attempt,
    Changed,
    Definition,
    Job,
    JobFailed,
    JobState,
    Refused,
    RetryPolicy,
    Scheduler,
    Submitted,
    Tenant,
)


def submit(scheduler: Scheduler) -> None:
    job = scheduler.submit("resize", {"image": "a.png"}, priority=7, labels={"team": "a"}, idempotency_key="order-1")
    assert_type(job, Job)
    assert_type(scheduler.wait(job.id, timeout=60), Job)
    assert_type(scheduler.call("resize", timeout=10), Any)
    assert_type(scheduler.wait_all(job.id), dict[JobState, int])
    assert_type(job.submitted_at, datetime)
    assert_type(job.finished_at, datetime | None)
    for attempt in job.attempts:
        assert_type(attempt, Attempt)
    done = scheduler.submit_many([{"ref": "a", "definition": "a"}, {"definition": "b", "depends_on": ["ref:a"]}])
    assert_type(done, Submitted)
    scheduler.submit("resize", prioritty=7)  # type: ignore[call-arg]
    scheduler.submit("resize", priority="high")  # type: ignore[arg-type]
    scheduler.submit_many([{"definitoin": "a"}])  # type: ignore[typeddict-item,typeddict-unknown-key]
    job.finished_at.isoformat()  # type: ignore[union-attr]


def change(scheduler: Scheduler) -> None:
    for job in scheduler.list(state="failed", definition="resize"):
        assert_type(job, Job)
    assert_type(scheduler.cancel_where(labels={"team": "a"}, dry_run=True), Changed)
    scheduler.list(sate="failed")  # type: ignore[call-arg]
    for hit in scheduler.schedules.verdicts("nightly", ["missed"]):
        assert_type(hit.nominal_at, datetime)
    scheduler.schedules.verdicts("nightly", ["mised"])  # type: ignore[list-item]
    for fire in scheduler.schedules.preview("nightly", count=2).fires:
        assert_type(fire.due_at, datetime)
    scheduler.schedules.create("nightly", {"type": "cron", "expression": "30 2 * * *"}, {"definition": "log"})
    scheduler.schedules.create("nightly", {"type": "cron"}, {"definition": "log"})  # type: ignore[arg-type]


def nouns(scheduler: Scheduler) -> None:
    wanted = Definition(name="resize", max_concurrency=3, timeout_ms=60_000, retry=RetryPolicy())
    assert_type(scheduler.definitions.put(wanted), Definition)
    assert_type(scheduler.tenants.find("a"), Tenant | None)
    scheduler.tenants.put(wanted)  # type: ignore[arg-type]
    assert_type(scheduler.cluster.health(), str)


def fail(scheduler: Scheduler) -> str:
    try:
        scheduler.call("resize")
    except JobFailed as failed:
        return assert_type(failed.job, Job).state
    except Refused as refused:
        return refused.problem.detail
    return ""


async def with_a_loop() -> None:
    async with AsyncScheduler("http://127.0.0.1:8080", token="hsk_x", patience=5) as scheduler:
        assert_type(await scheduler.submit("resize"), Job)
        async for job in scheduler.list():
            assert_type(job, Job)
        _ = scheduler.submit("resize").id  # type: ignore[attr-defined]
        for _ in scheduler.list():  # type: ignore[attr-defined]
            pass
        assert_type(await scheduler.definitions.get("resize"), Definition)
        paused = await scheduler.schedules.pause("nightly", because="maintenance")
        assert_type(paused.next_at, datetime | None)
