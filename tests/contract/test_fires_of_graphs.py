"""`ClaimStore` and fires that make a graph of jobs, all or none, or a job that no database can hold."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import fired_job, fired_on, graph_job_ids
from hascheduler.model.documents.job import decode_job
from hascheduler.model.documents.schedule import decode_schedule, encode_fire_counts
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts, Verdict, VerdictRun
from hascheduler.ports import VerdictRecord
from hascheduler.schema.schedule import GraphJob, JobGraph, graph_order
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    DONE,
    LOST,
    REFUSED,
    a_fire_whose_job_is_not_there_is_not_done,
    applied,
    raced,
    too_large_when_filled,
)
from tests.contract.job_states import at, records, stored, stored_schedule
from tests.factories import NOW, make_fire, make_job, make_schedule, make_template

pytestmark = on("memory", "pymongo", "motor")

FIRST, SECOND = (make_fire(number, is_graph=True) for number in (1, 2))
JOBS = (
    GraphJob("load", ("clean", "enrich"), make_template(priority=9)),
    GraphJob("enrich", ("extract",), make_template()),
    GraphJob("clean", ("extract",), make_template()),
    GraphJob("extract", (), make_template(), render=True),
)
GRAPH = JobGraph(JOBS, graph_order([(job.ref, job.depends_on) for job in JOBS]))
IDS = graph_job_ids(GRAPH, FIRST.job_id)


def graph(name: str = "tick", **more: Any) -> dict[str, Any]:
    payloads = {"extract": "${job_id}", "load": {"n": 1}}
    made = {"graph": GRAPH, "template": GRAPH.last.template, "payload": None, "payloads": payloads, "render": True}
    return make_schedule(name, **{**made, **more})


async def test_a_fire_inserts_each_job_with_what_it_waits_for(backend: Backend) -> None:
    document = await backend.schedules.create(graph())
    assert document is not None
    assert await applied(backend.claims, FIRST) == [DONE]
    last = await stored(backend, FIRST.job_id)
    assert decode_job(last["_id"], last) == fired_job(decode_schedule("tick", document), FIRST.nominal_ms)
    assert (last["waits_for"], last["payload"]) == ([IDS["clean"], IDS["enrich"]], {"n": 1})
    extract = await stored(backend, IDS["extract"])
    assert (extract["payload"], extract["waits_for"], extract["schedule"]) == (IDS["extract"], [], "tick")
    assert (await stored(backend, IDS["clean"]))["depends_on"] == [IDS["extract"]]


@pytest.mark.parametrize("was_graph", [True, False])
async def test_a_fire_is_lost_whose_schedule_makes_one_job_since_or_several(
    backend: Backend, *, was_graph: bool
) -> None:
    await backend.schedules.create(make_schedule() if was_graph else graph())
    fire = replace(FIRST, is_graph=was_graph)
    # The last job must not run before the others: it was to be dispatched at once.
    decided = (fire,) if was_graph else (fire, Dispatch(fire.job_id, 1, "p1"))
    assert await applied(backend.claims, *decided) == [LOST] * len(decided)
    assert [await backend.jobs.get(id) for id in IDS.values()] == [None] * 4
    assert await applied(backend.claims, replace(fire, is_graph=not was_graph)) == [DONE]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.CANCELLED])
async def test_after_a_crash_before_the_last_insert_the_graph_is_completed(backend: Backend, state: JobState) -> None:
    await backend.schedules.create(graph())
    left = make_job(IDS["extract"], schedule_created_at_ms=NOW)
    await backend.jobs.submit(left)
    if state is JobState.CANCELLED:
        await backend.jobs.cancel(left.id, WallMs(NOW + 5))
    assert await applied(backend.claims, FIRST) == [DONE]
    assert [(await stored(backend, id))["state"] for id in IDS.values()].count("pending") >= 3
    assert (await stored(backend, left.id))["state"] == state
    assert await applied(backend.claims, FIRST) == [DONE]


@pytest.mark.parametrize("change", ["deleted", "created again", "paused"])
async def test_of_a_fire_that_is_lost_between_its_inserts_nothing_is_left_to_run(backend: Backend, change: str) -> None:
    await backend.schedules.create(graph())
    of_second = f"{SECOND.job_id}.extract"
    for id in (IDS["extract"], IDS["clean"], of_second):
        await backend.jobs.submit(make_job(id, schedule_created_at_ms=NOW))
        await _changed(backend, Collection.JOBS, id, fired_on=fired_on(FIRST.basis))
    await _changed(backend, Collection.JOBS, IDS["extract"], state="running")
    if change == "paused":
        await _changed(backend, Collection.SCHEDULES, "tick", paused_at_ms=NOW + 5)
    else:
        await backend.schedules.delete("tick")
    if change == "created again":
        await backend.schedules.create(graph(now=WallMs(NOW + 90_000)))
    for _ in range(2):
        assert await applied(backend.claims, FIRST) == [LOST]
        assert (await stored(backend, IDS["clean"]))["state"] == JobState.CANCELLED
        assert (await stored(backend, IDS["extract"]))["cancel_requested_at_ms"] is not None
    assert (await stored(backend, of_second))["state"] == JobState.PENDING
    assert await backend.jobs.get(FIRST.job_id) is None


async def test_of_a_fire_that_is_refused_nothing_is_left_to_run(backend: Backend) -> None:
    await backend.schedules.create(graph())
    # An earlier schedule of that name has the id of one of them.
    await backend.jobs.submit(make_job(IDS["enrich"], schedule_created_at_ms=WallMs(NOW - 9)))
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert await backend.jobs.get(FIRST.job_id) is None
    for ref in ("extract", "clean"):
        job = await backend.jobs.get(IDS[ref])
        assert job is None or job["state"] == JobState.CANCELLED
    assert (await stored(backend, IDS["enrich"]))["state"] == JobState.PENDING
    [_, dispatch] = await applied(backend.claims, FIRST, Dispatch(FIRST.job_id, 1, "p1"))
    assert dispatch is LOST


async def test_payloads_that_are_too_large_together_make_no_job_at_all(backend: Backend) -> None:
    payloads = {"extract": "x" * 200_000, "load": "x" * 200_000}
    await backend.behind.insert(Collection.SCHEDULES, graph(payloads=payloads))
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert [await backend.jobs.get(id) for id in IDS.values()] == [None] * 4


async def _changed(backend: Backend, collection: Collection, id: str, **fields: Any) -> None:
    """Behind the ports' backs: put into a state that takes many steps otherwise."""
    found = await backend.behind.find(collection, id)
    assert found is not None
    await backend.behind.delete(collection, id)
    await backend.behind.insert(collection, {**found, **fields})


# Not mongomock: it holds anything, and has no such updates.


LARGE_FIRST, LARGE_SECOND = (make_fire(second, tally=FireCounts(fired=second)) for second in (1, 2))


async def counted(backend: Backend) -> tuple[int, Any, int]:
    document = await stored_schedule(backend)
    return document["cursor_ms"], document["tally"][0], document.get("unstorable", 0)


def unstorable(second: int) -> VerdictRecord:
    return VerdictRecord(VerdictRun("tick", Verdict.UNSTORABLE, at(second), at(second), 1))


async def test_no_fire_is_done_without_its_job(backend: Backend) -> None:
    await a_fire_whose_job_is_not_there_is_not_done(backend.claims, backend.jobs, backend.behind)


async def test_the_verdict_is_unstorable_and_the_cursor_goes_on(backend: Backend) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    assert await applied(backend.claims, LARGE_FIRST) == [REFUSED]
    assert await backend.jobs.get(LARGE_FIRST.job_id) is None
    assert await records(backend) == [unstorable(1)]
    assert await counted(backend) == (LARGE_FIRST.nominal_ms, 1, 1)


async def test_an_unstorable_fire_applied_by_many_leaders_is_counted_once(backend: Backend) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    answers = await raced(applied(backend.claims, LARGE_FIRST, LARGE_SECOND) for _ in range(10))
    assert answers == [[REFUSED, REFUSED]] * 10
    assert await applied(backend.claims, LARGE_FIRST) == [REFUSED]
    assert await records(backend) == [unstorable(2), unstorable(1)]
    assert await counted(backend) == (LARGE_SECOND.nominal_ms, 2, 2)


async def test_an_unstorable_time_stays_unstorable_when_the_times_are_edited_before_the_cursor_moves(
    backend: Backend,
) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    await applied(backend.claims, LARGE_FIRST)
    # As after a crash between the record and the cursor, and an edit.
    before = {"cursor_ms": NOW, "tally": encode_fire_counts(NOTHING_DECIDED), "unstorable": 0}
    await backend.schedules.edit("tick", 1, {**before, "since_ms": NOW + 1, "payload": "small"})
    assert await applied(backend.claims, LARGE_FIRST) == [REFUSED]
    assert await backend.jobs.get(LARGE_FIRST.job_id) is None
    assert await counted(backend) == (LARGE_FIRST.nominal_ms, 1, 1)
