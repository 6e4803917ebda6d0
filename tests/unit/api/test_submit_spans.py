"""The trace of submitted jobs: the caller's or one of their own, stored with each job."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import MAX_PENDING, World
from tests.unit.api.requests import create
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of

BACKFILL = {"from": "2029-12-31T23:59:58Z", "to": "2029-12-31T23:59:59Z"}
REQUESTS: dict[str, tuple[object, str, int]] = {
    "/v1/jobs": ({"definition": "log"}, "submit log", 1),
    "/v1/jobs:batch": (
        {"jobs": [{"definition": "a", "ref": "x"}, 7, {"definition": "b", "depends_on": ["ref:x"]}]},
        "submit batch",
        2,
    ),
    "/v1/schedules/tick/trigger": (None, "submit log", 1),
    "/v1/schedules/tick/backfill": (BACKFILL, "submit backfill", 2),
}
"""By path: the body, the span, and how many jobs come of it."""


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
async def traced(app: Edge, world: World, recorded: Recorded) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a replica that traces."""
    app.services = replace(world.services(), tracer=recorded.tracer)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        yield client


def kept(world: World) -> list[Any]:
    return [job.get("trace") for job in world.everything()[Collection.JOBS]]


@pytest.mark.parametrize("path", REQUESTS)
async def test_jobs_belong_to_the_span_of_their_request_and_that_to_its_caller(
    traced: httpx.AsyncClient, world: World, recorded: Recorded, path: str
) -> None:
    body, name, jobs = REQUESTS[path]
    await create(traced)
    answer = await traced.post(path, json=body, headers=CALLER.headers())
    assert answer.status_code in (200, 201), answer.text
    span = recorded.one(name)
    assert (trace_of(span), parent_of(span)) == (CALLER.trace_id, span_id(CALLER))
    assert span.status.is_unset
    assert [trace[3:52] for trace in kept(world)] == [f"{trace_of(span)}-{id_of(span)}"] * jobs


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_replica_without_tracing_stores_the_callers_trace(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    body, _, jobs = REQUESTS[path]
    await create(client)
    for headers in (CALLER.headers(), {}):
        answer = await client.post(path, json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
    # A backfill makes the jobs of its times once.
    assert kept(world) == [CALLER.traceparent] * jobs + [None] * (0 if "backfill" in path else jobs)


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", "garbage")],
        [("traceparent", b"\xff\xfe")],
        [("traceparent", CALLER.traceparent.upper())],
        [("traceparent", CALLER.traceparent), ("traceparent", CALLER.traceparent)],
    ],
    ids=lambda headers: repr(headers)[:40],
)
async def test_a_malformed_trace_is_ignored_and_never_stored(
    client: httpx.AsyncClient, world: World, headers: list[tuple[str, Any]]
) -> None:
    answer = await client.post("/v1/jobs", json={"definition": "log"}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert kept(world) == [None]


async def test_an_outage_marks_the_span_as_failed_and_a_refusal_does_not(
    traced: httpx.AsyncClient, world: World, recorded: Recorded
) -> None:
    world.view.waiting["default"] = MAX_PENDING
    assert (await traced.post("/v1/jobs", json={"definition": "log"})).status_code in (429, 503)
    world.view.waiting.clear()
    await traced.post("/v1/jobs", json={"definition": "log"}, headers={"Idempotency-Key": "k"})
    other = await traced.post("/v1/jobs", json={"definition": "log", "payload": 1}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 409
    assert recorded.exporter.get_finished_spans()[-1].status.is_unset
    world.go_away()
    assert (await traced.post("/v1/jobs", json={"definition": "log"})).status_code == 503
    assert (recorded.exporter.get_finished_spans()[-1].attributes or {})["error.type"] == "StoreUnavailable"
