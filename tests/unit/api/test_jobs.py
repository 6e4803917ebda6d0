"""Jobs: how they are stored and shown."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World


async def test_a_job_is_stored_with_its_defaults_and_shown(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/jobs", json={"definition": "log"})
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/jobs/job:0001"
    stored = world.job("job:0001")
    assert (stored["target"], stored["tenant"], stored["fairness_key"]) == ("job:0001", "default", "default")
    assert stored["submitted_at_ms"] == NOW
    assert stored["not_before_ms"] is None
    shown = answer.json()
    assert (await client.get("/v1/jobs/job:0001")).json() == shown
    assert shown["id"] == "job:0001"
    assert shown["state"] == "pending"
    assert shown["submitted_at"] == "2030-01-01T00:00:00.000Z"
    assert (shown["tenant"], shown["resources"], shown["unschedulable"]) == ("default", None, False)
    assert not {"_id", "rev", "sequence", "submitted_at_ms", "expire_at"} & set(shown)


async def test_every_field_of_a_submit_is_stored(client: httpx.AsyncClient, world: World) -> None:
    body = {
        "definition": "sleep",
        "target": "demo",
        "payload": [{"seconds": 1.5}],
        "priority": 0,
        "tenant": "acme",
        "fairness_key": "k",
        "lane": "slow",
        "mode": "on_demand",
        "resources": {"cpu": 2},
        "labels": {"a": "b"},
        "not_before": "2030-01-01T00:00:01.5Z",
    }
    shown = (await client.post("/v1/jobs", json=body)).json()
    assert {name: shown[name] for name in body} == {**body, "not_before": "2030-01-01T00:00:01.500Z"}
    stored = world.job("job:0001")
    assert (stored["not_before_ms"], stored["tenant"], stored["resources"]) == (NOW + 1500, "acme", {"cpu": 2})


@pytest.mark.parametrize(
    ("body", "key"),
    [({}, "acme"), ({"fairness_key": None}, "acme"), ({"fairness_key": ""}, ""), ({"fairness_key": "k"}, "k")],
)
async def test_the_fairness_key_defaults_to_the_tenant(
    client: httpx.AsyncClient, body: dict[str, Any], key: str
) -> None:
    shown = (await client.post("/v1/jobs", json={"definition": "log", "tenant": "acme", **body})).json()
    assert shown["fairness_key"] == key


async def test_a_job_that_needs_nothing_differs_from_one_that_leaves_it_to_its_definition(
    client: httpx.AsyncClient, world: World
) -> None:
    for needs in (dict[str, int](), None):
        shown = (await client.post("/v1/jobs", json={"definition": "log", "resources": needs})).json()
        assert shown["resources"] == world.job(shown["id"])["resources"] == needs


async def test_a_job_that_can_never_run_is_marked_while_it_waits(client: httpx.AsyncClient, world: World) -> None:
    for _ in range(3):
        await client.post("/v1/jobs", json={"definition": "log"})
    world.view.never_to_run = {"job:0001", "job:0002"}
    await client.post("/v1/jobs/job:0002/cancel")  # which the mirror may not have seen yet
    items = (await client.get("/v1/jobs")).json()["items"]
    assert {item["id"]: item["unschedulable"] for item in items} == {
        "job:0001": True, "job:0002": False, "job:0003": False
    }  # fmt: skip
    assert (await client.get("/v1/jobs/job:0001")).json()["unschedulable"] is True


async def test_a_job_is_shown_with_its_attempts_whatever_its_handler_stored(
    client: httpx.AsyncClient, world: World
) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    attempt = {
        "number": 1,
        "processor": "p-1",
        "dispatched_at_ms": NOW,
        "started_at_ms": None,
        "finished_at_ms": NOW + 1,
        "outcome": "lost",
        "error": "the processor died",
    }
    result = {"when": datetime(2030, 1, 1, tzinfo=UTC), "ratio": float("nan"), "nested": [{"a": 1}]}
    changes = {"attempts": [attempt], "result": result, "expire_at": datetime.now(UTC)}
    world.rewrite(Collection.JOBS, "job:0001", **changes)
    shown = (await client.get("/v1/jobs/job:0001")).json()
    assert shown["result"] == {"when": "2030-01-01T00:00:00+00:00", "ratio": "nan", "nested": [{"a": 1}]}
    assert shown["attempts"] == [
        {
            "number": 1,
            "processor": "p-1",
            "dispatched_at": "2030-01-01T00:00:00.000Z",
            "started_at": None,
            "finished_at": "2030-01-01T00:00:00.001Z",
            "outcome": "lost",
            "error": "the processor died",
            "traceback": None,
        }
    ]


async def test_jobs_are_listed_newest_first_and_filtered(client: httpx.AsyncClient, world: World) -> None:
    for definition in ("log", "log", "log", "sleep"):
        await client.post("/v1/jobs", json={"definition": definition})
    world.rewrite(Collection.JOBS, "job:0001", state="running", schedule="tick")
    page = (await client.get("/v1/jobs?definition=log&limit=2")).json()
    assert [item["id"] for item in page["items"]] == ["job:0003", "job:0002"]
    assert page["next"] == f"~{NOW}.job:0002"
    assert "payload" not in page["items"][0]
    for query in ("state=running", "schedule=tick", f"definition=log&after={page['next']}"):
        page = (await client.get(f"/v1/jobs?{query}")).json()
        assert [item["id"] for item in page["items"]] == ["job:0001"]
        assert page["next"] is None


async def test_jobs_are_listed_by_when_they_were_submitted_whatever_made_them(
    client: httpx.AsyncClient, world: World
) -> None:
    submitted = {"job:0001": 10, "job:0002": 40, "job:0003": 30, "job:0004": 20}
    for id, at in submitted.items():
        await client.post("/v1/jobs", json={"definition": "log"})
        world.rewrite(Collection.JOBS, id, submitted_at_ms=NOW + at)
    assert await listed(client, "") == ["job:0002", "job:0003", "job:0004", "job:0001"]
    since, until = "2030-01-01T00:00:00.020Z", "2030-01-01T00:00:00.040Z"
    assert await listed(client, f"since={since}") == ["job:0002", "job:0003", "job:0004"]
    assert await listed(client, f"until={until}") == ["job:0003", "job:0004", "job:0001"]
    assert await listed(client, f"since={since}&until={until}") == ["job:0003", "job:0004"]


async def test_a_list_may_be_of_those_that_can_never_run(client: httpx.AsyncClient, world: World) -> None:
    for _ in range(3):
        await client.post("/v1/jobs", json={"definition": "log"})
    assert await listed(client, "unschedulable=true") == []
    world.view.never_to_run = {"job:0001", "job:0003"}
    world.rewrite(Collection.JOBS, "job:0003", state="cancelled")
    assert await listed(client, "unschedulable=true") == ["job:0001"]
    assert await listed(client, "unschedulable=true&state=pending&state=running") == ["job:0001"]
    assert await listed(client, "unschedulable=true&state=running") == []
    assert len(await listed(client, "unschedulable=false")) == 3


@pytest.mark.parametrize(
    "after", ["job:0002", "fire:tick:1893456000000", "~", "~1.", "~-1", "~1e3", "x~1", "~" + "9" * 20]
)
async def test_what_is_no_place_in_the_list_is_refused_as_such(client: httpx.AsyncClient, after: str) -> None:
    answer = await client.get("/v1/jobs", params={"after": after})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["path"] == "after"
    assert "is no place in this list, which has the newest first" in error["problem"]
    assert error["expected"] == "`next` of the page before; the list begins without it"


async def listed(client: httpx.AsyncClient, query: str) -> list[str]:
    """The ids, of pages of one job each."""
    found: list[str] = []
    after = ""
    while True:
        answer = await client.get(f"/v1/jobs?limit=1&{query}{after}")
        assert answer.status_code == 200, answer.text
        found += [item["id"] for item in answer.json()["items"]]
        if answer.json()["next"] is None:
            return found
        after = f"&after={answer.json()['next']}"


async def test_a_cancel_answers_with_what_became_of_the_job(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, "job:0002", state="running")
    answers = [
        (await client.post(f"/v1/jobs/{id}/cancel")).json() for id in ("job:0001", "job:0001", "job:0002", "job:0002")
    ]
    assert [answer["answer"] for answer in answers] == [
        "cancelled",
        "already_done",
        "already_running",
        "already_running",
    ]
    assert (await client.get("/v1/jobs/job:0001")).json()["finished_at"] == "2030-01-01T00:00:00.000Z"
