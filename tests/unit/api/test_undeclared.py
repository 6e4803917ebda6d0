"""What a route does not declare is refused, by every route of the OpenAPI document: nothing is accepted in silence."""

from typing import Any

import httpx
import pytest

from tests.tiers import spread
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import check_problem, create

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


@pytest.mark.parametrize(("method", "path"), WITHOUT_BODY)
@pytest.mark.parametrize("body", spread([b"{}", b""], check=1))
async def test_no_body_may_be_declared(client: httpx.AsyncClient, method: str, path: str, body: bytes) -> None:
    """Many clients send ``Content-Length: 0``, or an empty object, with every POST and DELETE."""
    if path in ("/v1/events", "/v1/cluster/live", "/v1/cluster/recording"):
        return  # streams without an end
    answer = await client.request(method, concrete(path), content=body, headers={"content-length": str(len(body))})
    assert answer.status_code not in (400, 422), answer.text


async def test_a_delete_that_asks_for_a_dry_run_deletes_nothing(client: httpx.AsyncClient) -> None:
    await create(client)
    check_problem(await client.delete("/v1/schedules/tick?dry_run=true"), 422, "dry_run")
    assert (await client.get("/v1/schedules/tick")).status_code == 200


async def test_a_job_is_not_submitted_with_a_misspelt_parameter(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/jobs?wiat=5s", json={"definition": "log"})
    [error] = check_problem(answer, 422, "wiat")["errors"]
    assert error["expected"] == "wait"
    assert not (await client.get("/v1/jobs")).json()["items"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("lable=a%3Db", "label"),
        ("after_=a", "after"),
        ("zzz=1", "one of text, state, verdict, tenant, ahead, label, after, limit"),
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
