"""What every route does: it refuses what it does not declare, answers HEAD, has a time limit and is counted."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import Request

from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Limit
from hascheduler.api.middleware.overload import WAIT_S_MAX, long_request_s_max, time_limit_s
from hascheduler.api.routing.route_rules import answer_to
from hascheduler.errors import NotFound
from tests.tiers import spread
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import check_problem, create, scope_of
from tests.unit.telemetry.scraping import scrape

DOCUMENT = description()
OPERATIONS = [
    (method.upper(), path, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]
BY_NAME = [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in OPERATIONS]
WITHOUT_BODY = [pytest.param(*row[:2], id=f"{row[0]} {row[1]}") for row in OPERATIONS if "requestBody" not in row[2]]


def concrete(path: str) -> str:
    return path.replace("{name}", "tick").replace("{id}", "job:1")


def queries(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]


@pytest.mark.parametrize(("method", "path", "operation"), BY_NAME)
async def test_a_parameter_that_the_route_does_not_declare(
    client: httpx.AsyncClient, method: str, path: str, operation: dict[str, Any]
) -> None:
    body: object = {} if "requestBody" in operation else None
    answer = await client.request(method, f"{concrete(path)}?dry_run=true", json=body)
    [error] = check_problem(answer, 422, "dry_run")["errors"]
    assert error["problem"] == "no such parameter"


@pytest.mark.parametrize(("method", "path"), WITHOUT_BODY)
@pytest.mark.parametrize("body", spread([b'{"dry_run":true}', b"[]", b"not even JSON"], check=1))
async def test_a_body_on_a_route_without_one(client: httpx.AsyncClient, method: str, path: str, body: bytes) -> None:
    answer = await client.request(method, concrete(path), content=body)
    problem = check_problem(answer, 400)
    assert problem["type"] == "urn:hascheduler:problem:unexpected-body"
    assert f"{method} {concrete(path)}" in problem["detail"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("lable=a%3Db", "label"),
        (f"{'label' * 100}=1", "one of text, state, verdict, tenant, ahead, label, after, limit"),
    ],
)
async def test_the_nearest_name_is_told(client: httpx.AsyncClient, query: str, expected: str) -> None:
    [error] = check_problem(await client.get(f"/v1/schedules?{query}"), 422)["errors"]
    assert error["expected"] == expected


@pytest.mark.parametrize(("method", "path", "operation"), [row for row in BY_NAME if queries(row.values[2])])  # type: ignore[arg-type]
async def test_only_lists_may_be_repeated(
    client: httpx.AsyncClient, method: str, path: str, operation: dict[str, Any]
) -> None:
    for parameter in queries(operation):
        name, is_list = parameter["name"], parameter["schema"].get("type") == "array"
        body: object = {} if "requestBody" in operation else None
        # With a value that nothing takes: no route is carried out.
        answer = await client.request(method, f"{concrete(path)}?{name}=%00&{name}=%00", json=body)
        problems = [error["problem"] for error in check_problem(answer, 422)["errors"]]
        assert any("is there 2 times" in problem for problem in problems) is not is_list, (name, problems)


STREAMS = ("/v1/events", "/v1/cluster/live", "/v1/cluster/recording")
READ = [path for path, operations in description()["paths"].items() if "get" in operations and path not in STREAMS]
CHANGING = ("x-request-id", "date")


@pytest.mark.parametrize("path", [*READ, "/livez", "/metrics", "/openapi.json", "/docs", "/v1/nowhere"])
async def test_a_head_is_that_of_the_get(client: httpx.AsyncClient, path: str) -> None:
    await create(client)
    path = path.replace("{name}", "tick").replace("{id}", "job:1")
    read, asked = await client.get(path), await client.head(path)
    heads = [{name: value for name, value in one.headers.items() if name not in CHANGING} for one in (read, asked)]
    if path == "/metrics":  # it counts the requests, so it gets longer
        heads = [{**one, "content-length": ""} for one in heads]
    assert (asked.status_code, heads[1]) == (read.status_code, heads[0])
    assert asked.content == b""


@pytest.mark.parametrize("path", STREAMS[:2])
async def test_a_head_of_a_stream_ends_and_gives_its_place_back(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    async with asyncio.timeout(30):
        answer = await client.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [world.limits[kind].in_use for kind in ("followers", "viewers", "in_flight")] == [0, 0, 0]


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


async def test_an_error_names_the_path_that_was_routed_whatever_the_host_says(app: Edge, world: World) -> None:
    app.services = world.services()
    scope = scope_of(
        "GET", "/v1/nowhere", [(b"host", b"a/v1/jobs#")], app=app, path="/v1/nowhere?a", query_string=b"\xff"
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        shown = (await client.get("/v1/nowhere%3Fa%23b")).json()
    assert "/v1/nowhere?a#b" in shown["detail"]
    found = await answer_to(Request(scope), NotFound("job", "a"))
    assert found.status_code == 404


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
        ("GET", "/livez", ("GET", "/livez", "200")),
        ("GET", "/metrics", ("GET", "/metrics", "200")),
        ("GET", "/no/such", ("GET", "none", "404")),
        ("BREW", "/v1/jobs", ("other", "/v1/jobs", "405")),
    ],
)
async def test_a_request_is_counted_under_its_pattern(
    client: httpx.AsyncClient, world: World, method: str, path: str, counted: tuple[str, str, str]
) -> None:
    await client.request(method, path)
    told = await requests(world)
    if path != "/metrics":
        assert told == {counted: 1}
    else:
        await client.request(method, path)
        assert (await requests(world))[counted] == 2


async def test_a_scrape_and_the_probes_are_answered_whatever_is_in_flight(
    client: httpx.AsyncClient, world: World
) -> None:
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
    client: httpx.AsyncClient, world: World, path: str, states: dict[str, bool], status: int
) -> None:
    for name, value in states.items():
        setattr(world.view, name, value)
    answer = await client.get(path)
    assert answer.status_code == status
    assert bool(answer.json()["reason"]) == (status == 503)
