"""What programs ask and get: jobs one by one, against the real API."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hascheduler.client import InvalidInput, JobCancelled, JobFailed, JobState, Progress, Refused, StillRunning
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.api.test_waiting import end, until, waits
from tests.unit.client.faces import Face

LATER = datetime(2031, 1, 1, tzinfo=UTC)


async def test_a_job_is_submitted_with_all_that_may_be_said(face: Face) -> None:
    first = await face.ask.submit("log")
    assert (first.id, first.state, first.payload, first.replayed) == ("job:0001", JobState.PENDING, None, False)
    job = await face.ask.submit(
        "resize", {"image": "a.png"}, target="a.png", priority=7, tenant="acme", lane="bulk", labels={"team": "a"},
        resources={"cpu": 2}, not_before=LATER, expires_at="2031-01-02T00:00:00Z", depends_on=[first.id],
        on_dependency_failure="ignore",
    )  # fmt: skip
    assert job == await face.ask.get(job.id)
    assert (job.definition, job.payload, job.target, job.priority) == ("resize", {"image": "a.png"}, "a.png", 7)
    assert (job.tenant, job.lane, job.labels, job.fields["resources"]) == ("acme", "bulk", {"team": "a"}, {"cpu": 2})
    assert (job.not_before, job.expires_at) == (LATER, LATER + timedelta(days=1))
    assert (job.depends_on, job.fields["on_dependency_failure"]) == ((first.id,), "ignore")


async def test_under_one_key_it_is_one_job_and_else_each_submit_is_another(face: Face, world: World) -> None:
    one = await face.ask.submit("log", idempotency_key="order-1")
    again = await face.ask.submit("log", idempotency_key="order-1")
    assert (one.id, one.replayed, again.id, again.replayed) == ("job:0001", False, "job:0001", True)
    assert (await face.ask.submit("log")).id != (await face.ask.submit("log")).id
    with pytest.raises(Refused, match="order-1") as refused:
        await face.ask.submit("resize", idempotency_key="order-1")
    assert refused.value.status == 409
    assert len(world.everything()[Collection.JOBS]) == 3


async def test_a_duplicate_is_told_and_a_call_waits_for_the_job_that_is_there(face: Face, world: World) -> None:
    await face.ask.definitions.put_document("log", {"unique": {"by": []}})
    one, again = await face.ask.submit("log"), await face.ask.submit("log")
    assert (one.is_duplicate, again.is_duplicate, again.id, again.replayed) == (False, True, one.id, False)
    [result] = (await face.ask.submit_many([{"definition": "log"}])).results
    assert (result.status, result.job) == (200, one.id)
    calling = asyncio.create_task(face.ask.call("log", timeout=30))
    await until(lambda: waits(world, one.id))
    end(world, one.id, result=7)
    assert await calling == 7
    assert len(world.everything()[Collection.JOBS]) == 1


async def test_a_call_returns_what_the_handler_did(face: Face, world: World) -> None:
    job = await face.ask.submit("log", 1, mode="on_demand", idempotency_key="k")
    world.rewrite(Collection.JOBS, job.id, state="succeeded", finished_at_ms=NOW, result={"n": 1})
    assert await face.ask.call("log", 1, idempotency_key="k") == {"n": 1}


@pytest.mark.parametrize(
    ("state", "error", "failure"),
    [("failed", "it broke", JobFailed), ("cancelled", None, JobCancelled), ("pending", None, StillRunning)],
)
async def test_a_call_without_a_result_raises_and_tells_the_job(
    face: Face, world: World, state: str, error: str | None, failure: type[Exception]
) -> None:
    job = await face.ask.submit("log", mode="on_demand", idempotency_key="k")
    world.rewrite(Collection.JOBS, job.id, state=state, finished_at_ms=NOW, error=error)
    with pytest.raises(failure) as raised:
        await face.ask.call("log", idempotency_key="k", timeout=0)
    ended: Any = raised.value
    assert (ended.job.id, ended.job.state, ended.job.error) == (job.id, state, error)
    assert str(raised.value).startswith(job.id)
    assert str(raised.value).endswith(error or str(raised.value)[-1])


async def test_waiting_ends_with_the_job_or_with_the_time(face: Face, world: World) -> None:
    job = await face.ask.submit("log")
    with pytest.raises(StillRunning, match="it is pending"):
        await face.ask.wait(job.id, timeout=0)
    waiting = asyncio.create_task(face.ask.wait(job.id))
    world.rewrite(Collection.JOBS, job.id, state="failed", finished_at_ms=NOW, error="it broke")
    assert (await waiting).state is JobState.FAILED


async def test_a_submit_may_wait_for_the_end(face: Face, world: World) -> None:
    assert not (await face.ask.submit("log", idempotency_key="k", wait=0)).has_ended
    world.rewrite(Collection.JOBS, "job:0001", state="succeeded", finished_at_ms=NOW)
    assert (await face.ask.submit("log", idempotency_key="k", wait=30)).has_ended


async def test_progress_and_attempts_are_read(face: Face, world: World) -> None:
    await face.ask.submit("log")
    attempt = {"number": 1, "processor": "p-1", "dispatched_at_ms": NOW, "started_at_ms": NOW, "outcome": "failed",
               "finished_at_ms": NOW + 5, "error": "it broke"}  # fmt: skip
    progress = {"percent": 40, "text": "2 of 5", "at_ms": NOW}
    world.rewrite(Collection.JOBS, "job:0001", state="running", progress=progress, attempts=[attempt])
    job = await face.ask.get("job:0001")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert isinstance(job.progress, Progress)
    assert (job.progress.percent, job.progress.text, job.progress.at) == (40, "2 of 5", at)
    [tried] = job.attempts
    assert (tried.number, tried.outcome, tried.processor, tried.error) == (1, "failed", "p-1", "it broke")
    assert (tried.started_at, tried.finished_at) == (at, at + timedelta(milliseconds=5))


async def test_one_job_is_cancelled_reprioritized_and_retried(face: Face, world: World) -> None:
    job = await face.ask.submit("log")
    assert await face.ask.reprioritize(job.id, 9) == "ok"
    assert (await face.ask.get(job.id)).priority == 9
    assert await face.ask.retry(job.id) == "not_ended"
    assert await face.ask.cancel(job.id) == "cancelled"
    assert await face.ask.cancel(job.id) == "already_done"
    assert await face.ask.retry(job.id) == "ok"
    revived = await face.ask.get(job.id)
    assert (revived.state, revived.attempt, revived.tries, revived.revivals) == ("pending", 1, 0, 1)


async def test_what_is_wrong_is_told_field_by_field(face: Face) -> None:
    with pytest.raises(Refused, match=r"422: priority: 11 is too large") as refused:
        await face.ask.submit("log", priority=11)
    assert [(one.path, one.expected) for one in refused.value.problem.errors] == [("priority", "at most 10")]
    with pytest.raises(Refused, match=r"404: no job 'job:9'"):
        await face.ask.get("job:9")


@pytest.mark.parametrize(
    ("definition", "more", "said"),
    [
        ("log", {"payload": object()}, "body: is nothing that JSON can hold"),
        ("log", {"payload": float("nan")}, "body: is nothing that JSON can hold"),
        ("log", {"idempotency_key": "a b"}, "idempotency_key: 'a b' can't be a key"),
        ("log", {"idempotency_key": ""}, "idempotency_key: '' can't be a key"),
        ("log", {"payload": LATER}, "body: is nothing that JSON can hold"),
        ("log", {"wait": float("inf")}, "wait: inf s is out of range"),
        ("log", {"wait": float("nan")}, "wait: nan s is out of range"),
        ("log", {"wait": 301}, "wait: 301 s is out of range"),
        ("log", {"not_before": LATER.replace(tzinfo=None)}, "not_before: 2031-01-01T00:00:00 has no zone"),
    ],
)
async def test_what_cannot_be_sent_is_not(face: Face, definition: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await face.ask.submit(definition, **more)


@pytest.mark.parametrize("id", ["", "..", "a/b", "?x"])
async def test_what_is_no_id_is_not_asked_for(face: Face, id: str) -> None:
    with pytest.raises(InvalidInput, match="is no id of a job"):
        await face.ask.get(id)
