"""Hostile requests: each is answered with a problem that names the place, and nothing has been written."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from hascheduler.api.routing.route_rules import BODY_BYTES_MAX
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.api.requests import TICK, check_problem

EMPTY = World().everything()
JSON = {"content-type": "application/json"}


def tick(**changes: Any) -> str:
    return json.dumps({**TICK, **changes})


def trigger(**fields: Any) -> str:
    return tick(trigger={"type": "interval", "every": "1s", **fields})


def job(**fields: Any) -> str:
    return tick(job={"definition": "log", **fields})


def payload(text: str) -> str:
    return tick(job={"definition": "log", "payload": "HERE"}).replace('"HERE"', text)


BODIES: list[tuple[str, str | bytes, int, str | None]] = [
    ("empty", "", 400, None),
    ("cut off", '{"name": ', 400, None),
    ("two values", "{} {}", 400, None),
    ("a comment", "{} // hello", 400, None),
    ("a byte order mark", b"\xef\xbb\xbf{}", 400, None),
    ("not UTF-8", b'{"name": "\xff"}', 400, None),
    ("UTF-16", '{"name": "tick"}'.encode("utf-16"), 400, None),
    ("a raw control character", '{"name": "a\x01"}', 400, None),
    ("a list", "[]", 422, ""),
    ("null", "null", 422, ""),
    ("an empty object", "{}", 422, "name"),
    ("only a name", '{"name": "tick"}', 422, "trigger"),
    ("NaN", payload("NaN"), 422, "job.payload"),
    ("infinity", payload('{"a": [0, -Infinity]}'), 422, "job.payload.a.1"),
    ("a duplicate key below", payload('{"a": {"b": 1, "b": 2}}'), 422, "job.payload.a.b"),
    ("too deep", payload("[" * 40 + "]" * 40), 422, "job.payload" + ".0" * 30),
    ("far too deep", "[" * 200_000, 413, None),
    ("far too many objects deep", '{"a":' * 50_000, 413, None),
    ("half a surrogate pair in a key", payload(r'{"\udfff": 1}'), 422, "job.payload.\\udfff"),
    ("an operator as a key", payload('{"$where": "1"}'), 422, "job.payload.$where"),
    ("NUL in a key", payload(r'{"a\u0000b": 1}'), 422, "job.payload.a\0b"),
    ("an unknown field", tick(colour="red"), 422, "colour"),
    ("a stored field", tick(_id="other"), 422, "_id"),
    ("a revision", tick(rev=7), 422, "rev"),
    ("a tenant with a slash", job(tenant="a/b"), 422, "job.tenant"),
    ("a tenant that is an operator", job(tenant={"$ne": ""}), 422, "job.tenant.$ne"),
    ("resources that are a list", job(resources=[1]), 422, "job.resources"),
    ("half a resource", job(resources={"cpu": 0.5}), 422, "job.resources.cpu"),
    ("a resource of 2**62", job(resources={"cpu": 2**62}), 422, "job.resources.cpu"),
    ("slots as a resource", job(resources={"slots": 1}), 422, "job.resources.slots"),
    ("a resource without a name", job(resources={"": 1}), 422, "job.resources."),
    ("a resource with a dot", job(resources={"a.b": 1}), 422, "job.resources.a.b"),
    ("17 resources", job(resources={f"r{n}": 1 for n in range(17)}), 422, "job.resources"),
    ("an unknown trigger", tick(trigger={"type": "sunrise", "at": "dawn"}), 422, "trigger.type"),
    ("a trigger without a type", tick(trigger={"every": "1s"}), 422, "trigger.type"),
    ("a trigger that is a text", tick(trigger="1s"), 422, "trigger"),
    ("no every", tick(trigger={"type": "interval"}), 422, "trigger.every"),
    ("every of a megabyte of digits", trigger(every="1s" * 100_000), 422, "trigger.every"),
    ("an anchor without an offset", trigger(anchor="2030-01-01T00:00:00"), 422, "trigger.anchor"),
    ("an anchor in the year 9999", trigger(anchor="9999-12-31T23:59:59Z"), 422, "trigger.anchor"),
    ("a name that is a number", tick(name=7), 422, "name"),
    ("no definition", tick(job={}), 422, "job.definition"),
    ("a definition that is an operator", job(definition={"$ne": None}), 422, "job.definition.$ne"),
    ("an empty target", job(target=""), 422, "job.target"),
    ("a target of 257 characters", job(target="a" * 257), 422, "job.target"),
    ("a lane with a tab", job(lane="a\tb"), 422, "job.lane"),
    ("an empty lane", job(lane=""), 422, "job.lane"),
    ("a fairness key that is a list", job(fairness_key=[]), 422, "job.fairness_key"),
    ("priority 11", job(priority=11), 422, "job.priority"),
    ("an unknown mode", job(mode="urgent"), 422, "job.mode"),
    ("labels that are a list", tick(labels=["a"]), 422, "labels"),
    ("a label that is a number", tick(labels={"a": 1}), 422, "labels.a"),
    ("a label with a strange key", tick(labels={"a b": "c"}), 422, "labels.a b"),
    ("65 labels", tick(labels={f"l{n}": "" for n in range(65)}), 422, "labels"),
]


@pytest.mark.parametrize(
    ("body", "status", "path"), [pytest.param(*row[1:], id=row[0]) for row in spread(BODIES, check=48)]
)
async def test_a_hostile_schedule_is_refused(
    client: httpx.AsyncClient, world: World, body: str | bytes, status: int, path: str | None
) -> None:
    answer = await client.post("/v1/schedules", content=body, headers=JSON)
    check_problem(answer, status, path)
    assert world.everything() == EMPTY


REQUESTS: list[tuple[str, str, Any, int, str | None]] = [
    ("GET", "/v1/nothing", None, 404, None),
    ("GET", "/v1/schedules/", None, 404, None),
    ("GET", "/v1/schedules/a/b", None, 404, None),
    ("GET", "/v1/schedules/..%2f..%2fetc", None, 404, None),
    ("GET", "/v1/schedules/unknown", None, 404, None),
    ("GET", "/v1/schedules/%00", None, 404, None),
    ("GET", "/v1/schedules/%ff%fe", None, 404, None),
    ("GET", "/v1/schedules/$where", None, 404, None),
    ("DELETE", "/v1/schedules/unknown", None, 404, None),
    ("PUT", "/v1/schedules/tock", TICK, 422, "name"),
    ("PUT", "/v1/schedules/%24a", {k: v for k, v in TICK.items() if k != "name"}, 422, "name"),
    ("PATCH", "/v1/schedules/unknown", {}, 404, None),
    ("PATCH", "/v1/schedules/%24a", {}, 422, "name"),
    ("PATCH", "/v1/schedules/unknown", [], 422, ""),
    ("POST", "/v1/schedules/unknown/pause", None, 404, None),
    ("POST", "/v1/schedules/unknown/pause", {"because": ""}, 422, "because"),
    ("POST", "/v1/schedules/unknown/pause", {"because": "a\nb"}, 422, "because"),
    ("POST", "/v1/schedules/unknown/pause", [], 422, ""),
    ("POST", "/v1/schedules/unknown/resume", None, 404, None),
    ("POST", "/v1/schedules/unknown/resume", {"catch_up": "yes"}, 422, "catch_up"),
    ("POST", "/v1/schedules/unknown/trigger", None, 404, None),
    ("POST", "/v1/schedules/unknown/trigger", {"overlap": "sometimes"}, 422, "overlap"),
    ("POST", "/v1/schedules/unknown/trigger", {"definition": "other"}, 422, "definition"),
    ("POST", "/v1/schedules/unknown/backfill", {}, 422, "from"),
    ("GET", "/v1/schedules/unknown/backfill", None, 405, None),
    ("GET", "/v1/schedules/unknown/preview", None, 404, None),
    ("GET", "/v1/schedules/unknown/preview?count=0", None, 422, "count"),
    ("GET", "/v1/schedules/unknown/preview?count=1001", None, 422, "count"),
    ("GET", "/v1/schedules/unknown/preview?from=now", None, 422, "from"),
    ("POST", "/v1/schedules/unknown/preview", {}, 404, None),
    ("POST", "/v1/schedules/preview", {}, 422, "trigger"),
    ("POST", "/v1/schedules/preview?from=2030-01-01T00:00:00Z", {}, 422, "from"),
    ("GET", "/v1/schedules/unknown/verdicts", None, 404, None),
    ("GET", "/v1/schedules/unknown/verdicts?verdict=lost", None, 422, "verdict.0"),
    ("GET", "/v1/schedules/unknown/verdicts?after=soon", None, 422, "after"),
    ("GET", "/v1/schedules/unknown/verdicts?after=" + "9" * 40, None, 422, "after"),
    ("GET", "/v1/schedules?label=team", None, 422, "label.0"),
    ("GET", "/v1/schedules?" + "&".join(f"label=l{n}=" for n in range(65)), None, 422, "label"),
    ("POST", "/v1/schedules/tick", {}, 405, None),
    ("DELETE", "/v1/cluster", None, 405, None),
    ("GET", "/v1/schedules?limit=0", None, 422, "limit"),
    ("GET", "/v1/schedules?limit=", None, 422, "limit"),
    ("GET", "/v1/schedules?offset=3", None, 422, "offset"),
    ("GET", f"/v1/schedules?after={'a' * 600}", None, 422, "after"),
    ("GET", "/v1/jobs?state=sleeping", None, 422, "state.0"),
    ("GET", "/v1/jobs?state[$ne]=pending", None, 422, "state[$ne]"),
    ("GET", "/v1/jobs?stat=pending", None, 422, "stat"),
    ("GET", "/v1/jobs/unknown", None, 404, None),
    ("POST", "/v1/jobs/unknown/cancel", None, 404, None),
    ("GET", "/v1/jobs/unknown/cancel", None, 405, None),
    ("POST", "/v1/jobs", {}, 422, "definition"),
    ("POST", "/v1/jobs", {"definition": "log", "id": "mine"}, 422, "id"),
    ("POST", "/v1/jobs", {"definition": "log", "state": "succeeded"}, 422, "state"),
    ("POST", "/v1/jobs", {"definition": "log", "submitted_at_ms": 0}, 422, "submitted_at_ms"),
    ("POST", "/v1/jobs", {"definition": "log", "not_before": "soon"}, 422, "not_before"),
    ("POST", "/v1/jobs", {"definition": "log", "not_before": 7}, 422, "not_before"),
    ("POST", "/v1/jobs", {"definition": "log", "labels": {"a": None}}, 422, "labels.a"),
    ("PUT", "/v1/definitions/log", {"max_concurrency": 0}, 422, "max_concurrency"),
    ("PUT", "/v1/definitions/log", {"retry": {"attempts": 0}}, 422, "retry.attempts"),
    ("PUT", "/v1/definitions/log", {"retry": {"attempts": 101}}, 422, "retry.attempts"),
    ("PUT", "/v1/definitions/log", {"max_concurrency": "none"}, 422, "max_concurrency"),
    ("PUT", "/v1/definitions/log", {"default_cost": "8d"}, 422, "default_cost"),
    ("PUT", "/v1/definitions/log", {"default_cost": {"s": 1}}, 422, "default_cost"),
    ("PUT", "/v1/definitions/log", {"conflict_group": ""}, 422, "conflict_group"),
    ("PUT", "/v1/definitions/log", {"conflict_group": ["git"]}, 422, "conflict_group"),
    ("PUT", "/v1/definitions/log", {"conflict_scope": "all"}, 422, "conflict_scope"),
    ("PUT", "/v1/definitions/log", {"conflict_scope": ["tenant"]}, 422, "conflict_scope"),
    ("PUT", "/v1/definitions/log", {"tier": 0}, 422, "tier"),
    ("PUT", "/v1/definitions/log", {"tier": "high"}, 422, "tier"),
    ("PUT", "/v1/definitions/log", {"rate_limit": 100}, 422, "rate_limit"),
    ("PUT", "/v1/definitions/log", {"rate_limit": {"count": 100}}, 422, "rate_limit.per"),
    ("PUT", "/v1/definitions/log", {"rate_limit": {"count": 0, "per": "1s"}}, 422, "rate_limit.count"),
    ("PUT", "/v1/definitions/log", {"rate_limit": {"count": 1, "per": 0}}, 422, "rate_limit.per"),
    ("PUT", "/v1/definitions/log", {"rate_limit": {"count": 1, "per": "1s", "burst": 2}}, 422, "rate_limit.burst"),
    ("PUT", "/v1/definitions/log", {"key_limits": {}}, 422, "key_limits"),
    ("PUT", "/v1/definitions/log", {"key_limits": [{"key": "payload", "max_concurrency": 1}]}, 422, "key_limits.0.key"),
    (
        "PUT",
        "/v1/definitions/log",
        {"key_limits": [{"key": "target", "max_concurrency": 0}]},
        422,
        "key_limits.0.max_concurrency",
    ),
    (
        "PUT",
        "/v1/definitions/log",
        {"key_limits": [{"key": f"payload.{n}", "max_concurrency": 1} for n in range(5)]},
        422,
        "key_limits",
    ),
    ("PUT", "/v1/definitions/log", {"unique": 5}, 422, "unique"),
    ("PUT", "/v1/definitions/log", {"unique": {"by": "target"}}, 422, "unique.by"),
    ("PUT", "/v1/definitions/log", {"unique": {"by": [f"payload.{n}" for n in range(5)]}}, 422, "unique.by"),
    ("PUT", "/v1/definitions/log", {"unique": {"on_duplicate": "drop"}}, 422, "unique.on_duplicate"),
    ("PUT", "/v1/definitions/log", {"unique": {"on_duplicate": ["replace"]}}, 422, "unique.on_duplicate"),
    ("PUT", "/v1/definitions/log", {"unique": {"on_duplicate": "replace", "period": "1h"}}, 422, "unique.period"),
    ("PUT", "/v1/definitions/log", {"unique": {"period": 0}}, 422, "unique.period"),
    ("PUT", "/v1/definitions/log", {"unique": {"max_wait": "1h"}}, 422, "unique.max_wait"),
    (
        "PUT",
        "/v1/definitions/log",
        {"unique": {"on_duplicate": "debounce", "period": "1m", "max_wait": "71d"}},
        422,
        "unique.max_wait",
    ),
    ("PUT", "/v1/definitions/log", {"unique": {"key": "target"}}, 422, "unique.key"),
    ("PUT", "/v1/definitions/log", {"resources": {"slots": 1}}, 422, "resources.slots"),
    ("PUT", "/v1/definitions/log", {"resources": {"cpu": "2"}}, 422, "resources.cpu"),
    ("PUT", "/v1/definitions/log", {"name": "log"}, 422, "name"),
    ("POST", "/v1/cluster/pause", None, 415, None),
    ("POST", "/v1/cluster/pause", {}, 422, "because"),
    ("POST", "/v1/cluster/pause", {"because": {"$gt": ""}}, 422, "because.$gt"),
    ("POST", "/v1/cluster/pause", {"because": "a", "schedules_only": 1}, 422, "schedules_only"),
    ("POST", "/v1/cluster/pause", {"because": "a", "by": "me"}, 422, "by"),
    ("POST", "/v1/processors/unknown/drain", None, 404, None),
    ("POST", "/v1/processors/%00/drain", None, 404, None),
    ("POST", f"/v1/processors/{'p' * 257}/drain", None, 422, "name"),
    ("POST", "/v1/processors/p-1/drain", {"because": "a\nb"}, 422, "because"),
    ("POST", "/v1/processors/p-1/drain", [], 422, ""),
    ("POST", "/v1/processors/unknown/undrain", None, 404, None),
    ("PUT", "/v1/lanes/*", {}, 422, "name"),
    ("PUT", "/v1/lanes/a", [], 422, ""),
    ("PUT", "/v1/lanes/a", {"rev": 7}, 422, "rev"),
    ("PUT", "/v1/lanes/a", {"weight": 0}, 422, "weight"),
    ("PUT", "/v1/lanes/a", {"weight": True}, 422, "weight"),
    ("PATCH", "/v1/lanes/unknown", {}, 404, None),
    ("PATCH", "/v1/lanes/*", {}, 422, "name"),
    ("PATCH", "/v1/lanes/unknown", 7, 422, ""),
    ("DELETE", "/v1/lanes/unknown", None, 404, None),
    ("GET", "/v1/lanes/unknown", None, 404, None),
    ("GET", "/v1/lanes/%00", None, 404, None),
    ("POST", "/v1/lanes/a", {}, 405, None),
    ("GET", "/v1/lanes?limit=0", None, 422, "limit"),
    ("GET", "/v1/lanes?label=a=b", None, 422, "label"),
    ("PUT", "/v1/tenants/*", {}, 422, "name"),
    ("PUT", "/v1/tenants/a", [], 422, ""),
    ("PUT", "/v1/tenants/a", {"rev": 7}, 422, "rev"),
    ("PUT", "/v1/tenants/a", {"max_running": 0}, 422, "max_running"),
    ("PUT", "/v1/tenants/a", {"max_running": True}, 422, "max_running"),
    ("PATCH", "/v1/tenants/unknown", {}, 404, None),
    ("PATCH", "/v1/tenants/*", {}, 422, "name"),
    ("PATCH", "/v1/tenants/unknown", 7, 422, ""),
    ("DELETE", "/v1/tenants/unknown", None, 404, None),
    ("GET", "/v1/tenants/unknown", None, 404, None),
    ("GET", "/v1/tenants/%00", None, 404, None),
    ("POST", "/v1/tenants/a", {}, 405, None),
    ("GET", "/v1/tenants?limit=0", None, 422, "limit"),
    ("GET", "/v1/tenants?label=a=b", None, 422, "label"),
    ("PUT", "/v1/lanes/a", {"promote_after": "999ms"}, 422, "promote_after"),
    ("PUT", "/v1/lanes/a", {"promote_after": {"0": "1m"}}, 422, "promote_after"),
    ("PUT", "/v1/lanes/a", {"policy": "luck"}, 422, "policy"),
    ("PUT", "/v1/lanes/a", {"policy": "x," * 50_000}, 422, "policy"),
    ("GET", "/v1/jobs/unknown/why", None, 404, None),
    ("GET", "/v1/jobs/%00/why", None, 404, None),
    ("POST", "/v1/jobs/unknown/why", {}, 405, None),
    ("POST", "/v1/jobs", {"definition": "log", "tenant": ""}, 422, "tenant"),
    ("POST", "/v1/jobs", {"definition": "log", "resources": {"cpu": "1"}}, 422, "resources.cpu"),
    ("POST", "/metrics", {}, 405, None),
    ("PUT", "/v1/definitions/*", {}, 422, "name"),
    ("PATCH", "/v1/definitions/unknown", {}, 404, None),
    ("PATCH", "/v1/definitions/*", {}, 422, "name"),
    ("DELETE", "/v1/definitions/unknown", None, 404, None),
    ("GET", "/v1/definitions/unknown", None, 404, None),
]


@pytest.mark.parametrize("row", spread(REQUESTS, check=94), ids=lambda row: f"{row[0]} {row[1][:40]} {row[4]}")
async def test_a_hostile_request_is_refused(
    client: httpx.AsyncClient, world: World, row: tuple[str, str, Any, int, str | None]
) -> None:
    method, path, body, status, field = row
    answer = await client.request(method, path, json=body)
    check_problem(answer, status, field)
    assert world.everything() == EMPTY


@pytest.mark.parametrize("type", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=x"])
async def test_only_json_is_taken(client: httpx.AsyncClient, world: World, type: str) -> None:
    check_problem(await client.post("/v1/schedules", content=tick(), headers={"content-type": type}), 415, None)
    assert world.everything() == EMPTY


async def test_an_encoded_body_is_refused(client: httpx.AsyncClient) -> None:
    headers = {**JSON, "content-encoding": "gzip"}
    check_problem(await client.post("/v1/schedules", content=tick(), headers=headers), 415, None)


async def test_a_body_that_declares_too_much_is_refused(client: httpx.AsyncClient, world: World) -> None:
    body = payload('"' + "x" * BODY_BYTES_MAX + '"')
    check_problem(await client.post("/v1/schedules", content=body, headers=JSON), 413, None)
    assert world.everything() == EMPTY


async def test_a_body_that_never_ends_is_cut(client: httpx.AsyncClient, world: World) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    check_problem(await client.post("/v1/schedules", content=endless(), headers=JSON), 413, None)
    assert sent <= BODY_BYTES_MAX + 2 * 65_536
    assert world.everything() == EMPTY


async def test_all_mistakes_are_reported_at_once(client: httpx.AsyncClient) -> None:
    body = {"name": "", "trigger": {"type": "interval", "every": "x"}, "job": {"priority": 11}, "x": 1}
    answer = await client.post("/v1/schedules", json=body)
    paths = {error["path"] for error in answer.json()["errors"]}
    assert paths == {"name", "trigger.every", "job.definition", "job.priority", "x"}


async def test_every_mistake_says_what_would_be_right(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/schedules", content=trigger(every="50ms"), headers=JSON)
    [error] = answer.json()["errors"]
    assert error["path"] == "trigger.every"
    assert "50ms" in error["problem"]
    assert "100ms" in error["expected"]


async def test_a_wrong_method_is_answered_with_the_allowed_ones(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/schedules/tick")
    assert answer.headers["allow"] == "GET, PUT, PATCH, DELETE"
