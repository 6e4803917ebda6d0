"""What programs ask and get, against the real API: jobs one by one, and many at once."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from hascheduler.client import Changed, InvalidInput, JobCancelled, JobFailed, JobState, Refused, StillRunning, bodies
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.api.test_waiting import end, until, waits
from tests.unit.client.faces import Face

LATER = datetime(2031, 1, 1, tzinfo=UTC)


class Size(Enum):
    SMALL = "s"


class Parcel(BaseModel):
    at: date


@dataclass
class Order:
    id: UUID
    price: Decimal
    size: Size
    parcels: tuple[Parcel, ...]


async def test_a_payload_may_hold_values_of_python(face: Face, world: World) -> None:
    order = Order(UUID(int=7), Decimal("1.10"), Size.SMALL, (Parcel(at=date(2031, 1, 2)),))
    job = await face.ask.submit("log", {"order": order, "due": LATER, "opens": time(8, 30)})
    assert world.job(job.id)["payload"] == {
        "order": {"id": str(UUID(int=7)), "price": "1.10", "size": "s", "parcels": [{"at": "2031-01-02"}]},
        "due": "2031-01-01T00:00:00+00:00",
        "opens": "08:30:00",
    }


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


@pytest.mark.parametrize(
    ("definition", "more", "said"),
    [
        ("log", {"payload": object()}, "body: can't be encoded as JSON: object is not JSON"),
        ("log", {"payload": datetime(2031, 1, 1)}, "2031-01-01T00:00:00 has no time zone"),  # noqa: DTZ001
        ("log", {"payload": float("nan")}, "body: can't be encoded as JSON"),
        ("log", {"idempotency_key": "a b"}, "idempotency_key: 'a b' is not a valid key"),
        ("log", {"wait": float("inf")}, "wait: inf s is out of range"),
        ("log", {"wait": 301}, "wait: 301 s is out of range"),
        ("log", {"not_before": LATER.replace(tzinfo=None)}, "not_before: 2031-01-01T00:00:00 has no time zone"),
        ("log", {"not_before": LATER, "delay": "1m"}, "delay: cannot be combined with not_before"),
        ("log", {"delay": timedelta(seconds=-1)}, "delay: .* is not between 0 and 100 years"),
        ("log", {"delay": "soon"}, "delay: 'soon'"),
    ],
)
async def test_what_cannot_be_sent_is_not(face: Face, definition: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await face.ask.submit(definition, **more)


@pytest.mark.parametrize("delay", ["10m", timedelta(minutes=10)])
async def test_a_delay_is_counted_from_now(face: Face, delay: timedelta | str) -> None:
    before = datetime.now(UTC)
    job = await face.ask.submit("log", delay=delay)
    assert job.not_before is not None
    # Instants have milliseconds.
    assert timedelta(0) <= job.not_before - before + timedelta(milliseconds=1) - timedelta(minutes=10)
    assert job.not_before <= datetime.now(UTC) + timedelta(minutes=10)


async def test_each_of_many_is_submitted_or_refused_by_itself(face: Face, world: World) -> None:
    jobs = [
        {"ref": "fetch", "definition": "fetch", "payload": None},
        {"definition": "index", "depends_on": ["ref:fetch"]},
        {"definition": "a/b"},
    ]
    done = await face.ask.submit_many(jobs, idempotency_key="import-1")
    assert [(one.status, one.job) for one in done.results[:2]] == [(201, "job:0001"), (201, "job:0002")]
    assert [one.problem.errors[0].path for one in done.refused] == ["definition"]
    assert world.job("job:0002")["waits_for"] == ["job:0001"]
    assert [world.job("job:0001")["batch"]] == list(done.batches)
    again = await face.ask.submit_many(jobs, idempotency_key="import-1")
    assert [one.status for one in again.results] == [200, 200, 422]
    with pytest.raises(Refused, match="filter: sets no condition"):
        await face.ask.cancel_where()


async def test_too_many_for_one_request_go_in_several(
    face: Face, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 2)
    done = await face.ask.submit_many([{"definition": "log"}] * 5, idempotency_key="import-1")
    assert (len(done.batches), len(done.results), done.refused) == (3, 5, ())
    await face.ask.submit_many([{"definition": "log"}] * 5, idempotency_key="import-1")
    assert len(world.everything()[Collection.JOBS]) == 5
    assert await face.ask.submit_many([]) == type(done)((), ())
    with pytest.raises(InvalidInput, match="3 jobs need 2 requests"):
        await face.ask.submit_many([{"definition": "log", "depends_on": ["ref:a"]}] * 3)


async def test_all_pages_of_a_list_are_read(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("synchronous", "asynchronous"):
        monkeypatch.setattr(f"hascheduler.client.{kind}.asking.PAGE", 2)
    for n in range(5):
        await face.ask.submit("log", target=str(n), labels={"odd": str(n % 2)})
    assert [job.target for job in await face.listed()] == ["4", "3", "2", "1", "0"]
    assert [job.target for job in await face.listed(labels={"odd": "1"}, state="pending")] == ["3", "1"]
    assert await face.listed(state="failed") == []


async def test_all_that_match_are_changed_however_many_requests_it_takes(
    face: Face, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.jobs.all_that_match.CHANGED_MAX", 1)
    await face.ask.submit_many([{"definition": "log", "labels": {"team": "a"}}] * 3)
    assert await face.ask.cancel_where(dry_run=True, definition="log") == Changed(3, True, 0, 0, True)
    assert (await face.ask.reprioritize_where(9, labels={"team": "a"}, dry_run=True)).matched == 3
    world.rewrite(Collection.JOBS, "job:0001", state="running")
    heard: list[int] = []
    changed = await face.ask.cancel_where(labels={"team": "a"}, progress=lambda so_far: heard.append(so_far.changed))
    assert changed == Changed(3, True, 2, 1, True)
    assert heard == sorted(heard)
    assert len(heard) > 1
    world.rewrite(Collection.JOBS, "job:0002", state="failed", finished_at_ms=NOW)
    assert await face.ask.retry_where(definition="log") == Changed(1, True, 1, 0, True)
    assert (await face.ask.reprioritize_where(9, definition="log")).changed == 1
    assert [world.job(f"job:000{n}")["priority"] for n in (1, 2)] == [5, 9]


async def test_jobs_and_batches_are_waited_for_together(face: Face, world: World) -> None:
    alone = await face.ask.submit("log")
    made = await face.ask.submit_many([{"definition": "log"}] * 3)
    [batch], ids = made.batches, [result.job or "" for result in made.results]
    told: list[dict[JobState, int]] = []
    waiting = asyncio.create_task(
        face.ask.wait_all(alone.id, batch, timeout=30, progress=lambda counts: told.append({**counts}))
    )
    await until(lambda: waits(world, alone.id))
    end(world, alone.id)
    await until(lambda: told)
    for id, state in zip(ids, ("succeeded", "failed", "cancelled"), strict=True):
        world.rewrite(Collection.JOBS, id, state=state)
    assert await waiting == {JobState.SUCCEEDED: 2, JobState.FAILED: 1, JobState.CANCELLED: 1}
    assert told[0] == {JobState.SUCCEEDED: 1}
    assert [sum(counts.values()) for counts in told[1:-1]] == [4] * (len(told) - 2), "those that have not ended too"


async def test_the_progress_of_many_is_a_bar_on_a_terminal_and_nothing_elsewhere(
    face: Face, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [await face.ask.submit("log") for _ in range(2)]
    for job in jobs:
        end(world, job.id)
    for is_terminal in (False, True):
        if is_terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        counts = await face.ask.wait_all(*(job.id for job in jobs), timeout=30, progress=True)
        assert counts == {JobState.SUCCEEDED: 2}
        out, err = capsys.readouterr()
        assert (out, "waiting" in err) == ("", is_terminal)


async def test_a_batch_that_has_not_ended_in_time_names_one_of_its_jobs(face: Face) -> None:
    made = await face.ask.submit_many([{"definition": "log"}])
    with pytest.raises(StillRunning) as late:
        await face.ask.wait_all(*made.batches, timeout=0.05)
    assert late.value.job.id == made.results[0].job
    with pytest.raises(InvalidInput, match=r"'batch:nobody' has no jobs"):
        await face.ask.wait_all("batch:nobody")
