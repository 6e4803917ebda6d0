"""What every route does: it refuses what it does not declare, answers HEAD, is counted, and says where to ask again."""

import asyncio
from typing import Any

import pytest
from fastapi import Request

from hascheduler.api.http.limits import Limit
from hascheduler.api.middleware.overload import WAIT_S_MAX, long_request_s_max, time_limit_s
from hascheduler.model.collection import Collection
from tests.tiers import spread
from tests.unit.api.doubles import World, operations
from tests.unit.api.requests import TICK, Client, check_problem, create, get
from tests.unit.telemetry.scraping import scrape

BY_NAME = [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in operations()]
WITHOUT_BODY = [pytest.param(*row[:2], id=f"{row[0]} {row[1]}") for row in operations() if "requestBody" not in row[2]]


def concrete(path: str) -> str:
    return path.replace("{name}", "tick").replace("{id}", "job:1")


def queries(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]


@pytest.mark.parametrize(("method", "path", "operation"), BY_NAME)
async def test_a_parameter_that_the_route_does_not_declare(
    client: Client, method: str, path: str, operation: dict[str, Any]
) -> None:
    body: object = {} if "requestBody" in operation else None
    answer = await client.request(method, f"{concrete(path)}?dry_run=true", json=body)
    [error] = check_problem(answer, 422, "dry_run")["errors"]
    assert error["problem"] == "no such parameter"


@pytest.mark.parametrize(("method", "path"), WITHOUT_BODY)
@pytest.mark.parametrize("body", spread([b'{"dry_run":true}', b"[]", b"not even JSON"], check=1))
async def test_a_body_on_a_route_without_one(client: Client, method: str, path: str, body: bytes) -> None:
    answer = await client.request(method, concrete(path), content=body)
    problem = check_problem(answer, 400)
    assert problem["type"] == "urn:hascheduler:problem:unexpected-body"
    assert f"{method} {concrete(path)}" in problem["detail"]


@pytest.mark.parametrize(("method", "path", "operation"), [row for row in BY_NAME if queries(row.values[2])])  # type: ignore[arg-type]
async def test_only_lists_may_be_repeated(client: Client, method: str, path: str, operation: dict[str, Any]) -> None:
    for parameter in queries(operation):
        name, is_list = parameter["name"], parameter["schema"].get("type") == "array"
        body: object = {} if "requestBody" in operation else None
        # With a value that nothing takes: no route is carried out.
        answer = await client.request(method, f"{concrete(path)}?{name}=%00&{name}=%00", json=body)
        problems = [error["problem"] for error in check_problem(answer, 422)["errors"]]
        assert any("is given 2 times" in problem for problem in problems) is not is_list, (name, problems)


STREAMS = ("/v1/events", "/v1/cluster/live", "/v1/cluster/recording")
READ = [path for method, path, _ in operations() if method == "GET" and path not in STREAMS]
CHANGING = ("x-request-id", "date")


@pytest.mark.parametrize("path", [*READ, "/livez", "/metrics", "/openapi.json", "/docs", "/v1/nowhere"])
async def test_a_head_is_that_of_the_get(client: Client, path: str) -> None:
    await create(client)
    path = concrete(path)
    read, asked = await client.get(path), await client.head(path)
    heads = [{name: value for name, value in one.headers.items() if name not in CHANGING} for one in (read, asked)]
    if path == "/metrics":  # it counts the requests, so it gets longer
        heads = [{**one, "content-length": ""} for one in heads]
    assert (asked.status_code, heads[1]) == (read.status_code, heads[0])
    assert asked.content == b""


@pytest.mark.parametrize("path", STREAMS[:2])
async def test_a_head_of_a_stream_ends_and_gives_its_place_back(client: Client, world: World, path: str) -> None:
    async with asyncio.timeout(30):
        answer = await client.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [world.limits[kind].in_use for kind in ("followers", "viewers", "in_flight")] == [0, 0, 0]


async def requests(world: World) -> dict[tuple[str, str, str], float]:
    """What was counted, by method, route and status."""
    told = scrape(world.metrics.registry).samples
    return {
        (dict(labels)["method"], dict(labels)["route"], dict(labels)["status"]): value
        for (name, labels), value in told.items()
        if name == "hascheduler_http_requests_total"
    }


@pytest.mark.parametrize(
    ("method", "path", "counted"),
    [
        ("GET", "/v1/jobs/job:1", ("GET", "/v1/jobs/{id}", "404")),
        ("GET", "/metrics", ("GET", "/metrics", "200")),
        ("GET", "/no/such", ("GET", "none", "404")),
        ("BREW", "/v1/jobs", ("other", "/v1/jobs", "405")),
    ],
)
async def test_a_request_is_counted_under_its_pattern(
    client: Client, world: World, method: str, path: str, counted: tuple[str, str, str]
) -> None:
    await client.request(method, path)
    told = await requests(world)
    if path != "/metrics":
        assert told == {counted: 1}
    else:
        await client.request(method, path)
        assert (await requests(world))[counted] == 2


async def test_a_scrape_and_the_probes_are_answered_whatever_is_in_flight(client: Client, world: World) -> None:
    world.limits["in_flight"] = Limit("some", 0)
    for path in ("/metrics", "/livez", "/readyz", "/leaderz"):
        assert (await client.get(path)).status_code == 200, path


@pytest.mark.parametrize(
    ("path", "states", "status"),
    [
        ("/readyz", {"leading": False}, 200), ("/readyz", {"ready": False}, 503), ("/livez", {"alive": False}, 503),
        ("/readyz", {"stopping": True}, 503), ("/livez", {"stopping": True}, 200),
        ("/leaderz", {"leading": True}, 200), ("/leaderz", {"leading": False}, 503),
    ],
)  # fmt: skip
async def test_the_api_port_and_the_health_port_give_the_same_answers(
    client: Client, world: World, path: str, states: dict[str, bool], status: int
) -> None:
    for name, value in states.items():
        setattr(world.view, name, value)
    answer = await client.get(path)
    assert answer.status_code == status
    assert bool(answer.json()["reason"]) == (status == 503)


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


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize(("method", "path", "body", "exchange", "location"), WRITES)
async def test_an_unknown_outcome_tells_the_id_to_ask_by(
    client: Client,
    world: World,
    method: str,
    path: str,
    body: Any,
    *,
    exchange: str,
    location: str | None,
    carried_out: bool,
) -> None:
    await create(client)
    there = await client.post("/v1/jobs", json=LOG)
    world.database.insert(Collection.JOBS, {**world.job(there.json()["id"]), "_id": "job:there"})
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
    patterns = {path.partition("?")[0] for _, path, *_ in WRITES}
    for method, path, _ in operations():
        if method == "POST" and "{" not in path and path not in patterns:
            assert path in NAMES_NOTHING, path


NAMES_NOTHING = {
    "/v1/cluster/pause", "/v1/cluster/resume", "/v1/jobs:reprioritize", "/v1/jobs:retry", "/v1/jobs:delete",
    "/v1/schedules/preview",
    "/v1/schedules:resume", "/v1/schedules:reset", "/v1/schedules:trigger",
    "/v1/work/fetch", "/v1/work/start", "/v1/work/heartbeat", "/v1/work/finish", "/ui/session",
}  # fmt: skip
"""Repeating them is harmless, or they change nothing."""


async def test_a_submit_that_was_written_is_answered_although_its_end_cannot_be_waited_for(
    client: Client, world: World
) -> None:
    world.connection.fail_next(2, of="jobs.get")
    answer = await client.post("/v1/jobs?wait=1s", json=LOG)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


SPELT: list[tuple[str, str | None]] = [
    ("wait=120s", "120s"), ("%77%61%69%74=120s", "120s"), ("wait", ""), ("cancel_on_disconnect=true&w%61it=1s", "1s"),
    ("+wait=120s", None), ("wait;=1", None), ("label=wait=", None), ("&&wait=1&wait=2", "2"), ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("query", "wait"), SPELT)
@pytest.mark.parametrize("request_line", [("POST", "/v1/jobs"), ("GET", "/v1/jobs/job:1")])
def test_who_waits_for_the_route_has_the_time_to_wait(
    query: str, wait: str | None, request_line: tuple[str, str]
) -> None:
    method, path = request_line
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    assert Request({**scope, "headers": []}).query_params.get("wait") == wait  # as the route reads it
    assert (long_request_s_max(scope) is not None) == (wait is not None)
    assert (time_limit_s(scope) > WAIT_S_MAX) == (wait is not None)
