"""The time limit of a request is that of the route which it reaches, however its query is written."""

from typing import Any

import httpx
import pytest
from fastapi import Request

from hascheduler.api.edge import Edge
from hascheduler.api.middleware.overload import WAIT_S_MAX, long_request_s_max, time_limit_s
from hascheduler.api.routing.route_rules import answer_to
from hascheduler.errors import NotFound
from tests.unit.api.doubles import World

SPELT: list[tuple[str, str | None]] = [
    ("wait=120s", "120s"),
    ("w%61it=120s", "120s"),
    ("%77%61%69%74=120s", "120s"),
    ("wait", ""),
    ("cancel_on_disconnect=true&w%61it=1s", "1s"),
    ("+wait=120s", None),
    ("wait;=1", None),
    ("label=wait=", None),
    ("&&wait=1&", "1"),
    ("wait=1&wait=2", "2"),
    ("", None),
]


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
    scope: dict[str, Any] = {
        "type": "http",
        "app": app,
        "method": "GET",
        "scheme": "http",
        "path": "/v1/nowhere?a",
        "query_string": b"\xff",
        "headers": [(b"host", b"a/v1/jobs#")],
        "server": ("127.0.0.1", 1),
    }
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        shown = (await client.get("/v1/nowhere%3Fa%23b")).json()
    assert "/v1/nowhere?a#b" in shown["detail"]
    found = await answer_to(Request(scope), NotFound("job", "a"))
    assert found.status_code == 404
