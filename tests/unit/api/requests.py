"""The requests that most tests begin with, and what every refusal has to be."""

from collections.abc import Iterable
from typing import Any

import httpx2

from hascheduler.schema.noun import Part

Client = httpx2.AsyncClient
NOW_TEXT = "2030-01-01T00:00:00.000Z"
TICK: dict[str, Any] = {
    "name": "tick",
    "trigger": {"type": "interval", "every": "1s"},
    "job": {"definition": "log"},
}
DEFAULT_NARROWING: dict[str, Any] = {
    "jitter": "0s",
    "start_at": None,
    "end_at": None,
    "max_fires": None,
    "exclude": [],
    "calendars": None,
}
REQUESTED = ("trigger", "misfire", "overlap", "pause_after_failures", "on_failure", "job", "labels")
"""The fields of an answer that a request may have."""


def complete(body: type[Part], shown: dict[str, Any]) -> dict[str, Any]:
    """Return ``shown`` with the defaults of the fields that it does not name, such as those that are added later."""
    return {**body().model_dump(mode="json", by_alias=True), **shown}


async def create(client: Client, **changes: Any) -> Any:
    """The answer to the creation of the schedule ``tick``, changed so."""
    return await post(client, "/v1/schedules", {**TICK, **changes}, 201)  # noqa: ASYNC210  # it is the function below


async def get(client: Client, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def pages(client: Client, path: str, query: str = "", limit: int = 1) -> list[Any]:
    """The items of all pages."""
    found: list[Any] = []
    after = ""
    while True:
        answer = await client.get(f"{path}?limit={limit}&{query}{after}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["items"]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"


async def post(client: Client, path: str, body: object = None, status: int = 200) -> Any:
    answer = await client.post(path, json=body) if body is not None else await client.post(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def patch(client: Client, body: object) -> Any:
    answer = await client.patch("/v1/schedules/tick", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def check_problem(answer: httpx2.Response, status: int, path: str | None = None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:hascheduler:problem:")
    assert problem["title"]
    assert problem["detail"]
    if path is not None:
        assert path in [error["path"] for error in problem["errors"]], problem
        assert all(error["problem"] for error in problem["errors"])
    return problem


def scope_of(method: str, path: str, headers: Iterable[tuple[bytes, bytes]] = (), /, **more: Any) -> dict[str, Any]:
    """As a server has it of a request."""
    path, _, query = path.partition("?")
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [*headers], "client": ("127.0.0.1", 5_000), "server": ("api", 80), **more,
    }  # fmt: skip
