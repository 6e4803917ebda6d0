"""What a processor tells of its attempts: spans around them, and their job on every line that is about them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import trace
from structlog.contextvars import get_contextvars

from hascheduler.model.job import JobState
from hascheduler.model.message import decode_message
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Delivery, StartedJob
from hascheduler.processor import Handlers, JobContext, PermanentError, Processor, ProcessorConfig
from hascheduler.schema.definition import Definition
from hascheduler.telemetry.tracing import NO_TRACING, Tracer
from tests.unit.processor.world import ME, HandClock, World, until
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of

SENT = TraceContext(f"00-{CALLER.trace_id}-1111111111111111-01")
FOREIGN = TraceContext("00-22222222222222222222222222222222-2222222222222222-01")


class TracedWorld(World):
    """``kept`` are the traces of its jobs, ``told`` those of their messages."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, TraceContext] = {}
        self.told: dict[str, TraceContext] = {}

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        started = await super().start(job_id, attempt, processor_id, at_ms)
        return None if started is None else replace(started, trace=self.kept.get(job_id), schedule="tick")

    def _delivery(self, body: bytes) -> Delivery:
        return replace(super()._delivery(body), trace=self.told.get(decode_message(body).job_id))


@asynccontextmanager
async def at_work(handlers: Handlers, tracer: Tracer) -> AsyncIterator[tuple[TracedWorld, Processor]]:
    world = TracedWorld()
    config = ProcessorConfig(
        id=ME,
        name="p",
        scheduler="default",
        slots=4,
        heartbeat_interval_ms=20,
        heartbeat_deadline_ms=400,
        drain_grace_ms=0,
    )
    processor = Processor(handlers, world, world, HandClock(), config, tracer=tracer)
    task = asyncio.create_task(processor.run())
    try:
        await until(lambda: world.registered is not None)
        yield world, processor
    finally:
        task.cancel()
        await asyncio.wait({task})


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

    @handlers.handler("give-up")
    async def give_up(job: JobContext) -> None:
        raise PermanentError("never")

    @handlers.handler("hold")
    async def hold(job: JobContext) -> None:
        await asyncio.Event().wait()

    return handlers


async def ended(world: TracedWorld, job_id: str) -> None:
    await until(lambda: world.jobs[job_id].outcome is not None)


@pytest.mark.parametrize("definition", ["ask", "thread"])
async def test_what_a_handler_traces_is_within_its_attempt_and_that_within_its_message(definition: str) -> None:
    recorded = Recorded()
    async with at_work(handlers_of(recorded), recorded.tracer) as (world, _):
        world.kept["a"], world.told["a"] = CALLER, SENT
        world.dispatch("a", definition)
        await until(lambda: f"attempt {definition}" in recorded.names)
    attempt, own = recorded.one(f"attempt {definition}"), recorded.one("the handler's own")
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
    recorded = Recorded()
    async with at_work(handlers_of(recorded), recorded.tracer) as (world, _):
        world.kept |= {"a": kept} if kept else {}
        world.told |= {"a": told} if told else {}
        world.dispatch("a", "ask")
        await until(lambda: "attempt ask" in recorded.names)
    assert parent_of(recorded.one("attempt ask")) == (None if parent is None else span_id(parent))


@pytest.mark.parametrize(
    ("definition", "error_type", "description"),
    [
        ("fail", "LookupError", "LookupError: no such thing at mongodb://***@db/"),
        ("give-up", "hascheduler.processor.outcomes.PermanentError", "PermanentError: never"),
        ("hold", "timeout", "timed out after 1ms"),
    ],
)
async def test_a_failure_has_the_type_of_what_was_raised(definition: str, error_type: str, description: str) -> None:
    recorded = Recorded()
    async with at_work(handlers_of(recorded), recorded.tracer) as (world, _):
        world.dispatch("a", definition, rules=Definition(name="hold", timeout_ms=1 if definition == "hold" else None))
        await until(lambda: bool(recorded.names))
    told = recorded.one(f"attempt {definition}")
    assert told.status.status_code is trace.StatusCode.ERROR
    assert told.status.description == description
    assert {(told.attributes or {})[name] for name in ("error.type", "hascheduler.outcome")} == {error_type, "failed"}


async def test_what_is_given_back_has_not_failed() -> None:
    recorded = Recorded()
    async with at_work(handlers_of(recorded), recorded.tracer) as (world, processor):
        world.dispatch("a", "hold")
        await until(lambda: world.jobs["a"].state is JobState.RUNNING)
        processor.drain()
        await until(lambda: bool(recorded.names))
    told = recorded.one("attempt hold")
    assert (told.attributes or {})["hascheduler.outcome"] == "given_back"
    assert told.status.is_unset


@pytest.mark.parametrize("definition", ["ask", "thread"])
async def test_the_lines_of_a_handler_carry_its_job_and_attempt_and_no_others(definition: str) -> None:
    async with at_work(handlers_of(Recorded()), NO_TRACING) as (world, _):
        for id in ("a", "b"):
            world.dispatch(id, definition)
        for id in ("a", "b"):
            await ended(world, id)
            outcome = world.jobs[id].outcome
            assert outcome is not None
            assert outcome.result == {"job": id, "attempt": 1}
    assert get_contextvars() == {}
