"""The OpenAPI document is the contract: it is complete, its examples are true, and answers keep what it promises."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator.schemas import schema_v31
from schemathesis import Case

from hascheduler.api import app as application
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.token import digest_of
from tests.factories import make_job
from tests.tiers import TIER, in_tier
from tests.unit.api.doubles import World, app_of, description, operations, the_routes
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed
from tests.unit.api.requests import Client, create

DOCUMENT: dict[str, Any] = description()  # as it is served
JSON, MERGE_PATCH, PROBLEM = "application/json", "application/merge-patch+json", "application/problem+json"


def test_every_operation_has_a_name_a_tag_and_its_refusals() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    for _, path, operation in operations():
        assert operation["tags"], path
        if not path.startswith("/v1"):
            continue
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                assert answer["content"] == {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert "HTTPValidationError" not in DOCUMENT["components"]["schemas"]


def test_every_route_parameter_and_field_is_described() -> None:
    silent = []
    for method, path, operation in operations():
        told = {f"{method} {path}": operation}
        told |= {f"{method} {path} {each['name']}": each for each in operation.get("parameters", ())}
        silent += [name for name, each in told.items() if not each.get("description")]
    for name, schema in DOCUMENT["components"]["schemas"].items():
        fields = schema.get("properties", {})
        silent += [f"{name}.{field}" for field, each in fields.items() if not each.get("description")]
    assert not silent


def test_the_document_is_valid() -> None:
    jsonschema_rs.validator_for(json.loads(json.dumps(dict(schema_v31)))).validate(DOCUMENT)


def described(schema: Any) -> Iterator[dict[str, Any]]:
    """Each schema inside with examples."""
    if isinstance(schema, dict):
        if isinstance(schema.get("examples"), list):
            yield schema
        for inner in schema.values():
            yield from described(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from described(inner)


def test_every_example_fits_its_schema() -> None:
    found = list(described(DOCUMENT))
    assert found
    for schema in found:
        validator = OAS31Validator({**schema, "components": DOCUMENT["components"]})
        for example in schema["examples"]:
            assert not [error.message for error in validator.iter_errors(example)], example


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    schema = next((one for one in schema.get("anyOf", []) if "$ref" in one), schema)
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def test_every_body_and_every_answer_has_an_example() -> None:
    for method, path, operation in operations():
        if not {"schedules", "definitions", "lanes", "calendars", "tenants", "jobs"} & set(operation["tags"]):
            continue
        bodies = operation.get("requestBody", {}).get("content", {})
        assert set(bodies) == ({JSON, MERGE_PATCH} if method == "PATCH" else set(bodies) & {JSON}), path
        answers = [
            answer["content"][JSON]
            for status, answer in operation["responses"].items()
            if status[0] == "2" and JSON in answer.get("content", {})
        ]
        for content in (*bodies.values(), *answers):
            assert resolved(content["schema"]).get("examples"), (path, content)


@pytest.mark.parametrize("kind", ["definition", "lane", "calendar", "tenant"])
async def test_the_examples_of_what_has_a_name_are_taken_and_shown_so(client: Client, kind: str) -> None:
    schemas = DOCUMENT["components"]["schemas"]
    [example] = schemas[f"{kind.capitalize()}Body"]["examples"]
    answer = await client.put(f"/v1/{kind}s/a", json=example)
    assert answer.json() == {"name": "a", "rev": 1, **example}
    sent = {field: answer.json()[field] for field in example}
    assert (await client.put(f"/v1/{kind}s/a", json=sent)).json() == answer.json(), "sent back it changes nothing"
    [shown] = schemas[f"{kind.capitalize()}Response"]["examples"]
    assert set(shown) == set(answer.json())


@pytest.mark.parametrize("kind", ["schedule", "definition", "lane", "calendar", "tenant"])
async def test_the_examples_of_a_patch_are_taken(client: Client, kind: str) -> None:
    await create(client)
    for other in ("definition", "lane", "calendar", "tenant"):
        assert (await client.put(f"/v1/{other}s/tick", json={})).status_code == 201
    content = DOCUMENT["paths"][f"/v1/{kind}s/{{name}}"]["patch"]["requestBody"]["content"][MERGE_PATCH]
    for example in content["schema"]["examples"]:
        answer = await client.patch(f"/v1/{kind}s/tick", json=example)
        assert answer.status_code == 200, answer.text


async def test_the_document_that_is_served_is_the_one_in_the_package_and_the_one_that_the_routes_give(
    client: Client,
) -> None:
    answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == application.description_of(the_routes()), "write it: make reference"
    assert answer.json() == DOCUMENT


def test_a_start_makes_no_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take most of a second, and 11 MB for good."""
    made: list[object] = []
    monkeypatch.setattr(application._Api, "openapi", made.append)
    application.create_app(World().services())
    assert not made


_EXAMPLES_MAX = in_tier(check=1, test=5, long=25)
_PHASES = [phase for phase in Phase if TIER != "check" or phase is not Phase.explicit]
"""The explicit ones, some seventy requests an operation, are made when tests are collected: seconds in each worker."""

world = World()
world.auth = AuthConfig(required=True, admin_digest=digest_of(SECRET))
schema = schemathesis.openapi.from_asgi("/openapi.json", app_of(world))


@schema.exclude(operation_id=STREAMS).parametrize()
@settings(
    max_examples=_EXAMPLES_MAX,
    phases=_PHASES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_what_its_document_promises(case: Case[Any]) -> None:
    app_of(world)
    world.database.replace(Collection.JOBS, new_job_document(make_job("job:1")))
    aimed(case).call_and_validate(headers=HEADERS, checks=PROMISES)
