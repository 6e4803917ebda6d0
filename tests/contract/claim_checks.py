"""What must hold of any `ClaimStore`; the planted bugs must fail these."""

from typing import Any

from hascheduler.dispatch.decisions import Decision, Dispatch, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import CancelAnswer, ClaimStore, JobStore
from tests.contract.backends import Behind
from tests.contract.racing import RACERS, raced
from tests.factories import NOW, make_fire, make_job, make_schedule, make_template

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


async def a_dispatch_applied_again_is_done_and_changes_nothing(claims: ClaimStore, jobs: JobStore) -> None:
    await jobs.submit(make_job())
    assert await applied(claims, Dispatch("a", 1, "p1")) == [DONE]
    job = await jobs.get("a")
    assert await applied(claims, Dispatch("a", 1, "p1"), at_ms=WallMs(AT + 5)) == [DONE]
    assert await jobs.get("a") == job


async def a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost(claims: ClaimStore, jobs: JobStore) -> None:
    await jobs.submit(make_job())
    assert await jobs.cancel("a", AT) is CancelAnswer.CANCELLED
    job = await jobs.get("a")
    assert await applied(claims, Dispatch("a", 1, "p1")) == [LOST]
    assert await jobs.get("a") == job
