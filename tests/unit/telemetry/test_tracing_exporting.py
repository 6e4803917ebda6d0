"""Sending spans: what the environment says, and a collector that is away."""

import subprocess
import sys

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from structlog.testing import capture_logs

from hascheduler.errors import InvalidInput
from hascheduler.telemetry.otlp import Exporter, otlp_tracer
from tests.tiers import spread
from tests.warm import warm


class Answering(SpanExporter):
    """Answers as it is told to; an exception is raised."""

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
    told = [(line["log_level"], line["event"], line.get("dropped")) for line in lines]
    again = ("info", "spans_exported_again", 6)
    assert told == [("warning", "spans_not_exported", None), again, ("warning", "spans_not_exported", None)]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_a_protocol_that_is_not_spoken_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidInput, match=f"{variable}: '{value}' is not spoken here; expected http/protobuf"):
        otlp_tracer("hascheduler", "r1", None)


def test_settings_that_the_sdk_refuses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with pytest.raises(InvalidInput, match="max_queue_size"):
        otlp_tracer("hascheduler", "r1", None)


IMPORTED = ("hascheduler.telemetry.otlp", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
RESOURCE = """
from opentelemetry import trace
from hascheduler.telemetry.otlp import otlp_tracer
tracer = otlp_tracer("hascheduler", "r1", None, for_handlers=True)
given = trace.get_tracer_provider().resource.attributes
print(given["service.name"], given["service.instance.id"], given.get("team"), "service.version" in given)
"""


@pytest.mark.parametrize(
    ("environment", "said"),
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
def test_the_environment_names_the_process_and_else_it_names_itself(environment: dict[str, str], said: str) -> None:
    ended = warm(*IMPORTED).run(RESOURCE, environment=environment)
    assert ended.stdout.strip() == said, ended.stderr


OWN_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
own = TracerProvider()
trace.set_tracer_provider(own)
from hascheduler.telemetry.otlp import otlp_tracer
otlp_tracer("hascheduler", "r1", None, for_handlers=True)
assert trace.get_tracer_provider() is own
"""


def test_a_handler_that_brought_its_own_provider_keeps_it() -> None:
    ended = warm(*IMPORTED).run(OWN_PROVIDER)
    assert (ended.returncode, ended.stderr) == (0, "")


WITHOUT = """
import sys
sys.modules["opentelemetry.sdk"] = sys.modules["opentelemetry.exporter"] = None  # the API comes with FastAPI
from hascheduler.__main__ import main
main()
"""


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


def test_nothing_of_it_is_imported_without_tracing() -> None:
    script = "import sys, hascheduler.assembly; print([name for name in sys.modules if 'opentelemetry.sdk' in name])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_a_collector_that_is_away_costs_spans_and_nothing_else() -> None:
    tried = Exporter(OTLPSpanExporter(endpoint="http://127.0.0.1:1/v1/traces", timeout=0.2))
    with capture_logs() as lines:
        assert tried.export([]) is BAD
    assert [line["event"] for line in lines] == ["spans_not_exported"]
