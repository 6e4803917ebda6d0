"""What the caller is within when it asks: the request says so, and only then."""

from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from tests.unit.client.faces import answered_by

JOB: dict[str, Any] = {"id": "job:1", "state": "pending", "definition": "log"}


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
