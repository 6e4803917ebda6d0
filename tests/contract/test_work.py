"""`WorkStore`: heartbeats, starts and stop requests; how attempts end, and the trace that they run in."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Requeue
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    AttemptOutcome,
    CancelAnswer,
    FinishAnswer,
    StartedJob,
    StopRequests,
    TracedJob,
)
from hascheduler.schema.definition import Definition
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.checks import (
    RACERS,
    an_old_attempt_can_not_finish,
    an_old_attempt_can_not_start,
    applied,
    of_racing_starts_one_moves_the_job,
    raced,
)
from tests.contract.job_states import SUCCEEDED, attempt_record, bring_to, dispatch, finish, start, stored
from tests.factories import NOW, make_job

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


@pytest.mark.parametrize(
    "check", [an_old_attempt_can_not_start, an_old_attempt_can_not_finish, of_racing_starts_one_moves_the_job]
)
async def test_a_start_or_finish_moves_only_the_attempt_that_it_names(
    backend: Backend, check: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    await check(backend.work, backend.claims, backend.jobs)


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


# Not mongomock: in an array that an update pipeline builds it leaves "$attempt" standing where the value belongs.


@pytest.mark.parametrize(
    "outcome",
    [
        AttemptOutcome(JobState.SUCCEEDED, result={"$set": ["$x", None, 1.5]}),
        AttemptOutcome(JobState.FAILED, error="$boom"),
        AttemptOutcome(JobState.CANCELLED),
    ],
)
async def test_a_finish_ends_the_job_and_keeps_the_record_of_the_attempt(
    backend: Backend, outcome: AttemptOutcome
) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await backend.work.finish("a", 1, "p1", outcome, AT) is FinishAnswer.DONE
    after = await stored(backend)
    assert after["expire_at"] is not None
    assert after == {
        **before,
        "state": outcome.state,
        "result": outcome.result,
        "error": outcome.error,
        "processor": None,
        "finished_at_ms": AT,
        "expire_at": after["expire_at"],
        "rev": before["rev"] + 1,
        "failures": 1 if outcome.state is JobState.FAILED else 0,
        "attempts": [attempt_record(before, outcome.state, outcome.error, AT)],
    }


async def test_the_newest_three_attempts_keep_their_tracebacks_as_they_were_told(backend: Backend) -> None:
    """Without one, the record is as before."""
    await bring_to(backend, JobState.RUNNING)
    for number in range(1, 6):
        if number > 1:
            await dispatch(backend, "a", number, "p1")
            assert await backend.work.start("a", number, "p1", AT) is not None
        traceback = None if number == 1 else f"$state {number}"
        retry_at_ms = LATER if number < 5 else None
        failed = AttemptOutcome(JobState.FAILED, error="no", retry_at_ms=retry_at_ms, traceback=traceback)
        assert await backend.work.finish("a", number, "p1", failed, AT) is FinishAnswer.DONE
    records = (await stored(backend))["attempts"]
    assert [record.get("traceback") for record in records] == [None, None, "$state 3", "$state 4", "$state 5"]
    assert ["traceback" in record for record in records] == [False, False, True, True, True]
    assert [record["error"] for record in records] == ["no"] * 5


async def test_a_late_finish_is_late_however_often_and_kept_once(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await applied(backend.claims, Requeue("a", 1, "dead"))
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
    after = await stored(backend)
    assert after["state"] == JobState.PENDING
    assert len(after["late_results"]) == 1
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, LATER) is FinishAnswer.LATE
    assert await stored(backend) == after


@pytest.mark.parametrize(
    ("state", "id", "processor"),
    [(JobState.RUNNING, "a", "p2"), (JobState.DISPATCHED, "a", "p1"), (JobState.RUNNING, "nobody", "p1")],
    ids=["of another processor", "not started", "of no job"],
)
async def test_a_finish_of_what_does_not_run_there_is_late(
    backend: Backend, state: JobState, id: str, processor: str
) -> None:
    await bring_to(backend, state)
    assert await backend.work.finish(id, 1, processor, SUCCEEDED, AT) is FinishAnswer.LATE
    assert (await stored(backend))["state"] == state
    assert await backend.behind.find(Collection.JOBS, "nobody") is None


async def test_late_results_are_bounded(backend: Backend) -> None:
    await bring_to(backend, JobState.PENDING)
    for number in range(15):
        await backend.work.finish("a", 1, f"p{number}", SUCCEEDED, AT)
    kept = (await stored(backend))["late_results"]
    assert [late["processor"] for late in kept] == [f"p{number}" for number in range(12, 15)]


async def test_of_fifty_racing_finishes_the_first_is_kept_and_all_are_done(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    rev = (await stored(backend))["rev"]
    answers = await raced(backend.work.finish("a", 1, "p1", SUCCEEDED, WallMs(AT + n)) for n in range(RACERS))
    assert set(answers) == {FinishAnswer.DONE}
    after = await stored(backend)
    assert (after["rev"], len(after["attempts"])) == (rev + 1, 1)


# Giving back


@pytest.mark.parametrize("state", sorted(OCCUPYING))
async def test_a_job_that_is_given_back_waits_for_its_next_attempt(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.give_back("a", 1, "p1", "$draining", AT) is True
    after = await stored(backend)
    assert (after["state"], after["attempt"], after["processor"]) == (JobState.PENDING, 1, None)
    assert (after["dispatched_at_ms"], after["started_at_ms"], after["rev"]) == (None, None, before["rev"] + 1)
    assert after["attempts"] == [attempt_record(before, "given_back", "$draining", AT)]
    assert await backend.work.give_back("a", 1, "p1", "$draining", LATER) is True
    assert await stored(backend) == after
    await dispatch(backend, attempt=2)


# The trace of a job: stored with it, read when its message is sent and when each of its attempts starts

TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
KEPT = TraceContext(TRACE.traceparent)
MALFORMED: list[Any] = [7, True, 1.5, ["x"], {"x": 1}, "", "00-x", "x" * 10_240, TRACE.traceparent.upper()]


async def started_trace(backend: Backend, attempt: int) -> TraceContext | None:
    started = await backend.work.start("a", attempt, "p1", WallMs(NOW + 20))
    assert started is not None
    return started.trace


async def test_each_attempt_starts_within_the_trace_of_its_job(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a", trace=TRACE))
    await backend.jobs.submit(make_job("b", schedule="tick"))
    if backend.traces is not None:
        found = {"a": TracedJob("log", None, KEPT), "b": TracedJob("log", "tick", None)}
        assert await backend.traces.of(["a", "b", "nobody"]) == found
        assert await backend.traces.of([]) == {}
    await dispatch(backend)
    assert await started_trace(backend, 1) == KEPT
    assert await backend.work.give_back("a", 1, "p1", "draining", WallMs(NOW + 30))
    await dispatch(backend, attempt=2)
    assert await started_trace(backend, 2) == KEPT


@pytest.mark.parametrize("value", MALFORMED, ids=lambda value: repr(value)[:30])
async def test_a_malformed_stored_trace_counts_as_none_and_the_job_runs(backend: Backend, value: Any) -> None:
    await backend.behind.insert(Collection.JOBS, {**new_job_document(make_job("a")), "trace": value})
    if backend.traces is not None:
        assert await backend.traces.of(["a"]) == {"a": TracedJob("log", None, None)}
    await dispatch(backend)
    assert await started_trace(backend, 1) is None
