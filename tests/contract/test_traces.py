"""The trace of a job: stored with it, read when its message is sent and when each of its attempts starts."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import TracedJob
from tests.contract.backends import Backend, on
from tests.contract.job_states import dispatch
from tests.factories import NOW, make_job

# Not mongomock: it lacks what a start is made of.
on_all = on("memory", "pymongo", "motor")
on_mongodb = on("pymongo", "motor")

TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
KEPT = TraceContext(TRACE.traceparent)
MALFORMED: list[Any] = [7, True, 1.5, ["x"], {"x": 1}, "", "00-x", "x" * 10_240, TRACE.traceparent.upper()]


async def started_trace(backend: Backend, attempt: int) -> TraceContext | None:
    started = await backend.work.start("a", attempt, "p1", WallMs(NOW + 20))
    assert started is not None
    return started.trace


@on_mongodb
async def test_the_traces_of_existing_jobs_are_found(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a", trace=TRACE))
    await backend.jobs.submit(make_job("b", schedule="tick"))
    await dispatch(backend, "a")
    assert backend.traces is not None
    found = {"a": TracedJob("log", None, KEPT), "b": TracedJob("log", "tick", None)}
    assert await backend.traces.of(["a", "b", "nobody"]) == found
    assert await backend.traces.of([]) == {}


@on_all
async def test_each_attempt_starts_within_the_trace_of_its_job(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a", trace=TRACE))
    await dispatch(backend)
    assert await started_trace(backend, 1) == KEPT
    assert await backend.work.give_back("a", 1, "p1", "draining", WallMs(NOW + 30))
    await dispatch(backend, attempt=2)
    assert await started_trace(backend, 2) == KEPT


@on_all
@pytest.mark.parametrize("value", MALFORMED, ids=lambda value: repr(value)[:30])
async def test_a_malformed_stored_trace_counts_as_none_and_the_job_runs(backend: Backend, value: Any) -> None:
    await backend.behind.insert(Collection.JOBS, {**new_job_document(make_job("a")), "trace": value})
    if backend.traces is not None:
        assert await backend.traces.of(["a"]) == {"a": TracedJob("log", None, None)}
    await dispatch(backend)
    assert await started_trace(backend, 1) is None
