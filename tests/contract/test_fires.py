"""`ClaimStore` and `Fire`: one job for each nominal time, and a cursor that only grows."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    CountFailures,
    Decision,
    Dispatch,
    Fire,
    RecordVerdict,
    Settlement,
    decode_decisions,
    encode_decisions,
    encode_extras,
)
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.documents.job import decode_job
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.job import JobState, ScheduleId, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, REFUSED, UNKNOWN, applied, raced
from tests.contract.job_states import at, bring_to, dispatch, records, stored, stored_schedule
from tests.factories import NOW, make_fire, make_schedule, make_template

pytestmark = on("memory", "mongomock", "pymongo", "motor")

FIRST, SECOND, THIRD = (make_fire(second) for second in (1, 2, 3))


async def cursor_of(backend: Backend) -> int:
    return int((await stored_schedule(backend))["cursor_ms"])


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


@pytest.mark.parametrize("later_by_ms", [0, 1, 60_000])
async def test_a_schedule_recreated_at_or_after_the_nominal_time_is_another_one(
    backend: Backend, later_by_ms: int
) -> None:
    again = await backend.schedules.create(make_schedule(now=WallMs(FIRST.nominal_ms + later_by_ms)))
    assert await applied(backend.claims, FIRST) == [LOST]
    assert await backend.jobs.get(FIRST.job_id) is None
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


EARLIER = WallMs(NOW - 10_000)


async def of_stored(backend: Backend, tenant: str, created_at_ms: int) -> dict[str, Any]:
    """``tick`` as that tenant makes it."""
    template = make_template(tenant=tenant)
    document = make_schedule(template=template, payload={"of": tenant}, now=WallMs(created_at_ms))
    await backend.schedules.delete("tick")
    assert await backend.schedules.create(document) is not None
    return document


def a_fire(created_at_ms: int, second: int, tally: FireCounts | None = None) -> Fire:
    """Of a schedule that was created then, and decided nothing yet; both schedules have the same times in force."""
    return Fire("tick", at(second), basis_of(created_at_ms), tally or FireCounts(fired=1))


def basis_of(created_at_ms: int) -> Basis:
    return Basis(NOW, NOW, None, WallMs(created_at_ms))


def a_run(created_at_ms: int, because_of: str | None = None) -> RecordVerdict:
    run = VerdictRun("tick", Verdict.SKIPPED, at(1), at(1), 1, because_of)
    return RecordVerdict(run, basis_of(created_at_ms), FireCounts(skipped=1))


def journaled(*decisions: Decision) -> tuple[Decision, ...]:
    """As a successor reads them."""
    return decode_decisions(encode_decisions(decisions), encode_extras(decisions).get("creations"))


@pytest.mark.parametrize("decision", [a_fire(EARLIER, 1), a_run(EARLIER, "fire:tick:1")], ids=["fire", "pass over"])
async def test_decisions_about_the_old_schedule_are_lost_on_the_new_one(backend: Backend, decision: Decision) -> None:
    """Their times and cursors are the same, to the millisecond."""
    new = await of_stored(backend, "beta", NOW)
    assert await applied(backend.claims, *journaled(decision)) == [LOST]
    assert await backend.schedules.get("tick") == new
    assert await backend.jobs.get(fire_job_id("tick", at(1))) is None


@pytest.mark.parametrize("pause_at_ms", [None, NOW], ids=["count", "pause"])
async def test_failures_of_the_old_schedule_are_not_written_on_the_new_one(
    backend: Backend, pause_at_ms: WallMs | None
) -> None:
    new = await of_stored(backend, "beta", NOW)
    count = CountFailures("tick", 1, 3, pause_at_ms, EARLIER)
    assert await applied(backend.claims, *journaled(count)) == [LOST]
    assert await backend.schedules.get("tick") == new
    assert await applied(backend.claims, *journaled(replace(count, created_at_ms=NOW))) == [DONE]


async def test_a_fire_whose_id_a_job_of_the_old_schedule_has_does_not_count_that_as_its_own(backend: Backend) -> None:
    """acme's leader was ahead of the replica that made beta's."""
    await of_stored(backend, "acme", EARLIER)
    first = a_fire(EARLIER, 1)
    basis = replace(first.basis, cursor_ms=EARLIER, since_ms=EARLIER)
    assert await applied(backend.claims, replace(first, basis=basis)) == [DONE]
    await of_stored(backend, "beta", NOW)
    assert await applied(backend.claims, a_fire(NOW, 1)) == [Settlement.REFUSED]
    job = await stored(backend, first.job_id)
    assert (job["tenant"], job["payload"]) == ("acme", {"of": "acme"})
    assert await applied(backend.claims, replace(a_fire(NOW, 2), basis=replace(basis_of(NOW), cursor_ms=at(1)))) == [
        DONE
    ]


async def test_a_record_replaces_one_of_the_old_schedule(backend: Backend) -> None:
    await of_stored(backend, "acme", EARLIER)
    old = a_run(EARLIER, "fire:tick:1")
    basis = replace(old.basis, cursor_ms=EARLIER, since_ms=EARLIER)
    assert await applied(backend.claims, replace(old, basis=basis)) == [DONE]
    await of_stored(backend, "beta", NOW)
    beta = ScheduleId("tick", "beta", NOW)
    assert await records(backend, schedule=beta) == []
    for _ in range(2):
        assert await applied(backend.claims, a_run(NOW)) == [DONE]
    assert [record.run for record in await records(backend, schedule=beta)] == [a_run(NOW).run]
