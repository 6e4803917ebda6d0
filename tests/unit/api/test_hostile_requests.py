"""Hostile requests: each is answered with a problem that names the place, and nothing has been written."""

import json
from collections.abc import AsyncIterator, Iterator
from itertools import zip_longest
from typing import Any

import httpx2
import pytest

from hascheduler.api.routing.route_rules import BODY_BYTES_MAX
from tests.tiers import spread
from tests.unit.api.doubles import World, description, operations
from tests.unit.api.hostile_rows import BATCH_ITEMS, ROWS, Row
from tests.unit.api.hostile_rows import job as hostile_job
from tests.unit.api.requests import TICK, Client, check_problem

EMPTY = World().everything()
JSON = {"content-type": "application/json"}


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas that this one stands for, but for null."""
    if "$ref" in schema:
        schema = description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    choices = schema.get("anyOf", schema.get("oneOf"))
    found = [schema] if choices is None else [one for choice in choices for one in alternatives(choice)]
    return [one for one in found if one.get("type") != "null"]


def broken(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values that break each of its rules."""
    [rules, *others] = alternatives(schema)
    match "choice" if others else rules.get("type"):
        case "choice":  # a span, one of several models, or any JSON
            takes_any_json = "boolean" in (rules.get("type"), *(one.get("type") for one in others))
            yield from ({"$gt": ""},) if takes_any_json else ({"$gt": ""}, "soon", True)
        case "integer":
            yield from (True, "1", 0.5)
            yield from (int(rules[bound]) + step for bound, step in (("minimum", -1), ("maximum", 1)) if bound in rules)
        case "string":
            yield from ({"$gt": ""}, 7)
            yield from ("" for _ in range("minLength" in rules))
            yield from ("x" * (rules["maxLength"] + 1) for _ in range("maxLength" in rules))
            yield from ("a b" for _ in range(bool({"pattern", "enum", "format"} & set(rules))))
        case "boolean":
            yield from ("yes", 1)
        case "array":
            yield "x"
            if rules["items"].get("type") == "string" and rules.get("maxItems", 10_000) <= 1_000:
                yield [f"a{n}" for n in range(rules["maxItems"] + 1)]
        case "object":
            yield 7
            yield from ({name: bad} for name, inner in rules.get("properties", {}).items() for bad in broken(inner))


BODIES_OF = {
    f"{method} {path}": operation["requestBody"]["content"]["application/json"]["schema"]
    for method, path, operation in operations()
    # A merge patch, and its preview, are judged with what they change.
    if "requestBody" in operation and method != "PATCH" and path != "/v1/schedules/{name}/preview"
}


@pytest.mark.parametrize("operation", BODIES_OF)
async def test_each_rule_of_each_field_is_kept(client: Client, world: World, operation: str) -> None:
    method, path = operation.replace("{name}", "a").replace("{id}", "job:1").split()
    [model] = alternatives(BODIES_OF[operation])
    columns = [[(name, bad) for bad in broken(rules)] for name, rules in model["properties"].items()]
    assert any(columns)
    for row in zip_longest(*columns):
        body = dict(each for each in row if each is not None)
        errors = check_problem(await client.request(method, path, json=body), 422)["errors"]
        # A key that is an operator is refused before the other fields are read.
        wanted = [name for name, bad in body.items() if '"$' in json.dumps(bad)] or [*body]
        assert {*wanted} <= {error["path"].partition(".")[0] for error in errors}, body
    check_problem(await client.request(method, path, json={"unknown": 1}), 422, "unknown")
    assert world.everything() == EMPTY


def payload(text: str) -> str:
    return json.dumps({**TICK, "job": {"definition": "log", "payload": "HERE"}}).replace('"HERE"', text)


def trigger(**fields: str) -> str:
    return json.dumps({**TICK, "trigger": {"type": "interval", **fields}})


RAW: dict[str, tuple[str | bytes, int, str | None]] = {
    "empty": ("", 400, None),
    "cut off": ('{"name": ', 400, None),
    "a comment": ("{} // hello", 400, None),
    "a byte order mark": (b"\xef\xbb\xbf{}", 400, None),
    "not UTF-8": (b'{"name": "\xff"}', 400, None),
    "a raw control character": ('{"name": "a\x01"}', 400, None),
    "NaN": (payload("NaN"), 422, "job.payload"),
    "infinity": (payload('{"a": [0, -Infinity]}'), 422, "job.payload.a.1"),
    "a duplicate key below": (payload('{"a": {"b": 1, "b": 2}}'), 422, "job.payload.a.b"),
    "too deep": (payload("[" * 40 + "]" * 40), 422, "job.payload" + ".0" * 30),
    "far too deep": ("[" * 200_000, 413, None),
    "far too many objects deep": ('{"a":' * 50_000, 413, None),
    "half a surrogate pair in a key": (payload(r'{"\udfff": 1}'), 422, "job.payload.\\udfff"),
    "an operator as a key": (payload('{"$where": "1"}'), 422, "job.payload.$where"),
    "NUL in a key": (payload(r'{"a\u0000b": 1}'), 422, "job.payload.a\0b"),
    "an unknown trigger": (trigger(type="sunrise", at="dawn"), 422, "trigger.type"),
    "a megabyte of digits": (trigger(every="1s" * 100_000), 422, "trigger.every"),
    "the year 9999": (trigger(every="1s", anchor="9999-12-31T23:59:59Z"), 422, "trigger.anchor"),
}


@pytest.mark.parametrize("name", RAW)
async def test_a_hostile_body_is_refused(client: Client, world: World, name: str) -> None:
    body, status, path = RAW[name]
    check_problem(await client.post("/v1/schedules", content=body, headers=JSON), status, path)
    assert world.everything() == EMPTY


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": ""}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=x"}, {**JSON, "content-encoding": "gzip"},
    ],
)  # fmt: skip
async def test_only_plain_json_is_taken(client: Client, world: World, headers: dict[str, str]) -> None:
    check_problem(await client.post("/v1/schedules", content=payload("1"), headers=headers), 415, None)
    assert world.everything() == EMPTY


async def test_a_body_that_declares_too_much_is_refused(client: Client, world: World) -> None:
    body = payload('"' + "x" * BODY_BYTES_MAX + '"')
    check_problem(await client.post("/v1/schedules", content=body, headers=JSON), 413, None)
    assert world.everything() == EMPTY


async def test_a_body_that_never_ends_is_cut(client: Client, world: World) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    check_problem(await client.post("/v1/schedules", content=endless(), headers=JSON), 413, None)
    assert sent <= BODY_BYTES_MAX + 2 * 65_536
    assert world.everything() == EMPTY


async def test_all_mistakes_are_reported_at_once_with_what_would_be_right(client: Client) -> None:
    body = {"name": "", "trigger": {"type": "interval", "every": "x"}, "job": {"priority": 11}, "x": 1}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422)
    assert {error["path"] for error in problem["errors"]} == {
        "name", "trigger.every", "job.definition", "job.priority", "x",
    }  # fmt: skip
    often = {**TICK, "trigger": {"type": "interval", "every": "50ms"}}
    [error] = check_problem(await client.post("/v1/schedules", json=often), 422, "trigger.every")["errors"]
    assert ("50ms" in error["problem"], "100ms" in error["expected"]) == (True, True), "in the unit of its author"


async def test_a_wrong_method_is_answered_with_the_allowed_ones(client: Client) -> None:
    answer = await client.post("/v1/schedules/tick")
    assert answer.headers["allow"] == "GET, PUT, PATCH, DELETE"


def check_secretive(answer: httpx2.Response) -> None:
    for told in ("Traceback", 'File "', "pymongo", "pydantic", "MemoryConnection"):
        assert told not in answer.text


@pytest.mark.parametrize("row", spread(ROWS, check=120), ids=lambda row: f"{row[0]} {row[1][:40]} {row[4]}")
async def test_a_hostile_request_is_refused(client: Client, world: World, row: Row) -> None:
    method, path, body, status, field = row
    answer = await client.request(method, path, json=body)
    problem = check_problem(answer, status, field)
    assert all(error["expected"] for error in problem.get("errors", [])), problem
    check_secretive(answer)
    assert world.everything() == EMPTY


@pytest.mark.parametrize("item", BATCH_ITEMS, ids=[json.dumps(item[0])[:60] for item in BATCH_ITEMS])
async def test_a_hostile_job_of_a_batch_is_refused_in_its_place(
    client: Client, world: World, item: tuple[Any, int, str]
) -> None:
    sent, status, field = item
    answer = await client.post("/v1/jobs:batch", json={"jobs": [hostile_job(ref="good"), sent]})
    assert answer.status_code == 200, answer.text
    check_secretive(answer)
    good, bad = answer.json()["results"]
    assert (good["status"], bad["status"], bad["job"]) == (201, status, None)
    assert field in [error["path"] for error in bad["problem"]["errors"]]
    assert [document["_id"] for document in world.everything()["jobs"]] == [good["job"]]


KEYS = ["", "a b", "k" * 256, "schlüssel".encode(), b"a\x00b", b"\xff", "a\tb", ["a", "b"]]


@pytest.mark.parametrize("key", KEYS, ids=[repr(key)[:20] for key in KEYS])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
async def test_a_hostile_idempotency_key_is_refused(
    client: Client, world: World, path: str, key: str | bytes | list[str]
) -> None:
    keys = key if isinstance(key, list) else [key]
    headers = [(b"idempotency-key", each.encode() if isinstance(each, str) else each) for each in keys]
    body = hostile_job() if path == "/v1/jobs" else {"jobs": [hostile_job()]}
    check_problem(await client.post(path, json=body, headers=headers), 422, "Idempotency-Key")
    assert world.everything() == EMPTY
