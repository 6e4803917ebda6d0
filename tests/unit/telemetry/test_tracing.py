"""Spans as they are started, handed on, ended and sent, and the fields of log lines that name them."""

import asyncio
import contextvars
import json
import subprocess
import sys
from threading import Event, Thread

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from structlog.testing import capture_logs

from hascheduler.errors import Conflict, InvalidInput, StoreUnavailable
from hascheduler.model.trace import TraceContext
from hascheduler.telemetry import otlp
from hascheduler.telemetry.log_lines import Reminders
from hascheduler.telemetry.otlp import Exporter, otlp_tracer
from hascheduler.telemetry.tracing import JOB_ATTEMPT, JOB_ID, NO_TRACING, UNTRACED, SpanKind, traced
from tests.tiers import spread
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of
from tests.warm import warm

# Spans

RABBIT = {"messaging.system": "rabbitmq", "messaging.destination.name": "hascheduler.dispatch"}


def test_a_span_is_within_its_parent_and_hands_itself_on() -> None:
    recorded = Recorded()
    span = recorded.tracer.start(SpanKind.SUBMIT, "log", CALLER, {"a": 1})
    span.set("b", "two")
    span.end()
    ended = recorded.one("submit log")
    assert (trace_of(ended), parent_of(ended)) == (CALLER.trace_id, span_id(CALLER))
    assert span.context is not None
    assert (span.context.trace_id, span_id(span.context)) == (trace_of(ended), id_of(ended))
    assert dict(ended.attributes or {}) == {"a": 1, "b": "two"}
    assert ended.status.is_unset


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
    ended = recorded.one(f"{kind} log")
    described = {name: value for name, value in (ended.attributes or {}).items() if name.startswith("messaging.")}
    assert ended.kind is role
    if operation is None:
        assert described == {}
    else:
        type, name = operation
        more = {"messaging.operation.type": type, "messaging.operation.name": name, "messaging.message.id": "a/2"}
        assert described == {**RABBIT, **more}


def test_a_failure_has_its_type_and_no_secrets() -> None:
    recorded = Recorded()
    span = recorded.tracer.start(SpanKind.ATTEMPT, "log", None, {})
    span.fail("app.NoAnswer", "no answer from mongodb://user:hunter2@db/")
    span.end()
    ended = recorded.one("attempt log")
    assert (ended.attributes or {})["error.type"] == "app.NoAnswer"
    assert ended.status.status_code is trace.StatusCode.ERROR
    assert ended.status.description == "no answer from mongodb://***@db/"


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
    ("error", "error_type"),
    [(StoreUnavailable("down"), "StoreUnavailable"), (ValueError(), "ValueError"), (Conflict("taken"), None)],
)
def test_what_a_block_raises_is_its_failure_but_for_the_callers_mistakes(
    error: Exception, error_type: str | None
) -> None:
    recorded = Recorded()
    with pytest.raises(type(error)), traced(recorded.tracer, SpanKind.SUBMIT, "log", None, {}):
        raise error
    ended = recorded.one("submit log")
    assert (ended.attributes or {}).get("error.type") == error_type
    assert ended.status.is_ok is (error_type is None)
    assert not ended.events


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


# Sending


class Answering(SpanExporter):
    """Answers as it is configured to; an exception is raised."""

    def __init__(self, *answers: SpanExportResult | Exception) -> None:
        self.answers = list(answers)

    def export(self, spans: object) -> SpanExportResult:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


GOOD, BAD = SpanExportResult.SUCCESS, SpanExportResult.FAILURE


def test_an_outage_of_the_collector_is_logged_once_and_so_is_its_end() -> None:
    exporter = Exporter(Answering(GOOD, BAD, BAD, ValueError("nothing may come of it"), GOOD, GOOD, BAD))
    with capture_logs() as lines:
        results = [exporter.export([object(), object()]) for _ in range(7)]  # type: ignore[list-item]  # only counted
    assert results == [GOOD, BAD, BAD, BAD, GOOD, GOOD, BAD]
    logged = [(line["log_level"], line["event"], line.get("dropped")) for line in lines]
    again = ("info", "span_export_recovered", 6)
    assert logged == [("warning", "span_export_failed", None), again, ("warning", "span_export_failed", None)]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_a_protocol_that_is_not_spoken_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidInput, match=f"{variable}: '{value}' is not supported; expected http/protobuf"):
        otlp_tracer("hascheduler", "r1", None)


IMPORTED = ("hascheduler.telemetry.otlp", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
RESOURCE = """
from opentelemetry import trace
from hascheduler.telemetry.otlp import otlp_tracer
tracer = otlp_tracer("hascheduler", "r1", None, for_handlers=True)
given = trace.get_tracer_provider().resource.attributes
print(given["service.name"], given["service.instance.id"], given.get("team"), "service.version" in given)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "expected"),
    spread(
        [
            ({}, "hascheduler r1 None True"),
            ({"OTEL_SERVICE_NAME": "ours"}, "ours r1 None True"),
            ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=mine,team=a"}, "mine r1 a True"),
            ({"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=i7"}, "hascheduler i7 None True"),
        ],
        check=2,
    ),
)
def test_the_environment_names_the_process_and_else_it_names_itself(environment: dict[str, str], expected: str) -> None:
    ended = warm(*IMPORTED).run(RESOURCE, environment=environment)
    assert ended.stdout.strip() == expected, ended.stderr


WITHOUT = """
import sys
sys.modules["opentelemetry.sdk"] = sys.modules["opentelemetry.exporter"] = None  # the API comes with FastAPI
from hascheduler.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", spread([["processor", "processors.log"], ["serve"]], check=1))
def test_without_the_packages_the_refusal_says_what_to_install(command: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command, "--tracing", "otlp"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert "HASCHEDULER_TRACING" in ended.stderr
    assert "hascheduler[otel]" in ended.stderr


# Log lines

SCRIPT = """
import logging, threading, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
from hascheduler.telemetry.log_lines import name_process
from opentelemetry.sdk.trace import TracerProvider
configure_logging(read_settings(log_format="json"))
ours = structlog.get_logger("hascheduler.daemon.leadership.leader")
ours.info("before")
name_process(replica="r1.abcd")
ours.info("named")
logging.getLogger("somebody.else").warning("named too")
other = threading.Thread(target=lambda: logging.getLogger("somebody.else").warning("from a thread"))
other.start()
other.join()
ours.info("said", replica="another")
logging.getLogger("opentelemetry.exporter").error("a line for each batch that is lost")
tracer = TracerProvider(shutdown_on_exit=False).get_tracer("t")
with tracer.start_as_current_span("outer"):
    with tracer.start_as_current_span("inner") as span:
        ours.info("within")
        logging.getLogger("somebody.else").warning("within too")
context = span.get_span_context()
ours.info("after", expected=[f"{context.trace_id:032x}", f"{context.span_id:016x}"])
"""


@pytest.mark.slow
def test_every_line_names_its_process_and_its_span() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    lines = {line["event"]: line for line in map(json.loads, ended.stderr.splitlines())}
    assert list(lines) == ["before", "named", "named too", "from a thread", "said", "within", "within too", "after"]
    assert "replica" not in lines["before"]
    assert lines["said"]["replica"] == "another"
    assert {lines[event]["replica"] for event in ("named", "named too", "from a thread", "within")} == {"r1.abcd"}
    for event in ("within", "within too"):
        assert [lines[event]["trace_id"], lines[event]["span_id"]] == lines["after"]["expected"]
    assert not {"trace_id", "span_id"} & (lines["named"].keys() | lines["after"].keys())


def test_a_reason_is_logged_at_once_and_then_once_a_minute() -> None:
    reminders = Reminders()
    due_s = [at_s for at_s in range(0, 181, 2) if reminders.is_due("no answer", at_s * 1_000)]
    assert due_s == [0, 60, 120, 180]


def test_what_is_kept_has_a_bound() -> None:
    reminders = Reminders()
    assert all(reminders.is_due(f"reason {number}", 0) for number in range(1_000))
    assert len(reminders._logged_at) <= 16
