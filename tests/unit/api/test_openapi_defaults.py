"""A default that the OpenAPI document names may be sent, and means what leaving it out means."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any
from unittest.mock import patch

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.recording import RecordingHeading
from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World, description
from tests.unit.api.requests import TICK, create, post
from tests.unit.api.work import attempt, promised, registered, started

DOCUMENT = description()
SCHEMAS = DOCUMENT["components"]["schemas"]
Path = tuple[str | int, ...]
Prepare = Callable[[httpx.AsyncClient, World], Awaitable[dict[str, Any]]]

JOB = "job:0002"
ANCHOR = "2029-12-31T00:00:00Z"
TRIGGERS: list[dict[str, Any]] = [
    {"type": "interval", "every": "1h", "anchor": ANCHOR},
    {"type": "cron", "expression": "30 2 * * *"},
    {"type": "times", "at": [format_instant(NOW + 86_400_000)]},
    {"type": "once", "at": format_instant(NOW + 86_400_000)},
    {"type": "cron", "expression": "30 2 * * *", "calendars": {"only": ["days"]}},
    {"type": "cron", "expression": "30 2 * * *", "calendars": {"except": ["days"]}},
    {
        "type": "any",
        "of": [{"type": "cron", "expression": "30 2 * * *"}, {"type": "cron", "expression": "0 11 * * sat"}],
    },
]


async def made_days(client: httpx.AsyncClient) -> None:
    assert (await client.put("/v1/calendars/days", json={"weekdays": ["mon"]})).status_code == 201


def told(body: dict[str, Any]) -> Prepare:
    """Where nothing has to be there before, but what a trigger may name."""

    async def prepare(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
        await made_days(client)
        return body

    return prepare


def with_schedule(body: dict[str, Any], *, paused: bool = False) -> Prepare:
    async def prepare(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
        await made_days(client)
        await create(client, trigger=TRIGGERS[0], paused=paused)
        world.clock.now = type(NOW)(NOW + 7_200_000)
        return body

    return prepare


def with_job(body: dict[str, Any]) -> Prepare:
    async def prepare(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
        await post(client, "/v1/jobs", {"definition": "log", "labels": {"team": "a"}}, 201)
        return body

    return prepare


async def with_failed_jobs(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    """One named as the path says, and one that waited for it."""
    batch = {"jobs": [{"ref": "a", "definition": "log"}, {"definition": "log", "depends_on": ["ref:a"]}]}
    first, second = [one["job"] for one in (await post(client, "/v1/jobs:batch", batch))["results"]]
    assert first == JOB
    world.rewrite_job(first, state="failed", error="it broke")
    world.rewrite_job(second, state="failed", error=f"its dependency {first} failed")
    return {}


async def fetches(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    processor = await registered(client)
    await promised(client, world, processor)
    return {"processor": processor}


async def beats_idle(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    return {"processor": await registered(client)}


async def beats(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    processor = await registered(client)
    named = await started(client, world, processor)
    return {"processor": processor, "running": [{**attempt(named), "percent": 40}]}


async def finishes(client: httpx.AsyncClient, world: World) -> dict[str, Any]:
    return {**await started(client, world, await registered(client)), "outcome": "failed", "error": "no"}


GRAPH = [{"ref": "a", "definition": "log"}, {"ref": "b", "definition": "log", "depends_on": ["a"]}]
SCHEDULES = [
    *({**TICK, "trigger": trigger} for trigger in TRIGGERS),
    {"name": TICK["name"], "trigger": TRIGGERS[0], "jobs": GRAPH},
]
MATCHING: dict[str, Any] = {"filter": {"definition": "log"}}
PREPARED: dict[str, list[Prepare]] = {
    "submit_job": [told({"definition": "log"})],
    "retry_job": [with_failed_jobs],
    "submit_batch": [told({"jobs": [{"definition": "log"}]})],
    "cancel_jobs": [with_job(MATCHING)],
    "reprioritize_jobs": [with_job({**MATCHING, "priority": 9})],
    "retry_jobs": [with_job(MATCHING)],
    "pause_schedules": [with_schedule({"filter": {"text": "tick"}})],
    "resume_schedules": [with_schedule({"filter": {"text": "tick"}}, paused=True)],
    "reset_schedules": [with_schedule({"filter": {"text": "tick"}})],
    "trigger_schedules": [with_schedule({"filter": {"text": "tick"}})],
    "register_processor": [told({"name": "far", "definitions": ["log"]})],
    "fetch_work": [fetches],
    "beat": [beats_idle, beats],
    "finish_attempt": [finishes],
    "create_schedule": [told(body) for body in SCHEDULES],
    "replace_schedule": [with_schedule(body) for body in SCHEDULES],
    "resume_schedule": [with_schedule({}, paused=True)],
    "reset_schedule": [with_schedule({})],
    "backfill_schedule": [with_schedule({"from": format_instant(NOW), "to": format_instant(NOW + 7_200_000)})],
    "preview_trigger": [told({"trigger": trigger}) for trigger in TRIGGERS],
    "put_definition": [told({}), told({"unique": {}})],
    "put_lane": [told({})],
    "pause_all": [told({"because": "it burns"})],
    "put_calendar": [told({})],
}
"""For each operation whose body has defaults, what has to be there before, and the least that may be sent."""


BODIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method, path, operation["requestBody"]["content"]["application/json"]["schema"])
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if "requestBody" in operation
}


def forms(schema: Mapping[str, Any], value: object = None) -> Iterator[str]:
    """The names of the models that this schema refers to itself; of a choice by `type`, the one of ``value``."""
    mapping = schema.get("discriminator", {}).get("mapping")
    if mapping is not None and isinstance(value, dict):
        yield mapping[value["type"]].rpartition("/")[2]
    elif "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    else:
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from forms(one)


def defaults(schema: Mapping[str, Any], value: Any, path: Path = ()) -> Iterator[tuple[str, Path, Any]]:
    """Each default that ``value`` leaves out, at any depth, with its place; those of what is left out too."""
    if isinstance(value, list):
        for one in schema.get("anyOf", [schema]):
            for index, item in enumerate(value if "items" in one else ()):
                yield from defaults(one["items"], item, (*path, index))
    if not isinstance(value, dict):
        return
    for name in forms(schema, value):
        for field, each in SCHEMAS[name].get("properties", {}).items():
            if field not in value and "default" in each:
                yield f"{name}.{field}", (*path, field), each["default"]
                if isinstance(each["default"], dict):
                    yield from defaults(each, {}, (*path, field))
            elif field in value:
                yield from defaults(each, value[field], (*path, field))


def with_default(body: dict[str, Any], path: Path, default: Any) -> dict[str, Any]:
    changed = deepcopy(body)
    inner: Any = changed
    for part in path[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[part]
    inner[path[-1]] = deepcopy(default)
    return changed


async def sent(
    app: Edge, operation: str, prepare: Prepare, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> tuple[dict[str, Any], Any]:
    """The prepared body, and what comes of it after ``change``: the answer and all that is stored then."""
    world = World()
    app.services = world.services()
    method, path, _ = BODIES[operation]
    with patch("hascheduler.api.work.routes.token_hex", lambda size: "0" * size):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
            body = await prepare(client, world)
            headers = {"idempotency-key": "a"} if operation == "trigger_schedules" else {}
            answer = await client.request(method, path.format(name="tick", id=JOB), json=change(body), headers=headers)
    assert answer.status_code in (200, 201, 202), answer.text
    return body, (answer.status_code, answer.json(), world.everything())


def documented(schema: object) -> set[str]:
    """All defaults of the models that bodies of this schema consist of."""
    names: set[str] = set()
    pending = [schema]
    while pending:
        match pending.pop():
            case {"$ref": str(reference)} if reference.rpartition("/")[2] not in names:
                names.add(reference.rpartition("/")[2])
                pending.append(SCHEMAS[reference.rpartition("/")[2]])
            case dict() as inner:
                pending += inner.values()
            case list() as inner:
                pending += inner
    properties = ((name, SCHEMAS[name].get("properties", {})) for name in names)
    return {f"{name}.{field}" for name, fields in properties for field, each in fields.items() if "default" in each}


@pytest.mark.parametrize("operation", [name for name, (_, _, schema) in BODIES.items() if documented(schema)])
async def test_a_default_that_is_sent_means_what_leaving_it_out_means(app: Edge, operation: str) -> None:
    schema = BODIES[operation][2]
    tried: set[str] = set()
    for prepare in PREPARED[operation]:
        body, left_out = await sent(app, operation, prepare, deepcopy)
        for name, place, default in defaults(schema, body):
            _, said = await sent(app, operation, prepare, partial(with_default, path=place, default=default))
            assert said == left_out, (name, default)
            tried.add(name)
    assert tried == documented(schema)


async def test_a_recording_without_a_span_takes_the_one_that_is_documented(
    client: httpx.AsyncClient, world: World
) -> None:
    [parameter] = DOCUMENT["paths"]["/v1/cluster/recording"]["get"]["parameters"]
    world.view.heading = RecordingHeading(NOW, "replica-1.aa", 7, DispatchConfig())
    for params in ({}, {"for": parameter["schema"]["default"]}):
        assert (await client.get("/v1/cluster/recording", params=params)).status_code == 200
        assert world.view.recorded_for_ms == 30_000
