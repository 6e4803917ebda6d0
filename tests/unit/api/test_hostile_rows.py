"""Whatever is sent to the routes of jobs, tokens, events and work: a problem that names the place, nothing written."""

import json
from typing import Any

import httpx
import pytest

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


# Bodies as bytes


# Tokens
