"""What must hold of any store, also when many call it at once; the planted bugs must fail these."""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from hascheduler.dispatch.decisions import Decision, Dispatch, Requeue, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    AttemptOutcome,
    CancelAnswer,
    ClaimStore,
    FinishAnswer,
    JobStore,
    Journal,
    LeaseStore,
    WorkStore,
)
from tests.contract.backends import Behind
from tests.factories import NOW, make_entry, make_fire, make_job, make_lease, make_schedule, make_template

RACERS = 50

T = TypeVar("T")


async def raced(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The answers of all ``calls``, which are under way together."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]


DONE, LOST, UNKNOWN, REFUSED = Settlement.DONE, Settlement.LOST, Settlement.UNKNOWN, Settlement.REFUSED
AT = WallMs(NOW + 10)


async def applied(claims: ClaimStore, *decisions: Decision, at_ms: WallMs = AT) -> list[Settlement]:
    """With a majority, as these checks look at what is stored, and those are majority reads."""
    return await claims.apply(decisions, at_ms, majority=True)


def too_large_when_filled(name: str = "tick", **only_what_matters: Any) -> dict[str, Any]:
    """A schedule as 0.2.0 took it: 90 kB that become 2.5 MB in each job."""
    template = make_template(target="t" * 256)
    return make_schedule(name, template=template, payload="${target}" * 10_000, render=True, **only_what_matters)


async def a_fire_whose_job_is_not_there_is_not_done(claims: ClaimStore, jobs: JobStore, behind: Behind) -> None:
    await behind.insert(Collection.SCHEDULES, too_large_when_filled())
    await behind.insert(Collection.SCHEDULES, make_schedule("small"))
    fires = [make_fire(1), make_fire(1, schedule="small")]
    for fire, settlement in zip(fires, await applied(claims, *fires), strict=True):
        assert (settlement is DONE) == (await jobs.get(fire.job_id) is not None), fire


async def of_racing_dispatches_of_one_attempt_one_wins(claims: ClaimStore, jobs: JobStore) -> None:
    await jobs.submit(make_job())
    decisions = [Dispatch("a", 1, f"p{number}") for number in range(RACERS)]
    answers = await raced(applied(claims, decision) for decision in decisions)
    assert [settled for [settled] in answers].count(DONE) == 1
    job = await jobs.get("a")
    assert job is not None
    assert (job["state"], job["attempt"], job["rev"]) == (JobState.DISPATCHED, 1, 2)
    assert answers[decisions.index(Dispatch("a", 1, job["processor"]))] == [DONE]


async def a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost(claims: ClaimStore, jobs: JobStore) -> None:
    await jobs.submit(make_job())
    assert await jobs.cancel("a", AT) is CancelAnswer.CANCELLED
    job = await jobs.get("a")
    assert await applied(claims, Dispatch("a", 1, "p1")) == [LOST]
    assert await jobs.get("a") == job


async def of_racing_creates_one_wins(leases: LeaseStore) -> None:
    records = [make_lease(f"r{number}") for number in range(RACERS)]
    answers = await raced(leases.create(record) for record in records)
    assert answers.count(True) == 1
    assert await leases.get("default") == records[answers.index(True)]


async def of_racing_updates_one_wins(leases: LeaseStore) -> None:
    first = make_lease("r0")
    await leases.create(first)
    proposals = [replace(first, holder=f"r{number}", term=2) for number in range(RACERS)]
    answers = await raced(leases.update(first, proposal) for proposal in proposals)
    assert answers.count(True) == 1
    assert await leases.get("default") == proposals[answers.index(True)]


async def an_update_of_another_version_changes_nothing(leases: LeaseStore) -> None:
    stored = make_lease("r1", term=3, renewals=7)
    await leases.create(stored)
    proposed = make_lease("r2", term=4)
    for outdated in (replace(stored, holder="r9"), replace(stored, term=2), replace(stored, renewals=6)):
        assert await leases.update(outdated, proposed) is False
        assert await leases.get("default") == stored


async def a_seq_is_written_once(journal: Journal) -> None:
    """A leader that was deposed meets the entry of its successor."""
    assert await journal.insert(make_entry(1, holder="r2", term=2)) is True
    assert await journal.insert(make_entry(1, holder="r1", term=1)) is False
    assert await journal.get("default", 1) == make_entry(1, holder="r2", term=2)


async def of_racing_inserts_at_one_seq_one_wins(journal: Journal) -> None:
    entries = [make_entry(1, holder=f"r{number}", term=number + 1) for number in range(RACERS)]
    answers = await raced(journal.insert(entry) for entry in entries)
    assert answers.count(True) == 1
    assert await journal.get("default", 1) == entries[answers.index(True)]


AFTER = WallMs(NOW + 40)


async def an_old_attempt_can_not_start(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    await _second_attempt(claims, jobs)
    before = await jobs.get("a")
    assert await work.start("a", 1, "p1", AFTER) is None
    assert await jobs.get("a") == before


async def an_old_attempt_can_not_finish(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    """Its result is kept beside the job and changes nothing."""
    await _second_attempt(claims, jobs)
    assert await work.start("a", 2, "p1", AFTER) is not None
    before: Any = await jobs.get("a")
    late = AttemptOutcome(JobState.SUCCEEDED, result="$late")
    assert await work.finish("a", 1, "p1", late, AFTER) is FinishAnswer.LATE
    kept = {"attempt": 1, "processor": "p1", "state": "succeeded", "result": "$late", "error": None, "at_ms": AFTER}
    assert await jobs.get("a") == {**before, "rev": before["rev"] + 1, "late_results": [kept]}


async def of_racing_starts_one_moves_the_job(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    """Half of them are those of processors that it was not promised to."""
    await jobs.submit(make_job())
    await _apply(claims, Dispatch("a", 1, "p1"))
    answers = await raced(
        work.start("a", 1, "p1" if number % 2 else f"other-{number}", WallMs(AFTER + number))
        for number in range(RACERS)
    )
    assert {number % 2 for number, started in enumerate(answers) if started is not None} == {1}
    job: Any = await jobs.get("a")
    assert (job["state"], job["processor"], job["rev"]) == (JobState.RUNNING, "p1", 3)


async def _second_attempt(claims: ClaimStore, jobs: JobStore) -> None:
    """A job whose first attempt was revoked, and whose second is promised to the same processor."""
    await jobs.submit(make_job())
    await _apply(claims, Dispatch("a", 1, "p1"), Requeue("a", 1, "dead"), Dispatch("a", 2, "p1"))


async def _apply(claims: ClaimStore, *decisions: Dispatch | Requeue) -> None:
    settled = await claims.apply(decisions, NOW, majority=True)
    assert settled == [Settlement.DONE] * len(decisions)
