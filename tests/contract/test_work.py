"""`WorkStore`: registrations, starts and stop requests; every write names the attempt."""

import asyncio
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Requeue
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job
from hascheduler.model.documents.processor import decode_processor
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import CancelAnswer, StartedJob, StopRequests
from hascheduler.schema.definition import Definition
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.checks import an_old_attempt_can_not_start, applied, of_racing_starts_one_moves_the_job, raced
from tests.contract.job_states import bring_to, dispatch, finish, start, stored
from tests.factories import NOW, make_job, make_processor

# Not mongomock: it lacks $replaceWith, which a registration is made of.
pytestmark = on("memory", "pymongo", "motor")

LATER = WallMs(AT + 1_000)


async def test_a_handler_gets_plain_values_and_integers_of_64_bits_whole(backend: Backend) -> None:
    payload = {
        "small": 7,
        "large": 2**40,
        "most": [2**63 - 1, {"least": -(2**63)}],
        "text": "x",
        "none": None,
        "r": 0.5,
    }
    await backend.jobs.submit(make_job("fire:tick:1893456000000", payload=payload, nominal_ms=WallMs(NOW)))
    await dispatch(backend, "fire:tick:1893456000000")
    for _ in range(2):  # as it is read before it starts, and after
        started = await backend.work.start("fire:tick:1893456000000", 1, "p1", AT)
        assert started is not None
        assert (started.payload, started.nominal_ms) == (payload, NOW)
        given = [*_values(started.payload), started.nominal_ms, started.submitted_at_ms, started.started_at_ms]
        given += [started.first_started_at_ms, started.attempt, started.failures]
        assert {type(value) for value in given} <= {dict, list, int, str, float, type(None)}


def _values(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for item in inner for each in _values(item))]


# The processor


async def registered(backend: Backend, id: str = "p1") -> object:
    document = await backend.behind.find(Collection.PROCESSORS, id)
    return None if document is None else decode_processor(document["_id"], document)


async def test_a_registration_replaces_the_one_before(backend: Backend) -> None:
    await backend.work.register(make_processor(slots=2, draining=True, parked=7))
    await backend.work.register(make_processor(definitions=("$sleep", "*")))
    assert await registered(backend) == make_processor(definitions=("$sleep", "*"))


async def test_a_heartbeat_is_written_beside_the_rest_of_the_registration(backend: Backend) -> None:
    await backend.work.register(make_processor(slots=3))
    for _ in range(2):
        assert await backend.work.beat("p1", 8, draining=True, parked=2) is True
    assert await registered(backend) == make_processor(slots=3, beat=8, draining=True, parked=2)


async def test_a_heartbeat_without_a_registration_is_false_and_makes_none(backend: Backend) -> None:
    await backend.work.register(make_processor())
    await backend.work.deregister("p1")
    await backend.work.deregister("p1")
    assert await backend.work.beat("p1", 2, draining=False, parked=0) is False
    assert await registered(backend) is None


# Start


async def test_a_start_makes_the_job_running_and_returns_what_the_handler_needs(backend: Backend) -> None:
    await backend.jobs.submit(make_job(payload={"m": [1, "$x"]}, labels={"team": "a"}, definition="sleep"))
    await dispatch(backend)
    before = await stored(backend)
    assert await backend.work.start("a", 1, "p1", AT) == StartedJob(
        "a", 1, "sleep", "target", {"m": [1, "$x"]}, "tenant", {"team": "a"}, None, None, NOW,
        started_at_ms=AT, first_started_at_ms=AT, failures=0, rules=Definition(name="sleep"),
    )  # fmt: skip
    started = {"state": JobState.RUNNING, "started_at_ms": AT, "first_started_at_ms": AT, "rev": before["rev"] + 1}
    assert await stored(backend) == {**before, **started}


async def test_an_old_attempt_can_not_start(backend: Backend) -> None:
    await an_old_attempt_can_not_start(backend.work, backend.claims, backend.jobs)


async def test_of_fifty_racing_starts_one_moves_the_job(backend: Backend) -> None:
    await of_racing_starts_one_moves_the_job(backend.work, backend.claims, backend.jobs)


async def test_a_racing_start_and_cancel_agree_on_who_was_first(backend: Backend) -> None:
    for number in range(20):
        id = f"job-{number}"
        await bring_to(backend, JobState.DISPATCHED, id)
        answers: list[Any] = await raced([backend.work.start(id, 1, "p1", AT), backend.jobs.cancel(id, AT)])
        started, cancelled = answers
        expected = CancelAnswer.CANCELLED if started is None else CancelAnswer.ALREADY_RUNNING
        assert cancelled is expected


# Standing


async def test_that_an_attempt_is_overdue_is_stored_once_and_only_while_its_processor_runs_it(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    others: Any = {("a", 2): AT, ("nobody", 1): AT}
    await backend.work.report_overdue("p1", others)
    await backend.work.report_overdue("p2", {("a", 1): AT})
    assert await stored(backend) == before
    await backend.work.report_overdue("p1", {("a", 1): AT, **others})
    marked = {**before, "overdue_attempt": 1, "overdue_since_ms": AT, "rev": before["rev"] + 1}
    assert await stored(backend) == marked
    await backend.work.report_overdue("p1", {("a", 1): WallMs(AT + 1)})
    assert await stored(backend) == marked
    assert decode_job("a", marked).is_overdue
    await finish(backend)
    await backend.work.report_overdue("p1", {("a", 1): WallMs(AT + 1)})
    after = await stored(backend)
    assert (after["rev"], decode_job("a", after).is_overdue) == (before["rev"] + 2, False)


async def test_stop_requests_name_cancelled_and_revoked_attempts(backend: Backend) -> None:
    for id in ("runs", "asked", "requeued", "elsewhere", "ended", "second"):
        await bring_to(backend, JobState.RUNNING, id)
    await backend.jobs.cancel("asked", AT)
    for id in ("requeued", "elsewhere", "second"):
        await applied(backend.claims, Requeue(id, 1, "dead"))
    await dispatch(backend, "elsewhere", 2, "p2")
    await dispatch(backend, "second", 2)
    await start(backend, "second", 2)
    await finish(backend, "ended")
    running = [(id, 1) for id in ("runs", "asked", "requeued", "elsewhere", "ended", "second", "nobody")]
    assert await backend.work.stop_requests("p1", [*running, ("second", 2)]) == StopRequests(
        cancelled=frozenset({("asked", 1)}),
        revoked=frozenset((id, 1) for id in ("requeued", "elsewhere", "ended", "second", "nobody")),
    )
    assert await backend.work.stop_requests("p1", []) == StopRequests(frozenset(), frozenset())


async def _stored(backend: Backend) -> Any:
    return await backend.behind.find(Collection.PROCESSORS, "p1")


async def test_each_touch_raises_the_beat_through_any_replica(backend: Backend) -> None:
    await backend.work.register(make_processor(beat=7))
    assert all(await asyncio.gather(*(backend.work.touch("p1") for _ in range(20))))
    assert (await _stored(backend))["beat"] == 27


@pytest.mark.parametrize("draining", [False, True])
async def test_a_touch_leaves_draining_as_it_is_unless_it_sets_it(backend: Backend, draining: bool) -> None:
    await backend.work.register(make_processor(draining=draining))
    for given, expected in ((None, draining), (not draining, not draining), (None, not draining)):
        assert await backend.work.touch("p1", draining=given)
        assert (await _stored(backend))["draining"] is expected
