"""What a processor tells of its attempts: spans around them, and their job on every line that is about them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Delivery, StartedJob
from hascheduler.processor import Handlers, JobContext
from tests.unit.processor.world import ME, World, staged, until
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of

SENT = TraceContext(f"00-{CALLER.trace_id}-1111111111111111-01")
FOREIGN = TraceContext("00-22222222222222222222222222222222-2222222222222222-01")


class TracedWorld(World):
    """``kept`` is the trace of each job, ``told`` that of each message."""

    def __init__(self, kept: TraceContext | None, told: TraceContext | None) -> None:
        super().__init__()
        self.kept = kept
        self.told = told

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        started = await super().start(job_id, attempt, processor_id, at_ms)
        return None if started is None else replace(started, trace=self.kept, schedule="tick")

    def _delivery(self, body: bytes) -> Delivery:
        return replace(super()._delivery(body), trace=self.told)


def handlers_of(recorded: Recorded) -> Handlers:
    handlers = Handlers()

    @handlers.handler("ask")
    async def ask(job: JobContext) -> dict[str, Any]:
        with recorded.handler.start_as_current_span("the handler's own"):
            await asyncio.sleep(0)
        return dict(get_contextvars())

    @handlers.handler("thread")
    def thread(job: JobContext) -> dict[str, Any]:
        with recorded.handler.start_as_current_span("the handler's own"):
            return dict(get_contextvars())

    @handlers.handler("fail")
    async def fail(job: JobContext) -> None:
        raise LookupError("no such thing at mongodb://user:hunter2@db/")

    @handlers.handler("hold")
    async def hold(job: JobContext) -> None:
        await asyncio.Event().wait()

    return handlers


async def traced(
    definition: str, kept: TraceContext | None, told: TraceContext | None, **more: Any
) -> tuple[Recorded, Any]:
    recorded = Recorded()
    world = TracedWorld(kept, told)
    async with staged(handlers_of(recorded), world=world, tracer=recorded.tracer):
        world.dispatch("a", definition, **more)
        await until(lambda: f"attempt {definition}" in recorded.names)
    return recorded, recorded.one(f"attempt {definition}")


@pytest.mark.parametrize("definition", ["ask", "thread"])
async def test_what_a_handler_traces_is_within_its_attempt_and_that_within_its_message(definition: str) -> None:
    recorded, attempt = await traced(definition, CALLER, SENT)
    own = recorded.one("the handler's own")
    assert (trace_of(attempt), parent_of(attempt)) == (CALLER.trace_id, span_id(SENT))
    assert (trace_of(own), parent_of(own)) == (CALLER.trace_id, id_of(attempt))
    assert dict(attempt.attributes or {}) == {
        "hascheduler.job.id": "a",
        "hascheduler.job.attempt": 1,
        "hascheduler.job.definition": definition,
        "hascheduler.job.schedule": "tick",
        "hascheduler.processor": ME,
        "hascheduler.outcome": "succeeded",
    }
    assert attempt.status.is_unset


@pytest.mark.parametrize(
    ("kept", "told", "parent"),
    [
        (CALLER, None, CALLER),
        (None, SENT, SENT),
        (CALLER, FOREIGN, CALLER),  # a message may be anybody's
        (None, None, None),
    ],
)
async def test_an_attempt_belongs_where_its_job_says_and_else_where_its_message_says(
    kept: TraceContext | None, told: TraceContext | None, parent: TraceContext | None
) -> None:
    _, attempt = await traced("ask", kept, told)
    assert parent_of(attempt) == (None if parent is None else span_id(parent))


@pytest.mark.parametrize("definition", ["ask", "thread"])
async def test_the_lines_of_a_handler_carry_its_job_and_attempt_and_no_others(definition: str) -> None:
    async with staged(handlers_of(Recorded())) as stage:
        for job in [stage.world.dispatch(id, definition) for id in ("a", "b")]:
            assert (await job.ended()).result in ({"job": "a", "attempt": 1}, {"job": "b", "attempt": 1})
        assert [job.outcome and job.outcome.result["job"] for job in stage.world.jobs.values()] == ["a", "b"]
    assert get_contextvars() == {}
