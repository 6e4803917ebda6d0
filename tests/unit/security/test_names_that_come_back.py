"""acme deletes a schedule while its jobs live, and beta makes one of that name: neither has to do with the other's.

What the API answers and what the core decides; tests/contract has what the stores do with decisions that come late.
"""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.dispatch.decisions import Cancel, Dispatch, Fire
from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.mirror.changes import JobSeen, ScheduleGone, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobRef, JobState, backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import FireCounts, Verdict
from hascheduler.schema.schedule import JobTemplate, Overlap, SchedulePolicy, ScheduleRef
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, get, post
from tests.unit.dispatch.nouns import make_schedule, wall
from tests.unit.dispatch.scene import Scene, processors

HOUR_MS = 3_600_000
HOURLY = {"type": "interval", "every": "1h", "anchor": "2030-01-01T00:00:00Z"}

# What the API answers


async def make(client: httpx2.AsyncClient, **changes: Any) -> None:
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": HOURLY, **changes})
    assert answer.status_code == 201, answer.text


async def change_hands(acme: httpx2.AsyncClient, other: httpx2.AsyncClient, world: World, **changes: Any) -> None:
    """acme deletes ``tick``, and a second later beta makes one."""
    assert (await acme.delete("/v1/schedules/tick")).status_code == 204
    world.clock.now = WallMs(world.clock.now + 1_000)
    await make(other, **changes)


async def acme_fired(acme: httpx2.AsyncClient, world: World, nominal_ms: int) -> str:
    await make(acme)
    return await world.fire(nominal_ms)


async def test_a_trigger_cancels_no_job_of_the_schedule_that_had_its_name(
    acme: httpx2.AsyncClient, other: httpx2.AsyncClient, world: World
) -> None:
    old = await acme_fired(acme, world, NOW + HOUR_MS)
    await change_hands(acme, other, world)
    await post(other, "/v1/schedules/tick/trigger", {"overlap": "cancel_running"}, 201)
    assert world.job(old)["state"] == "pending"


@pytest.mark.parametrize("overlap", ["skip", "buffer_one"])
async def test_a_trigger_is_not_refused_for_such_a_job_and_does_not_name_it(
    acme: httpx2.AsyncClient, other: httpx2.AsyncClient, world: World, overlap: str
) -> None:
    await acme_fired(acme, world, NOW + HOUR_MS)
    await world.fire(NOW + 2 * HOUR_MS)
    await change_hands(acme, other, world)
    await post(other, "/v1/schedules/tick/trigger", {"overlap": overlap}, 201)
    if overlap == "skip":
        problem = check_problem(await other.post("/v1/schedules/tick/trigger", json={"overlap": overlap}), 409)
        assert "trigger:tick:" in problem["detail"]


def span(from_hours: int, to_hours: int, **fields: Any) -> dict[str, Any]:
    from_ms, to_ms = (NOW + hours * HOUR_MS for hours in (from_hours, to_hours))
    return {"from": format_instant(from_ms), "to": format_instant(to_ms), **fields}


async def test_a_backfill_makes_its_own_jobs_and_shows_no_others(
    acme: httpx2.AsyncClient, other: httpx2.AsyncClient, world: World
) -> None:
    await make(acme)
    fired = await world.fire(NOW + HOUR_MS)
    world.clock.now = WallMs(NOW + HOUR_MS)
    taken = (await post(acme, "/v1/schedules/tick/backfill", span(-1, -1)))["jobs"]
    await change_hands(acme, other, world)
    created_at_ms = world.schedule()["created_at_ms"]
    before, free, again = NOW - HOUR_MS, NOW, NOW + HOUR_MS
    own = [
        backfill_job_id("tick", before, created_at_ms), backfill_job_id("tick", free), backfill_job_id("tick", again),
    ]  # fmt: skip
    told = {"count": 3, "created": 3, "existing": 0, "undecided": 0, "jobs": own}
    before_it = world.everything()
    assert await post(other, "/v1/schedules/tick/backfill", span(-1, 1, dry_run=True)) == told
    assert world.everything() == before_it
    assert await post(other, "/v1/schedules/tick/backfill", span(-1, 1)) == told
    assert {world.job(id)["tenant"] for id in own} == {"other"}
    assert {world.job(id)["tenant"] for id in [fired, *taken]} == {"acme"}
    again_told = await post(other, "/v1/schedules/tick/backfill", span(-1, 1))
    assert again_told == {**told, "created": 0, "existing": 3}


async def test_no_verdict_of_the_schedule_that_had_its_name_is_shown_though_clocks_differ(
    acme: httpx2.AsyncClient, other: httpx2.AsyncClient, world: World
) -> None:
    """acme's leader was ahead: what it decided lies after the creation of beta's."""
    await make(acme)
    await world.fire(NOW + HOUR_MS)
    await world.pass_over(Verdict.SKIPPED, NOW + 2 * HOUR_MS, because_of=fire_job_id("tick", NOW + HOUR_MS))
    await change_hands(acme, other, world)
    assert (await get(other, "/v1/schedules/tick/verdicts"))["items"] == []
    await world.pass_over(Verdict.MISSED, NOW + 2 * HOUR_MS)
    [shown] = (await get(other, "/v1/schedules/tick/verdicts"))["items"]
    assert (shown["verdict"], shown["because_of"]) == ("missed", None)


# What the core decides

ACME = JobTemplate("log", "t", "acme", "default", "", 5, "queued")
BETA = JobTemplate("log", "t", "beta", "default", "", 5, "queued")


def of_acme(**fields: Any) -> ScheduleRef:
    return make_schedule("s", template=ACME, **fields)


def of_beta(created_ms: int, overlap: Overlap = Overlap.ALLOW, **fields: Any) -> ScheduleRef:
    at = wall(created_ms)
    policy = SchedulePolicy(overlap=overlap, pause_after_failures=1)
    return make_schedule(
        "s", template=BETA, policy=policy, created_at_ms=at, since_ms=at, cursor_ms=at, **fields
    )  # fmt: skip


def acme_running(second: int = 1) -> JobRef:
    job = fired_job(of_acme(), wall(second * 1_000))
    return replace(job, rev=3, state=JobState.RUNNING, attempt=1, processor="p", dispatched_at_ms=wall(0))


def changed_hands(overlap: Overlap, old: JobRef) -> Scene:
    seen: list[Input] = [
        ScheduleSeen(of_acme()),
        JobSeen(old),
        ScheduleGone("s"),
        ScheduleSeen(of_beta(1_500, overlap)),
    ]
    return Scene(*seen, *processors("p", slots=8))


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("is_said", [True, False], ids=["said", "of 0.2.0"])
def test_a_fire_runs_beside_a_job_of_the_schedule_that_had_its_name(overlap: Overlap, is_said: bool) -> None:
    old = acme_running()
    scene = changed_hands(overlap, old if is_said else replace(old, schedule_created_at_ms=None))
    step = scene.at(2_000)
    assert [type(decision) for decision in step.decisions] == [Fire, Dispatch]
    assert not [decision for decision in scene.at(2_100).decisions if isinstance(decision, Cancel)]


def test_what_a_leader_left_behind_of_the_old_schedule_is_no_promise_of_the_new_one() -> None:
    left = Fire("s", wall(5_000), of_acme().basis_at(wall(4_000)), FireCounts(fired=5))
    scene = Scene(ScheduleSeen(of_beta(1_500)), *processors("p", slots=8), leading=False)
    step = scene.at(2_000, TermBegan(2, (left, Dispatch(left.job_id, 1, "p"))))
    fires = [decision for decision in step.decisions if isinstance(decision, Fire)]
    assert [each.nominal_ms for each in fires] == [wall(2_000)]
