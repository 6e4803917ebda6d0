"""`ClaimStore` and `Fire`: one job for each nominal time, and a cursor that only grows."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.documents.job import decode_job
from hascheduler.model.documents.schedule import decode_schedule, encode_fire_counts
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, REFUSED, UNKNOWN, applied, raced
from tests.contract.job_states import bring_to, dispatch, stored, stored_schedule
from tests.factories import NOW, make_fire, make_schedule, make_template

pytestmark = on("memory", "mongomock", "pymongo", "motor")

FIRST, SECOND, THIRD = (make_fire(second) for second in (1, 2, 3))


async def cursor_of(backend: Backend, name: str = "tick") -> int:
    document = await stored_schedule(backend, name)
    return int(document["cursor_ms"])


async def test_a_fire_inserts_the_job_that_the_core_expects(backend: Backend) -> None:
    template = make_template(priority=9, mode="on_demand", lane="fast", fairness_key="key")
    schedule = make_schedule(template=template, payload={"m": ["$x", 1]}, labels={"team": "a"})
    document = await backend.schedules.create(schedule)
    assert document is not None
    assert await applied(backend.claims, FIRST) == [DONE]
    job = await stored(backend, FIRST.job_id)
    assert decode_job(job["_id"], job) == fired_job(decode_schedule("tick", document), FIRST.nominal_ms)
    assert (job["payload"], job["labels"]) == ({"m": ["$x", 1]}, {"team": "a"})
    assert (job["schedule"], job["nominal_ms"]) == ("tick", FIRST.nominal_ms)


async def test_a_fire_inserts_the_values_at_the_keys_that_it_carries(backend: Backend) -> None:
    made = make_schedule(payload={"customer": "${label.team}"}, labels={"team": "a"}, render=True)
    await backend.schedules.create(made)
    keyed = replace(FIRST, keyed_by=("payload.customer", "label.team", "payload.none"))
    assert await applied(backend.claims, keyed) == [DONE]
    job = await stored(backend, FIRST.job_id)
    values = (("payload.customer", "a"), ("label.team", "a"), ("payload.none", ""))
    assert decode_job(job["_id"], job).limit_keys == values
    # Another leader carries it out again, by whatever keys the definition has by then.
    assert await applied(backend.claims, FIRST) == [DONE]
    assert await stored(backend, FIRST.job_id) == job


async def test_the_offsets_of_zones_are_stored_with_the_cursor_that_they_are_of(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    assert await applied(backend.claims, replace(FIRST, offsets=(("Europe/Paris", 3_600),))) == [DONE]
    document = await stored_schedule(backend)
    assert document["cursor_offsets"] == f"{FIRST.nominal_ms} Europe/Paris=3600"
    assert decode_schedule("tick", document).offsets == (("Europe/Paris", 3_600),)
    # As a leader of 0.2.0 moves it.
    assert await applied(backend.claims, SECOND) == [DONE]
    document = await stored_schedule(backend)
    assert decode_schedule("tick", document).offsets == ()


async def test_a_fire_moves_the_cursor_to_its_nominal_time_and_that_is_no_edit(backend: Backend) -> None:
    before = await backend.schedules.create(make_schedule())
    assert before is not None
    await applied(backend.claims, FIRST)
    after = {**before, "cursor_ms": FIRST.nominal_ms, "tally": encode_fire_counts(FireCounts(fired=1))}
    assert await backend.schedules.get("tick") == after


async def test_a_fire_applied_again_is_done_and_changes_nothing(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, FIRST)
    await dispatch(backend, FIRST.job_id)
    await backend.schedules.edit("tick", 1, {"payload": "edited since"})
    job, schedule = await stored(backend, FIRST.job_id), await backend.schedules.get("tick")
    assert await applied(backend.claims, FIRST) == [DONE]
    assert await stored(backend, FIRST.job_id) == job
    assert await backend.schedules.get("tick") == schedule


async def test_a_dispatch_that_rides_with_its_fire_is_carried_out_by_the_insert_and_stays_done(
    backend: Backend,
) -> None:
    await backend.schedules.create(make_schedule())
    for _ in range(2):
        assert await applied(backend.claims, FIRST, Dispatch(FIRST.job_id, 1, "p1")) == [DONE, DONE]
    job = await stored(backend, FIRST.job_id)
    assert (job["state"], job["attempt"], job["processor"]) == (JobState.DISPATCHED, 1, "p1")


@pytest.mark.parametrize("edited", [False, True])
async def test_a_dispatch_that_rides_with_its_fire_leaves_a_job_alone_that_another_fire_made(
    backend: Backend, edited: bool
) -> None:
    """A leader that was deposed, and whose fire was lost to an edit, is late: its successor has fired that time."""
    await backend.schedules.create(make_schedule())
    late = (FIRST, Dispatch(FIRST.job_id, 1, "p1"))
    since_ms = WallMs(NOW + 1)
    if edited:
        await backend.schedules.edit("tick", 1, {"since_ms": since_ms})
        assert await applied(backend.claims, *late) == [LOST, LOST]
        assert await applied(backend.claims, replace(FIRST, basis=replace(FIRST.basis, since_ms=since_ms))) == [DONE]
    else:
        assert await applied(backend.claims, FIRST) == [DONE]
    job = await stored(backend, FIRST.job_id)
    assert await applied(backend.claims, *late) == [DONE, LOST]
    assert await stored(backend, FIRST.job_id) == job
    # One that has seen the job hands it out.
    assert await applied(backend.claims, Dispatch(FIRST.job_id, 1, "p1")) == [DONE]


async def test_a_fire_waits_for_the_one_before_it(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    assert await applied(backend.claims, SECOND) == [UNKNOWN]
    assert await backend.jobs.get(SECOND.job_id) is None
    assert await applied(backend.claims, SECOND, FIRST) == [DONE, DONE]
    assert await cursor_of(backend) == SECOND.nominal_ms


async def test_several_fires_of_a_schedule_move_the_cursor_to_the_latest(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await backend.schedules.create(make_schedule("other"))
    other = make_fire(2, 0, schedule="other")
    assert await applied(backend.claims, THIRD, FIRST, other, SECOND) == [DONE] * 4
    assert await applied(backend.claims, FIRST) == [DONE], "and it only grows"
    assert await cursor_of(backend) == THIRD.nominal_ms
    assert await cursor_of(backend, "other") == SECOND.nominal_ms
    for fire in (FIRST, SECOND, THIRD, other):
        assert (await stored(backend, fire.job_id))["nominal_ms"] == fire.nominal_ms


async def test_a_fire_that_happened_stays_done_when_its_schedule_is_gone(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, FIRST)
    await backend.schedules.delete("tick")
    assert await applied(backend.claims, FIRST, SECOND) == [DONE, LOST]


@pytest.mark.parametrize("later_by_ms", [0, 1, 60_000])
async def test_a_schedule_recreated_at_or_after_the_nominal_time_is_another_one(
    backend: Backend, later_by_ms: int
) -> None:
    again = await backend.schedules.create(make_schedule(now=WallMs(FIRST.nominal_ms + later_by_ms)))
    assert await applied(backend.claims, FIRST) == [LOST]
    assert await backend.jobs.get(FIRST.job_id) is None
    assert await backend.schedules.get("tick") == again


async def test_the_cursor_of_a_recreated_schedule_is_not_moved_by_an_old_fire(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, FIRST)
    await backend.schedules.delete("tick")
    again = await backend.schedules.create(make_schedule(now=FIRST.nominal_ms))
    assert await applied(backend.claims, FIRST) == [DONE]
    assert await backend.schedules.get("tick") == again


async def test_a_schedule_that_makes_no_job_does_not_keep_the_others_from_firing(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await backend.behind.insert(
        Collection.SCHEDULES, {"_id": "odd", "rev": 1, "job": {"definition": 7}, "cursor_ms": NOW, "created_at_ms": NOW}
    )
    assert await applied(backend.claims, make_fire(1, schedule="odd"), FIRST) == [REFUSED, DONE]


async def test_many_leaders_that_fire_insert_one_job_and_all_are_done(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    answers = await raced(applied(backend.claims, FIRST, SECOND) for _ in range(20))
    assert answers == [[DONE, DONE]] * 20
    assert (await stored(backend, FIRST.job_id))["rev"] == 1
    assert await cursor_of(backend) == SECOND.nominal_ms


async def test_a_job_id_taken_by_a_submitted_job_counts_as_fired(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await bring_to(backend, JobState.RUNNING, FIRST.job_id)
    before = await stored(backend, FIRST.job_id)
    assert await applied(backend.claims, FIRST) == [DONE]
    assert await stored(backend, FIRST.job_id) == before
    assert await cursor_of(backend) == FIRST.nominal_ms, "as after a crash between the insert and the cursor"
