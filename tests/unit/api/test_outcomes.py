"""A write whose answer is 503 although it may have been carried out: the id by which to ask, and where."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.testing.memory.jobs import MemoryJobStore
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import TICK, check_problem, create, get

LOG: dict[str, Any] = {"definition": "log"}
UNKNOWN = "urn:hascheduler:problem:outcome-unknown"
BACKFILL = {"from": "2029-12-31T00:00:00Z", "to": "2029-12-31T00:00:01Z"}
TOKEN = {"name": "nightly", "role": "viewer", "tenant": "*"}
WORKER = {"name": "w", "definitions": ["log"], "slots": 1}
WRITES: list[tuple[str, str, Any, str, str | None]] = [
    # the request, the exchange whose answer gets lost, and where to ask; {id} is that of the problem
    ("POST", "/v1/jobs", LOG, "jobs.submit", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs?wait=1s", LOG, "jobs.submit", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs:batch", {"jobs": [LOG, LOG]}, "jobs.submit_many", "/v1/jobs?batch={id}"),
    ("POST", "/v1/jobs:batch", {"jobs": [LOG, LOG], "atomic": True}, "jobs.submit_all", "/v1/jobs?batch={id}"),
    ("POST", "/v1/jobs/job:there/cancel", None, "jobs.cancel", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs/job:there/reprioritize", {"priority": 9}, "jobs.reprioritize", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs/job:there/retry", None, "jobs.retry", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs:cancel", {"filter": {"definition": "log"}}, "jobs.cancel_some", None),
    ("POST", "/v1/schedules", {**TICK, "name": "new"}, "schedules.create", "/v1/schedules/new"),
    ("PUT", "/v1/schedules/tick", {**TICK, "labels": {"a": "b"}}, "schedules.edit", "/v1/schedules/tick"),
    ("PATCH", "/v1/schedules/tick", {"labels": {"a": "b"}}, "schedules.edit", "/v1/schedules/tick"),
    ("DELETE", "/v1/schedules/tick", None, "schedules.delete", "/v1/schedules/tick"),
    ("POST", "/v1/schedules/tick/pause", None, "schedules.edit", "/v1/schedules/tick"),
    ("POST", "/v1/schedules/tick/trigger", None, "jobs.submit", "/v1/jobs/{id}"),
    ("POST", "/v1/schedules/tick/backfill", BACKFILL, "jobs.submit_many", "/v1/jobs?id={id}"),
    ("PUT", "/v1/definitions/log", {"max_concurrency": 1}, "definitions.create", "/v1/definitions/log"),
    ("PUT", "/v1/lanes/slow", {"weight": 2}, "lanes.create", "/v1/lanes/slow"),
    ("PUT", "/v1/calendars/feasts", {}, "calendars.create", "/v1/calendars/feasts"),
    ("PUT", "/v1/tenants/acme", {}, "tenants.create", "/v1/tenants/acme"),
    ("POST", "/v1/tokens", TOKEN, "tokens.create", "/v1/tokens/{id}"),
    ("POST", "/v1/schedules:pause", {"filter": {"text": "tick"}}, "schedules.edit", None),
    ("POST", "/v1/work/processors", WORKER, "work.register", "/v1/work/processors/{id}"),
]  # fmt: skip


async def set_up(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    there = await client.post("/v1/jobs", json=LOG)
    world.database.insert(Collection.JOBS, {**world.job(there.json()["id"]), "_id": "job:there"})


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize(("method", "path", "body", "exchange", "location"), WRITES)
async def test_an_unknown_outcome_tells_the_id_to_ask_by(
    client: httpx.AsyncClient,
    world: World,
    method: str,
    path: str,
    body: Any,
    *,
    exchange: str,
    location: str | None,
    carried_out: bool,
) -> None:
    await set_up(client, world)
    before = world.everything()
    world.connection.fail_next(of=exchange, carried_out=carried_out)
    answer = await client.request(method, path, json=body)
    problem = check_problem(answer, 503)
    assert problem["type"] == UNKNOWN
    assert int(answer.headers["retry-after"]) > 0
    changed = world.everything()
    assert (changed != before) == (carried_out and exchange != "jobs.retry")  # that job has not failed
    if location is None:
        assert "location" not in answer.headers
        assert "id" not in problem
        return
    where = answer.headers["location"]
    assert where == location.format(id=problem["id"])
    assert (where in problem["detail"], problem["id"] in problem["detail"]) == (True, True)
    if exchange in ("jobs.submit", "schedules.create"):  # what it would have made is there, or not
        assert (await client.get(where)).status_code == (200 if carried_out else 404)
    elif "?" in where:
        assert bool((await get(client, where))["items"]) == carried_out
    elif exchange == "tokens.create":
        assert (await client.delete(where)).status_code == (204 if carried_out else 404)


def test_every_write_is_among_those_or_named_by_its_path() -> None:
    """A new route that makes something has to say where to ask for it."""
    patterns = {pattern(path) for _, path, *_ in WRITES}
    for path, operations in description()["paths"].items():
        if {"post"} & set(operations) and "{" not in path and path not in patterns:
            assert path in NAMES_NOTHING, path


NAMES_NOTHING = {
    "/v1/cluster/pause", "/v1/cluster/resume", "/v1/jobs:reprioritize", "/v1/jobs:retry", "/v1/schedules/preview",
    "/v1/schedules:resume", "/v1/schedules:reset", "/v1/schedules:trigger",
    "/v1/work/fetch", "/v1/work/start", "/v1/work/heartbeat", "/v1/work/finish", "/ui/session",
}  # fmt: skip
"""Repeating them is harmless, or they change nothing."""


def pattern(path: str) -> str:
    return path.partition("?")[0]


async def test_under_a_key_the_request_may_be_repeated_and_makes_nothing_twice(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    for path, body in (("/v1/jobs", LOG), ("/v1/schedules/tick/trigger", None)):
        world.connection.fail_next(of="jobs.submit", carried_out=True)
        headers = {"Idempotency-Key": path}
        problem = check_problem(await client.post(path, json=body, headers=headers), 503)
        assert "repeat it under its Idempotency-Key" in problem["detail"]
        again = await client.post(path, json=body, headers=headers)
        assert (again.status_code, again.json()["id"]) == (200, problem["id"])


async def test_a_submit_that_was_written_is_answered_although_its_end_cannot_be_waited_for(
    client: httpx.AsyncClient, world: World
) -> None:
    world.connection.fail_next(2, of="jobs.get")
    answer = await client.post("/v1/jobs?wait=1s", json=LOG)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


async def test_of_a_batch_that_was_made_in_part_the_outcome_is_unknown(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away between two levels."""
    submit_many: Callable[..., Any] = MemoryJobStore.submit_many
    calls: list[int] = []

    async def away(store: MemoryJobStore, jobs: Any) -> Any:
        calls.append(len(jobs))
        if len(calls) == 2:
            raise StoreUnavailable("away")
        return await submit_many(store, jobs)

    monkeypatch.setattr(MemoryJobStore, "submit_many", away)
    body = {"jobs": [{**LOG, "ref": "a"}, {**LOG, "depends_on": ["ref:a"]}]}
    problem = check_problem(await client.post("/v1/jobs:batch", json=body), 503)
    assert problem["type"] == UNKNOWN
    assert len((await get(client, f"/v1/jobs?batch={problem['id']}"))["items"]) == 1
