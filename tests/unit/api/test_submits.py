"""Submits: ``Idempotency-Key``, which requests are the same one and for how long, dependencies and traces."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from pydantic import Field, create_model

from hascheduler.api.edge import Edge
from hascheduler.api.routing.route_rules import IDEMPOTENCY_KEY as HEADER
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.schema import job as job_schema
from hascheduler.schema.job import SubmitJobBody
from tests.unit.api.doubles import World, description, operations
from tests.unit.api.requests import Client, check_problem, create, get
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of

LOG: dict[str, Any] = {"definition": "log"}
HONOURING = {
    ("POST", "/v1/jobs"), ("POST", "/v1/jobs:batch"), ("POST", "/v1/jobs/{id}/retry"), ("POST", "/v1/schedules"),
    ("POST", "/v1/schedules:trigger"), ("POST", "/v1/schedules/{name}/trigger"),
}  # fmt: skip
WRITES = [
    (method, path, any(each["name"] == HEADER for each in operation.get("parameters", ())))
    for method, path, operation in operations()
    if method not in ("GET", "HEAD", "OPTIONS")
]
"""And whether each documents the header."""


@pytest.mark.parametrize(("method", "path", "documented"), WRITES)
async def test_a_key_is_honoured_or_refused_and_never_ignored(
    client: Client, world: World, method: str, path: str, documented: bool
) -> None:
    await create(client)
    before = world.everything()
    url = path.replace("{name}", "tick").replace("{id}", "job:1")
    answer = await client.request(method, url, json=example(method, path), headers={HEADER: "k"})
    refused = answer.status_code == 400 and answer.json()["type"] == "urn:hascheduler:problem:unexpected-header"
    assert refused == (not documented), answer.text
    if refused:
        problem = check_problem(answer, 400, HEADER)
        assert HEADER in problem["detail"]
        for honouring in HONOURING:
            assert " ".join(honouring) in problem["errors"][0]["expected"]
        assert world.everything() == before


def example(method: str, path: str) -> Any:
    """A body that the route takes; None where it takes none."""
    document = description()
    body = document["paths"][path][method.lower()].get("requestBody")
    if body is None:
        return None
    content = body["content"]["application/json"]
    schema = content["schema"]
    schema = next((one for one in schema.get("anyOf", ()) if "$ref" in one), schema)
    named = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema)
    return (named.get("examples") or [{}])[0]


OF_0_2_0: list[tuple[dict[str, Any], str]] = [
    (
        {**LOG, "priority": 5, "mode": "queued", "depends_on": [], "labels": {}, "payload": None},
        "092b96ac6b073dadf6c52776cbd35935df3b586d6bb5871ea09e45b3e11e4a75",
    ),
    (
        {**LOG, "payload": {"b": [1, 2.5, "ä"], "a": None}, "labels": {"team": "a"}, "resources": {"cpu": 2}},
        "0517f789e25554aed9b120a751ca22a9ba25dcbaf1ba037c1aadb8c555f8d2f4",
    ),
    (
        {**LOG, "not_before": "2030-01-01T01:00:00+01:00", "expires_at": "2031-01-01T00:00:00Z", "fairness_key": ""},
        "8cca789e5bf32db48583b66416d5390261423313d664075e7f36bdcfad355c3d",
    ),
]
"""Bodies, and the hash that 0.2.0 makes of each: all fields that it has, with their defaults."""


@pytest.mark.parametrize(("body", "hashed"), OF_0_2_0)
async def test_each_release_knows_the_submits_of_the_other(
    client: Client, world: World, body: dict[str, Any], hashed: str
) -> None:
    """What is stored is what 0.2.0 compares with, so it does not matter which of the two was asked first."""
    first = await client.post("/v1/jobs", json=body, headers={HEADER: "k"})
    assert (first.status_code, "idempotency-replayed" in first.headers) == (201, False)
    assert world.job(first.json()["id"])["request_hash"] == hashed
    before = world.everything()
    again = await client.post("/v1/jobs", json=body, headers={HEADER: "k"})
    assert (again.status_code, again.headers["idempotency-replayed"], again.json()) == (200, "true", first.json())
    assert again.headers["location"] == first.headers["location"]
    assert world.everything() == before


async def test_an_atomic_batch_that_was_sent_before_a_field_came_is_the_same_after(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"jobs": [{**LOG, "ref": "a"}, {**LOG, "depends_on": ["ref:a"]}], "atomic": True}
    first = await client.post("/v1/jobs:batch", json=body, headers={HEADER: "k"})
    newer = create_model("SubmitJobBody", __base__=SubmitJobBody, colour=(str | None, Field(default=None)))
    monkeypatch.setattr(job_schema, "SubmitJobBody", newer)
    again = await client.post("/v1/jobs:batch", json=body, headers={HEADER: "k"})
    assert (again.status_code, again.json()["batch"]) == (200, first.json()["batch"]), again.text
    assert [one["job"] for one in again.json()["results"]] == [one["job"] for one in first.json()["results"]]


def batch_of(*payloads: object, atomic: bool) -> dict[str, Any]:
    return {"jobs": [{**LOG, "payload": payload} for payload in payloads], "atomic": atomic}


async def submit_batch(client: Client, body: dict[str, Any]) -> Any:
    answer = await client.post("/v1/jobs:batch", json=body, headers={HEADER: "nightly"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(answer: dict[str, Any]) -> list[str]:
    return [one["job"] for one in answer["results"]]


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("forgets", [False, True])
async def test_a_key_that_is_used_again_after_its_day_makes_another_batch(
    client: Client, world: World, atomic: bool, forgets: bool
) -> None:
    """Day after day, at the same time: each batch has an id of its own, and a repeated request gets that again.

    ``forgets``: the jobs of the day before are deleted meanwhile.
    """
    batches: list[dict[str, Any]] = []
    for day in range(5):
        batches.append(await submit_batch(client, batch_of(day, "x", atomic=atomic)))
        for hours in (0, 3, 20):
            world.clock.now = WallMs(world.clock.now + hours * 3_600_000)
            if forgets and hours == 3 and day:
                for id in ids(batches[day - 1]):
                    world.database.delete(Collection.JOBS, id)
            assert (await submit_batch(client, batch_of(day, "x", atomic=atomic)))["batch"] == batches[-1]["batch"]
        world.clock.now = WallMs(world.clock.now + 3_600_000)
    assert batches[0]["batch"] == "batch:" + hashlib.sha256(b"*/nightly").hexdigest()[:32]  # as 0.2.0 has it
    assert len({one["batch"] for one in batches}) == len(batches)
    for one in batches[-2:]:
        found = await get(client, f"/v1/jobs?batch={one['batch']}")
        assert {job["id"] for job in found["items"]} <= set(ids(one))
    assert not {*ids(batches[-1])} & {*ids(batches[-2])}


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
async def traced(app: Edge, world: World, recorded: Recorded) -> AsyncIterator[Client]:
    app.services = replace(world.services(), tracer=recorded.tracer)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://api") as client:
        yield client


def kept(world: World) -> list[Any]:
    return [job.get("trace") for job in world.everything()[Collection.JOBS]]


@pytest.mark.parametrize("path", REQUESTS)
async def test_jobs_belong_to_the_span_of_their_request_and_that_to_its_caller(
    traced: Client, world: World, recorded: Recorded, path: str
) -> None:
    body, name, jobs = REQUESTS[path]
    await create(traced)
    answer = await traced.post(path, json=body, headers=CALLER.headers())
    assert answer.status_code in (200, 201), answer.text
    span = recorded.one(name)
    assert (trace_of(span), parent_of(span)) == (CALLER.trace_id, span_id(CALLER))
    assert span.status.is_unset
    assert [trace[3:52] for trace in kept(world)] == [f"{trace_of(span)}-{id_of(span)}"] * jobs


async def test_without_tracing_the_callers_trace_is_stored_unless_it_is_malformed(client: Client, world: World) -> None:
    for values in ([CALLER.traceparent], [b"\xff\xfe"], [CALLER.traceparent] * 2):
        headers: list[Any] = [("traceparent", value) for value in values]
        assert (await client.post("/v1/jobs", json={"definition": "log"}, headers=headers)).status_code == 201
    assert kept(world) == [CALLER.traceparent, None, None]
