"""Hostile requests: each is answered with a problem that names the place, and nothing has been written."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from hascheduler.api.routing.route_rules import BODY_BYTES_MAX
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.api.hostile_rows import BATCH_ITEMS, ROWS, Row
from tests.unit.api.hostile_rows import job as hostile_job
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


def check_secretive(answer: httpx.Response) -> None:
    """Nothing in it tells how the server is made."""
    for told in ("Traceback", 'File "', "pymongo", "pydantic", "MemoryConnection"):
        assert told not in answer.text


@pytest.mark.parametrize("row", spread(ROWS, check=200), ids=lambda row: f"{row[0]} {row[1][:40]} {row[4]}")
async def test_a_hostile_request_is_refused(client: httpx.AsyncClient, world: World, row: Row) -> None:
    method, path, body, status, field = row
    answer = await client.request(method, path, json=body)
    problem = check_problem(answer, status, field)
    assert all(error["expected"] for error in problem.get("errors", [])), problem
    check_secretive(answer)
    assert world.everything() == EMPTY


@pytest.mark.parametrize("item", BATCH_ITEMS, ids=[json.dumps(item[0])[:60] for item in BATCH_ITEMS])
async def test_a_hostile_job_of_a_batch_is_refused_in_its_place(
    client: httpx.AsyncClient, world: World, item: tuple[Any, int, str]
) -> None:
    sent, status, field = item
    answer = await client.post("/v1/jobs:batch", json={"jobs": [hostile_job(ref="good"), sent]})
    assert answer.status_code == 200, answer.text
    check_secretive(answer)
    good, bad = answer.json()["results"]
    assert (good["status"], bad["status"], bad["job"]) == (201, status, None)
    assert field in [error["path"] for error in bad["problem"]["errors"]]
    assert [document["_id"] for document in world.everything()["jobs"]] == [good["job"]]


KEYS = ["", " ", "a b", "k" * 256, "k" * 10_240, "schlüssel".encode(), b"a\x00b", b"a\x7fb", b"\xff", "a\tb"]


@pytest.mark.parametrize("key", KEYS, ids=[repr(key)[:20] for key in KEYS])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
async def test_a_hostile_idempotency_key_is_refused(
    client: httpx.AsyncClient, world: World, path: str, key: str | bytes
) -> None:
    headers = {b"idempotency-key": key.encode() if isinstance(key, str) else key}
    body = hostile_job() if path == "/v1/jobs" else {"jobs": [hostile_job()]}
    check_problem(await client.post(path, json=body, headers=headers), 422, "Idempotency-Key")
    assert world.everything() == EMPTY


async def test_two_idempotency_keys_are_refused(client: httpx.AsyncClient, world: World) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    check_problem(await client.post("/v1/jobs", json=hostile_job(), headers=headers), 422, "Idempotency-Key")
    assert world.everything() == EMPTY
