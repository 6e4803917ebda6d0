"""The SDK as a package: both schedulers alike, generated files up to date, requests within the caller's trace."""

import inspect
import runpy
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from hascheduler.client import AsyncScheduler, Scheduler
from tests.unit.api.doubles import the_routes
from tests.unit.client.faces import answered_by


def test_both_schedulers_have_the_same_operations() -> None:
    def operations(kind: type) -> dict[str, tuple[list[str], str | None]]:
        return {
            name: (list(inspect.signature(method).parameters), method.__doc__)
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("_") and name not in ("close", "aclose")
        }

    assert operations(Scheduler) == operations(AsyncScheduler)
    assert len(operations(Scheduler)) == 20


def test_what_follows_from_other_files_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The types from the OpenAPI document, the synchronous scheduler from the asynchronous one."""
    monkeypatch.setattr(sys, "argv", ["generate-client", "--check"])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr("hascheduler.api.app.create_routes", the_routes)  # which is made already
    script = runpy.run_path("scripts/generate-client")
    assert (script["main"](), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_request_is_part_of_the_callers_span(kind: str) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"answer": "ok"})

    face = answered_by(kind, answer, "http://one")
    with TracerProvider(shutdown_on_exit=False).get_tracer("caller").start_as_current_span("mine") as span:
        await face.ask.retry("job:1")
    await face.ask.retry("job:1")
    within, without = asked
    context = span.get_span_context()
    assert within.headers["traceparent"][3:52] == f"{context.trace_id:032x}-{context.span_id:016x}"
    assert "traceparent" not in without.headers
