"""What a route does not declare is refused, by every route of the OpenAPI document: nothing is accepted in silence."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.dependencies.models import Dependant

from hascheduler.api.routing import undeclared
from tests.tiers import spread
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import TICK, check_problem, create

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
        ("zzz=1", "one of after, limit, label, text, state, verdict, tenant, ahead"),
        (f"{'label' * 100}=1", "one of after, limit, label, text, state, verdict, tenant, ahead"),
    ],
)
async def test_the_nearest_name_is_told(client: httpx.AsyncClient, query: str, expected: str) -> None:
    [error] = check_problem(await client.get(f"/v1/schedules?{query}"), 422)["errors"]
    assert error["expected"] == expected


async def test_a_thousand_unknown_parameters_are_told_in_part(client: httpx.AsyncClient) -> None:
    query = "&".join(f"p{number}=1" for number in range(1_000))
    assert len(check_problem(await client.get(f"/v1/schedules?{query}"), 422)["errors"]) <= 10


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


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        ({**TICK, "lables": {}}, "lables", "labels"),
        ({**TICK, "trigger": {"type": "interval", "evry": "1s"}}, "trigger.evry", "every"),
        ({**TICK, "job": {"definition": "log", "prioriti": 3}}, "job.prioriti", "priority"),
        ({**TICK, "misfire": {"grase": "5s"}}, "misfire.grase", "grace"),
        ({**TICK, "zzz": 1}, "zzz", "one of trigger, "),
    ],
)
async def test_the_nearest_field_is_told(
    client: httpx.AsyncClient, body: dict[str, Any], path: str, expected: str
) -> None:
    problem = check_problem(await client.post("/v1/schedules", json=body), 422, path)
    [error] = [error for error in problem["errors"] if error["path"] == path]
    assert error["problem"] == "no such field"
    assert error["expected"].startswith(expected)


async def test_the_nearest_field_is_told_of_a_patch_and_of_a_job_in_a_batch(client: httpx.AsyncClient) -> None:
    await create(client)
    problem = check_problem(await client.patch("/v1/schedules/tick", json={"job": {"taget": "a"}}), 422)
    assert problem["detail"] == "job.taget: no such field; expected target"
    batch = await client.post("/v1/jobs:batch", json={"jobs": [{"definition": "log", "paylod": {}}]})
    [refused] = batch.json()["results"]
    assert refused["problem"]["detail"] == "paylod: no such field; expected payload"


async def test_what_a_route_declares_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Dependant] = []
    declared = undeclared._declared

    def counted(dependant: Dependant) -> Iterator[tuple[str, bool]]:
        read.append(dependant)
        return declared(dependant)

    monkeypatch.setattr(undeclared, "_declared", counted)
    app = FastAPI(dependencies=[Depends(undeclared.OnlyDeclared())])
    router = APIRouter()

    @router.get("/one")
    @router.get("/other")
    async def page(limit: int = 1) -> int:
        return limit

    app.include_router(router, prefix="/v1")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://replica") as client:
        for _ in range(3):
            assert (await client.get("/v1/one?limit=1")).status_code == 200
        once = len(read)
        assert len({id(dependant) for dependant in read}) == once > 0
        assert (await client.get("/v1/other?limit=1")).status_code == 200
    assert len(read) > once, "another route has declarations of its own"
