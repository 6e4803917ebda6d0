"""Whatever is sent to the routes of jobs, tokens, events and work: a problem that names the place, nothing written."""

import json
from typing import Any

import httpx
import pytest

from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.collection import Collection
from hascheduler.model.documents.token import encode_token
from hascheduler.model.token import digest_of
from tests.factories import make_token
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.api.hostile_rows import BATCH_ITEMS, ROWS, Row, job
from tests.unit.api.requests import check_problem

EMPTY = World().everything()


def check_secretive(answer: httpx.Response) -> None:
    """Nothing in it tells how the server is made."""
    for told in ("Traceback", 'File "', "pymongo", "pydantic", "MemoryConnection"):
        assert told not in answer.text


@pytest.mark.parametrize("row", spread(ROWS, check=109), ids=lambda row: f"{row[0]} {row[1][:40]} {row[4]}")
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
    answer = await client.post("/v1/jobs:batch", json={"jobs": [job(ref="good"), sent]})
    assert answer.status_code == 200, answer.text
    check_secretive(answer)
    good, bad = answer.json()["results"]
    assert (good["status"], bad["status"], bad["job"]) == (201, status, None)
    assert field in [error["path"] for error in bad["problem"]["errors"]]
    assert [document["_id"] for document in world.everything()["jobs"]] == [good["job"]]


async def test_a_cycle_of_jobs_is_refused_with_all_that_depend_on_it(client: httpx.AsyncClient, world: World) -> None:
    circle = [
        job(ref="a", depends_on=["ref:c"]),
        job(ref="b", depends_on=["ref:a"]),
        job(ref="c", depends_on=["ref:b"]),
    ]
    answer = await client.post("/v1/jobs:batch", json={"jobs": [*circle, job(depends_on=["ref:a"])]})
    assert [result["status"] for result in answer.json()["results"]] == [422] * 4
    assert world.everything() == EMPTY


# Idempotency keys

KEYS = ["", " ", "a b", "k" * 256, "k" * 10_240, "schlüssel".encode(), b"a\x00b", b"a\x7fb", b"\xff", "a\tb"]


@pytest.mark.parametrize("key", KEYS, ids=[repr(key)[:20] for key in KEYS])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
async def test_a_hostile_idempotency_key_is_refused(
    client: httpx.AsyncClient, world: World, path: str, key: str | bytes
) -> None:
    headers = {b"idempotency-key": key.encode() if isinstance(key, str) else key}
    body = job() if path == "/v1/jobs" else {"jobs": [job()]}
    check_problem(await client.post(path, json=body, headers=headers), 422, "Idempotency-Key")
    assert world.everything() == EMPTY


async def test_two_idempotency_keys_are_refused(client: httpx.AsyncClient, world: World) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    check_problem(await client.post("/v1/jobs", json=job(), headers=headers), 422, "Idempotency-Key")
    assert world.everything() == EMPTY


async def test_another_body_under_a_key_is_refused(client: httpx.AsyncClient, world: World) -> None:
    headers = {"idempotency-key": "mine"}
    assert (await client.post("/v1/jobs", json=job(), headers=headers)).status_code == 201
    before = world.everything()
    check_problem(await client.post("/v1/jobs", json=job(priority=9), headers=headers), 409)
    assert world.everything() == before


# Bodies as bytes

BYTES = [
    ("NaN", b'{"definition": "log", "payload": NaN}', 422, "payload"),
    ("-Infinity", b'{"definition": "log", "payload": {"a": -Infinity}}', 422, "payload.a"),
    ("a number that overflows", b'{"definition": "log", "payload": -1e999}', 422, "payload"),
    ("an integer of 65 bits", b'{"definition": "log", "payload": [18446744073709551616]}', 422, "payload.0"),
    ("a duplicate key", b'{"definition": "log", "definition": "rm"}', 422, "definition"),
    ("a duplicate key by escape", b'{"definition": "log", "d\\u0065finition": "rm"}', 422, "definition"),
    ("half a surrogate pair", b'{"definition": "log", "target": "\\ud83d"}', 422, "target"),
    ("NUL", b'{"definition": "log", "target": "a\\u0000b"}', 422, "target"),
    ("deep nesting", b'{"definition": "log", "payload": ' + b"[" * 100_000, 422, None),
    ("overlong UTF-8", b'{"definition": "l\xc0\xafg"}', 400, None),
    ("a surrogate in UTF-8", b'{"definition": "\xed\xa0\x80"}', 400, None),
    ("cut off", b'{"definition": "lo', 400, None),
    ("single quotes", b"{'definition': 'log'}", 400, None),
    ("a trailing comma", b'{"definition": "log",}', 400, None),
    ("a form", b"definition=log", 400, None),
]


@pytest.mark.parametrize("case", BYTES, ids=[case[0] for case in BYTES])
async def test_hostile_bytes_are_refused(
    client: httpx.AsyncClient, world: World, case: tuple[str, bytes, int, str | None]
) -> None:
    _, body, status, field = case
    answer = await client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    check_problem(answer, status, field)
    check_secretive(answer)
    assert world.everything() == EMPTY


async def test_a_batch_that_is_too_large_is_refused(client: httpx.AsyncClient, world: World) -> None:
    body = b'{"jobs": [' + b" " * (8 * 1024 * 1024) + b"]}"
    check_problem(await client.post("/v1/jobs:batch", content=body, headers={"content-type": "application/json"}), 413)
    assert world.everything() == EMPTY


# Tokens

HEADERS = [
    "",
    "Bearer",
    "Bearer ",
    "Basic YWRtaW46YWRtaW4=",
    "Bearer " + "a" * 10_240,
    "Bearer hsk_" + "A" * 43,
    "Bearer hsk_" + "A" * 42 + "\xe9",
    "bearer null",
    "Bearer {'$gt': ''}",
    "Bearer a b",
    "hsk_" + "A" * 43,
]


@pytest.mark.parametrize("header", HEADERS, ids=[header[:20] for header in HEADERS])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/tokens", "/v1/work/fetch"])
async def test_a_hostile_token_opens_nothing(client: httpx.AsyncClient, world: World, path: str, header: str) -> None:
    world.auth = AuthConfig(required=True, admin_digest=digest_of("a secret of the settings"))
    client._transport.app.state.services = world.services()  # type: ignore[attr-defined]  # the ASGI transport's
    headers = {b"authorization": header.encode("latin-1")}
    answer = await client.post(path, json=job(), headers=headers)
    check_problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")
    check_secretive(answer)
    assert world.everything() == EMPTY


SECRET = "hsk_" + "B" * 43


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"role": "viewer"}, 403),
        ({"role": "worker", "tenant": "*"}, 403),
        ({"role": "submitter", "tenant": "other"}, 403),
        ({"role": "admin", "expires_at_ms": 1}, 401),
    ],
)
async def test_a_token_that_may_not_submits_nothing(
    client: httpx.AsyncClient, world: World, fields: dict[str, Any], status: int
) -> None:
    token = {**encode_token(make_token()), "_id": digest_of(SECRET), "tenant": "acme", **fields}
    world.database.replace(Collection.TOKENS, token)
    before = world.everything()
    headers = {"authorization": f"Bearer {SECRET}"}
    for path, body in (("/v1/jobs", job(tenant="acme")), ("/v1/jobs:batch", {"jobs": [job(tenant="acme")]})):
        answer = await client.post(path, json=body, headers=headers)
        if answer.status_code == 200:
            # A batch is let in, and each of its jobs refused.
            assert [result["status"] for result in answer.json()["results"]] == [status]
        else:
            check_problem(answer, status)
    assert world.everything() == before
