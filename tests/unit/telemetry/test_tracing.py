"""Spans as they are started, handed on and ended."""

import asyncio
import contextvars
from threading import Event, Thread

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from hascheduler.errors import Conflict, StoreUnavailable
from hascheduler.model.trace import TraceContext
from hascheduler.telemetry import otlp
from hascheduler.telemetry.tracing import JOB_ATTEMPT, JOB_ID, NO_TRACING, UNTRACED, SpanKind, traced
from tests.unit.telemetry.spans import CALLER, UNSAMPLED, Recorded, id_of, parent_of, span_id, trace_of

RABBIT = {"messaging.system": "rabbitmq", "messaging.destination.name": "hascheduler.dispatch"}


def test_a_span_is_within_its_parent_and_hands_itself_on() -> None:
    recorded = Recorded()
    span = recorded.tracer.start(SpanKind.SUBMIT, "log", CALLER, {"a": 1})
    span.set("b", "two")
    span.end()
    told = recorded.one("submit log")
    assert (trace_of(told), parent_of(told)) == (CALLER.trace_id, span_id(CALLER))
    assert span.context is not None
    assert (span.context.trace_id, span_id(span.context)) == (trace_of(told), id_of(told))
    assert dict(told.attributes or {}) == {"a": 1, "b": "two"}
    assert told.status.is_unset


def test_without_a_parent_a_trace_begins_whatever_is_current() -> None:
    recorded = Recorded()
    with recorded.handler.start_as_current_span("somebody else's"):
        recorded.tracer.start(SpanKind.FIRE, "log", None, {}).end()
    assert parent_of(recorded.one("fire log")) is None
    assert trace_of(recorded.one("fire log")) != trace_of(recorded.one("somebody else's"))


@pytest.mark.parametrize(
    ("kind", "role", "operation"),
    [
        (SpanKind.SUBMIT, trace.SpanKind.SERVER, None),
        (SpanKind.FIRE, trace.SpanKind.INTERNAL, None),
        (SpanKind.DISPATCH, trace.SpanKind.PRODUCER, ("send", "publish")),
        (SpanKind.ATTEMPT, trace.SpanKind.CONSUMER, ("process", "process")),
    ],
)
def test_messages_are_described_as_the_conventions_have_it(
    kind: SpanKind, role: trace.SpanKind, operation: tuple[str, str] | None
) -> None:
    recorded = Recorded(messaging=RABBIT)
    recorded.tracer.start(kind, "log", None, {JOB_ID: "a", JOB_ATTEMPT: 2}).end()
    told = recorded.one(f"{kind} log")
    described = {name: value for name, value in (told.attributes or {}).items() if name.startswith("messaging.")}
    assert told.kind is role
    if operation is None:
        assert described == {}
    else:
        type, name = operation
        more = {"messaging.operation.type": type, "messaging.operation.name": name, "messaging.message.id": "a/2"}
        assert described == {**RABBIT, **more}


def test_where_no_broker_is_nothing_is_said_of_messages() -> None:
    recorded = Recorded(messaging=None)
    recorded.tracer.start(SpanKind.ATTEMPT, "log", None, {JOB_ID: "a"}).end()
    assert dict(recorded.one("attempt log").attributes or {}) == {JOB_ID: "a"}


def test_a_failure_has_its_type_and_no_secrets() -> None:
    recorded = Recorded()
    span = recorded.tracer.start(SpanKind.ATTEMPT, "log", None, {})
    span.fail("app.NoAnswer", "no answer from mongodb://user:hunter2@db/")
    span.end()
    told = recorded.one("attempt log")
    assert (told.attributes or {})["error.type"] == "app.NoAnswer"
    assert told.status.status_code is trace.StatusCode.ERROR
    assert told.status.description == "no answer from mongodb://***@db/"


def test_what_the_sampler_leaves_out_is_handed_on_as_left_out() -> None:
    recorded = Recorded(sampler=ParentBased(ALWAYS_OFF))
    begun = recorded.tracer.start(SpanKind.FIRE, "log", None, {})
    within = recorded.tracer.start(SpanKind.ATTEMPT, "log", UNSAMPLED, {})
    for span in (begun, within):
        span.end()
        assert span.context is not None
        assert int(span.context.traceparent[-2:], 16) & 1 == 0
    assert recorded.names == []
    assert within.context is not None
    assert within.context.trace_id == UNSAMPLED.trace_id


async def test_within_the_block_others_nest_in_tasks_and_threads_alike() -> None:
    recorded = Recorded()

    async def task() -> None:
        with recorded.handler.start_as_current_span("in a task"):
            pass

    def thread() -> None:
        with recorded.handler.start_as_current_span("in a thread"):
            pass

    with traced(recorded.tracer, SpanKind.ATTEMPT, "log", CALLER, {}) as span:
        await asyncio.create_task(task())
        other = Thread(target=contextvars.copy_context().run, args=(thread,))
        other.start()
        await asyncio.to_thread(other.join)
    with recorded.handler.start_as_current_span("after it"):
        pass
    assert {parent_of(recorded.one(name)) for name in ("in a task", "in a thread")} == {span_id(span.context)}
    assert parent_of(recorded.one("after it")) is None


@pytest.mark.parametrize(
    ("error", "type"),
    [(StoreUnavailable("down"), "StoreUnavailable"), (ValueError(), "ValueError"), (Conflict("taken"), None)],
)
def test_what_a_block_raises_is_its_failure_but_for_the_callers_mistakes(error: Exception, type: str | None) -> None:
    recorded = Recorded()
    with pytest.raises(type_of(error)), traced(recorded.tracer, SpanKind.SUBMIT, "log", None, {}):
        raise error
    told = recorded.one("submit log")
    assert (told.attributes or {}).get("error.type") == type
    assert told.status.is_ok is (type is None)
    assert not told.events


def type_of(error: Exception) -> type[Exception]:
    return error.__class__


@pytest.mark.parametrize("parent", [None, CALLER, TraceContext(CALLER.traceparent, "a=1")])
def test_who_does_not_trace_hands_on_what_there_is(parent: TraceContext | None) -> None:
    assert not NO_TRACING.enabled
    with traced(NO_TRACING, SpanKind.SUBMIT, "log", parent, {}) as span:
        span.set("a", 1)
        span.fail("x")
        assert not trace.get_current_span().get_span_context().is_valid
    assert span.context == parent
    assert UNTRACED.context is None
    NO_TRACING.close()


def test_an_end_does_not_wait_for_a_collector_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "CLOSE_LIMIT_S", 0.01)

    class Silent(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None:
            waiting.set()
            for_ever.wait()

    waiting, for_ever = Event(), Event()
    recorded = Recorded()
    recorded.provider.add_span_processor(SimpleSpanProcessor(Silent()))
    recorded.tracer.close()
    assert waiting.wait(10)
    assert not for_ever.is_set()
    for_ever.set()
