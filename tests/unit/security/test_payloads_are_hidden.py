"""With ``UI_PAYLOADS=never`` no route shows a page what a payload, a result or a traceback holds, and no page erases
what it does not see."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import PageTerms
from hascheduler.dispatch.explanation import Block, BlockReason, Explanation
from tests.unit.api.doubles import NOW, World, the_routes
from tests.unit.api.requests import TICK, check_problem, get
from tests.unit.api.tokens import Guarded

HIDDEN = "a-customers-name"
PAYLOAD = {"customer": HIDDEN}
GRAPH: dict[str, Any] = {
    "name": "graph",
    "trigger": {"type": "interval", "every": "1h"},
    "jobs": [
        {"ref": "a", "definition": "log", "payload": PAYLOAD},
        {"ref": "b", "definition": "log", "payload": {"of": "b"}, "depends_on": ["a"]},
    ],
}
FILLED = {**PAYLOAD, "on": "${nominal_date}"}
SINGLE: dict[str, Any] = {**TICK, "job": {"definition": "log", "payload": FILLED, "render": True}}
SHOWN: dict[tuple[str, str], Any] = {
    ("GET", "/v1/schedules"): None,
    ("POST", "/v1/schedules"): {**SINGLE, "name": "new"},
    ("GET", "/v1/schedules/{name}"): None,
    ("PUT", "/v1/schedules/{name}"): {**SINGLE, "overlap": "skip"},
    ("PATCH", "/v1/schedules/{name}"): {"overlap": "skip"},
    ("POST", "/v1/schedules/{name}/pause"): {},
    ("POST", "/v1/schedules/{name}/resume"): {},
    ("POST", "/v1/schedules/{name}/reset"): {},
    ("POST", "/v1/schedules/{name}/trigger"): {},
    ("GET", "/v1/schedules/{name}/preview"): None,
    ("POST", "/v1/schedules/{name}/preview"): {"overlap": "skip"},
    ("POST", "/v1/schedules/preview"): {"trigger": TICK["trigger"]},
    ("POST", "/v1/jobs"): {"definition": "log", "payload": PAYLOAD},
    ("GET", "/v1/jobs/{id}"): None,
}
"""Each route whose answer has a payload, a result or a traceback, with a body; `/v1/work` is for no page."""
HOLDING = {"payload", "result", "traceback"}


def fields_in(schema: Any, schemas: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[str]:
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rsplit("/", 1)[-1]
            if name not in seen:
                yield from fields_in(schemas[name], schemas, seen | {name})
        case dict():
            yield from schema.get("properties", {})
            for key, inner in schema.items():
                if key not in ("example", "examples"):
                    yield from fields_in(inner, schemas, seen)
        case list():
            for inner in schema:
                yield from fields_in(inner, schemas, seen)


def test_these_are_all_routes_that_show_payloads() -> None:
    document = the_routes().openapi()
    found = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            answers = [answer for status, answer in operation["responses"].items() if status[0] == "2"]
            if HOLDING & set(fields_in(answers, document["components"]["schemas"])):
                found.add((method.upper(), path))
    assert found == {*SHOWN, ("POST", "/v1/work/start")}


@pytest.fixture
def hiding(app: Edge, world: World) -> Guarded:
    return hiding_in(app, world)


def hiding_in(app: Edge, world: World, *, required: bool = True) -> Guarded:
    world.auth = replace(world.auth, pages=PageTerms(shows_payloads=False))
    return Guarded(app, world, required=required)


async def prepared(guarded: Guarded) -> None:
    """A schedule, a graph and a job, made by a program."""
    async with await guarded.client("admin") as program:
        for body in (SINGLE, GRAPH):
            answer = await program.post("/v1/schedules", json=body)
            assert answer.status_code == 201, answer.text
        answer = await program.post("/v1/jobs", json={"definition": "log", "payload": PAYLOAD})
        assert answer.json()["payload"] == PAYLOAD
    attempt = {"number": 1, "outcome": "failed", "error": "it broke", "traceback": f"KeyError: {HIDDEN}"}
    guarded.world.rewrite_job(
        job_of(guarded.world), state="succeeded", attempt=1, finished_at_ms=NOW, result=PAYLOAD, attempts=[attempt]
    )


def job_of(world: World) -> str:
    return str(next(job["_id"] for job in world.everything()["jobs"] if job["_id"].startswith("job:")))


def filled(path: str, world: World, name: str) -> str:
    return path.replace("{name}", name).replace("{id}", job_of(world))


@pytest.mark.parametrize("name", ["tick", "graph"])
@pytest.mark.parametrize(("method", "path"), SHOWN, ids=[f"{method} {path}" for method, path in SHOWN])
async def test_a_page_is_shown_none(hiding: Guarded, method: str, path: str, name: str) -> None:
    await prepared(hiding)
    body = SHOWN[method, path]
    if name == "graph" and method == "PUT":
        body = {**GRAPH, "overlap": "skip"}
    async with await hiding.page("admin") as page:
        answer = await page.request(method, filled(path, hiding.world, name), json=body)
    assert answer.is_success, answer.text
    assert HIDDEN not in answer.text


async def test_a_page_without_a_session_is_shown_none_and_a_program_is(app: Edge, world: World) -> None:
    guarded = hiding_in(app, world, required=False)
    await prepared(guarded)
    async with guarded.showing(None) as client:
        for headers, payload in (({}, FILLED), ({"Sec-Fetch-Site": "same-origin"}, None)):
            answer = await client.get("/v1/schedules/tick", headers=headers)
            assert answer.json()["job"]["payload"] == payload


async def test_values_of_limits_per_key_are_not_shown(hiding: Guarded) -> None:
    await prepared(hiding)
    id = job_of(hiding.world)
    blocks = [
        Block(BlockReason.KEY, f"1 of 1 with {key}={HIDDEN!r} run", "when", {"key": key, "value": HIDDEN, "cap": 1})
        for key in ("payload.customer", "payload.a.b")
    ]
    by_label = Block(BlockReason.KEY, "1 of 1 with label.team='a' run", "when", {"key": "label.team", "value": "a"})
    hiding.world.view.explanations[id] = Explanation(id, "waiting", blocks=(*blocks, by_label))
    async with await hiding.page("viewer") as page, await hiding.client("viewer") as program:
        assert HIDDEN in (await program.get(f"/v1/jobs/{id}/why")).text
        answer = await page.get(f"/v1/jobs/{id}/why")
    assert HIDDEN not in answer.text
    assert "payload.customer" in answer.json()["summary"]
    assert answer.json()["blocks"][2]["numbers"] == {"key": "label.team", "value": "a"}


async def test_what_shows_nothing_else_is_refused(hiding: Guarded) -> None:
    async with await hiding.page("admin") as page:
        check_problem(await page.get("/v1/cluster/recording?for=1s"), 403)
        check_problem(await page.post("/v1/work/start", json={}), 403)
        check_problem(await page.post("/v1/tokens", json={"name": "m", "role": "viewer", "tenant": "*"}), 403)


def payloads(stored: dict[str, Any]) -> object:
    return stored["payloads"] if "payloads" in stored else stored["payload"]


async def edited(page: httpx2.AsyncClient, method: str, name: str, body: Any) -> dict[str, Any]:
    answer = await page.request(method, f"/v1/schedules/{name}", json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


@pytest.mark.parametrize("name", ["tick", "graph"])
async def test_who_sends_back_what_was_shown_erases_nothing(hiding: Guarded, name: str) -> None:
    await prepared(hiding)
    before = hiding.world.schedule(name)
    async with await hiding.page("operator") as page:
        shown = await get(page, f"/v1/schedules/{name}")
        requested = {key: shown[key] for key in ("trigger", "misfire", "overlap", "job", "jobs", "labels")}
        requested = {key: value for key, value in requested.items() if value is not None}
        assert (await edited(page, "PUT", name, requested))["rev"] == shown["rev"]
        assert (await edited(page, "PATCH", name, requested))["rev"] == shown["rev"]
        assert hiding.world.schedule(name) == before
        for method in ("PUT", "PATCH"):
            requested["labels"] = {"by": method}
            assert (await edited(page, method, name, requested))["labels"] == {"by": method}
            assert payloads(hiding.world.schedule(name)) == payloads(before)


async def test_what_a_page_says_takes_the_place_of_what_it_does_not_see(hiding: Guarded) -> None:
    await prepared(hiding)
    async with await hiding.page("operator") as page:
        await edited(page, "PATCH", "tick", {"job": {"payload": {"new": 1}}})
        assert payloads(hiding.world.schedule("tick")) == {**FILLED, "new": 1}  # a merge patch
        await edited(page, "PUT", "tick", {**TICK, "job": {"definition": "log", "payload": {"new": 1}}})
        assert payloads(hiding.world.schedule("tick")) == {"new": 1}
        jobs = [{**GRAPH["jobs"][0], "payload": {"new": 1}}, {**GRAPH["jobs"][1], "payload": None}]
        await edited(page, "PUT", "graph", {**GRAPH, "jobs": jobs})
        assert payloads(hiding.world.schedule("graph")) == {"a": {"new": 1}, "b": {"of": "b"}}


async def test_an_unseen_payload_is_judged_with_what_is_changed_around_it(hiding: Guarded) -> None:
    """It may need a label that the edit takes away."""
    body = {**SINGLE, "job": {"definition": "log", "payload": "${label.team}", "render": True}, "labels": {"team": "a"}}
    async with await hiding.client("admin") as program:
        assert (await program.post("/v1/schedules", json=body)).status_code == 201
    before = hiding.world.schedule()
    async with await hiding.page("operator") as page:
        for method, change in (
            ("PATCH", {"labels": {"team": None}}),
            ("PUT", {**SINGLE, "job": {"definition": "log", "render": True}}),
        ):
            check_problem(await page.request(method, "/v1/schedules/tick", json=change), 422)
    assert hiding.world.schedule() == before
