"""Requests of several shards: batches and changes of all that match, part by part; where workers register."""

from typing import Any

import orjson
import pytest
from starlette.types import Receive, Scope, Send

from hascheduler.api.jobs import all_that_match as of_jobs
from hascheduler.model.collection import Collection
from tests.unit.shards.gateways import HOME, ONE, TWO, Ring, Sent, only
from tests.unit.shards.test_merging import merged_at, silent
from tests.unit.shards.worlds import TENANTS, WorldPlace, asking, shards, submit

# Batches


PATH = "/v1/jobs:batch"
MIXED = [HOME, ONE, TWO, ONE, HOME]


@pytest.fixture
def ring() -> Ring:
    ring = Ring()
    for place in ring.places:
        place.answers[PATH] = _accepted
    return ring


def _accepted(sent: Sent) -> tuple[int, Any]:
    results = [{"status": 201, "job": f"{sent.shard}:{job['n']}", "problem": None} for job in sent.json["jobs"]]
    return 200, {"batch": f"batch:{sent.shard}", "results": results}


def jobs(*tenants: str, **more: Any) -> dict[str, Any]:
    return {"jobs": [{"tenant": tenant, "n": n} for n, tenant in enumerate(tenants)], **more}


async def test_each_shard_gets_its_part_and_the_answers_are_in_the_order_of_the_request(ring: Ring) -> None:
    answer = await ring.ask(f"POST {PATH}", jobs(*MIXED))
    assert answer.status == 200
    assert [each["job"] for each in answer.json["results"]] == [
        "default:0", "0001:1", "0002:2", "0001:3", "default:4"
    ]  # fmt: skip
    parts = {sent.shard: [job["n"] for job in sent.json["jobs"]] for sent in ring.log}
    assert parts == {"default": [0, 4], "0001": [1, 3], "0002": [2]}
    assert all(dict(sent.scope["headers"])[b"content-length"] == str(len(sent.body)).encode() for sent in ring.log)


async def test_the_key_of_each_job_has_its_place_in_the_whole_batch(ring: Ring) -> None:
    body = jobs(*MIXED)
    body["jobs"][1]["idempotency_key"] = "own"
    await ring.ask(f"POST {PATH}", body, headers={"idempotency-key": "K"})
    keys = {job["n"]: job["idempotency_key"] for sent in ring.log for job in sent.json["jobs"]}
    assert keys == {0: "K#0", 1: "own", 2: "K#2", 3: "K#3", 4: "K#4"}


async def test_a_batch_of_one_shard_is_passed_on_as_it_is(ring: Ring) -> None:
    raw = orjson.dumps(jobs(ONE, ONE, atomic=True), option=orjson.OPT_INDENT_2)
    await ring.ask(f"POST {PATH}", raw, headers={"idempotency-key": "K"})
    await ring.ask(f"POST {PATH}", raw, caller=only(TWO))
    assert [(sent.shard, sent.body) for sent in ring.log] == [("0001", raw), ("0002", raw)]


async def test_an_atomic_batch_of_two_shards_is_refused_with_their_names(ring: Ring) -> None:
    answer = await ring.ask(f"POST {PATH}", jobs(ONE, TWO, atomic=True))
    assert (answer.status, answer.json["errors"][0]["path"]) == (422, "jobs")
    assert f"tenant '{ONE}' is in shard 0001, and tenant '{TWO}' is in shard 0002" in answer.json["detail"]
    assert not ring.log


async def test_if_a_part_is_refused_so_are_its_jobs_alone(ring: Ring) -> None:
    refusal = {"type": "urn:x", "title": "t", "status": 503, "detail": "shard 0001 is away"}
    ring.places[1].answers[PATH] = (503, refusal)
    answer = await ring.ask(f"POST {PATH}", jobs(*MIXED))
    assert answer.status == 200
    assert [each["status"] for each in answer.json["results"]] == [201, 503, 201, 503, 201]
    assert answer.json["results"][3] == {"status": 503, "job": None, "problem": {"errors": [], **refusal}}


async def test_if_the_first_part_is_refused_nothing_is_submitted(ring: Ring) -> None:
    ring.places[0].answers[PATH] = (429, {"of": "default"})
    answer = await ring.ask(f"POST {PATH}", jobs(*MIXED))
    assert (answer.status, answer.json) == (429, {"of": "default"})
    assert ring.asked == ["default"]


async def test_a_body_that_may_be_large_is_charged_while_it_is_read(ring: Ring) -> None:
    limit = ring.limits["large_bodies"]
    seen: list[int] = []

    async def given() -> dict[str, Any]:
        seen.append(limit.in_use)
        return {"type": "http.request", "body": orjson.dumps(jobs(*MIXED))}

    await ring.ask(f"POST {PATH}", jobs(*MIXED), receive=given)
    assert seen[0] >= 1
    assert limit.in_use == 0


async def test_a_batch_that_is_repeated_under_its_key_gets_the_same_jobs_by_the_real_routes(ring: Ring) -> None:
    ring.gateway.places = places = shards()
    body: dict[str, Any] = {"jobs": [{"definition": "log", "tenant": tenant} for tenant in (ONE, HOME, ONE)]}
    body["jobs"].append({"definition": "log", "tenant": HOME, "priority": 99})
    headers = {"idempotency-key": "K", "host": "api"}
    first = await ring.ask(f"POST {PATH}", body, headers=headers)
    again = await ring.ask(f"POST {PATH}", body, headers=headers)
    assert [each["status"] for each in first.json["results"]] == [201, 201, 201, 422]
    assert [each["status"] for each in again.json["results"]] == [200, 200, 200, 422]
    assert [each["job"] for each in first.json["results"]] == [each["job"] for each in again.json["results"]]
    assert first.json["batch"] == again.json["batch"]
    assert first.json["results"][3]["problem"]["errors"][0]["path"] == "priority"
    assert [len(place.world.everything()["jobs"]) for place in places] == [1, 2, 0]


# Changes of all that match


BATCH = {"filter": {"labels": {"team": "a"}}}
TEXT = {"filter": {"text": "s"}}


async def with_jobs() -> list[WorldPlace]:
    places = shards()
    for number in range(9):
        await submit(places[number % 3], tenant=TENANTS[number % 3], labels={"team": "a"})
    return places


async def with_schedules() -> list[WorldPlace]:
    places = shards()
    for number in range(9):
        trigger = {"type": "interval", "every": "1h"}
        job = {"definition": "log", "tenant": TENANTS[number % 3]}
        async with asking(places[number % 3].app) as client:
            answer = await client.post("/v1/schedules", json={"name": f"s{number}", "trigger": trigger, "job": job})
            assert answer.status_code == 201
    return places


async def post(places: list[WorldPlace], path: str, body: Any, status: int = 200, key: str = "") -> Any:
    async with asking(merged_at(places)) as client:
        answer = await client.post(path, json=body, headers={"Idempotency-Key": key} if key else {})
    assert answer.status_code == status, answer.text
    return answer.json()


def states(places: list[WorldPlace]) -> list[int]:
    """How many jobs wait in each."""
    return [
        sum(job["state"] == "pending" for job in place.world.database.documents(Collection.JOBS)) for place in places
    ]


def paused(places: list[WorldPlace]) -> int:
    return sum(
        each.get("paused_at_ms") is not None
        for place in places
        for each in place.world.database.documents(Collection.SCHEDULES)
    )


@pytest.mark.parametrize("path", ["/v1/jobs:cancel", "/v1/schedules:pause"])
async def test_more_than_was_agreed_to_is_refused_by_the_sum_of_all(path: str) -> None:
    places = await (with_jobs() if "jobs" in path else with_schedules())
    problem = await post(places, path, {**(BATCH if "jobs" in path else TEXT), "expected": 3}, 409)
    assert problem["detail"] == "9 match now, but 3 were expected; check and retry"
    assert (states(places) == [3, 3, 3]) if "jobs" in path else (paused(places) == 0)


@pytest.mark.parametrize("most", [1, 2, 4, 20])
async def test_jobs_are_changed_once_each_however_often_it_takes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_jobs, "CHANGED_MAX", most)
    monkeypatch.setattr("hascheduler.shards.all_that_match.CHANGED_MAX", most)
    places = await with_jobs()
    changed = 0
    after: dict[str, str] = {}
    for _ in range(20):
        answer = await post(places, "/v1/jobs:cancel", {**BATCH, **after})
        changed += answer["changed"]
        if answer["complete"]:
            break
        after = {"after": answer["next"]}
    assert (changed, states(places)) == (9, [0, 0, 0])
    assert not after or after["after"] == "2030-01-01T00:00:00.000Z"


async def test_a_shard_that_does_not_answer_refuses_all_before_anything_is_changed() -> None:
    places = await with_jobs()
    places[2].answer = silent
    problem = await post(places, "/v1/jobs:cancel", BATCH, 503)
    assert problem["detail"] == "shard 0002: no"
    assert states(places) == [3, 3, 3]


async def test_what_was_changed_is_told_though_a_later_shard_goes_away() -> None:
    places = await with_schedules()
    asked = 0

    async def once(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal asked
        asked += 1
        await (places[1].app if asked == 1 else silent)(scope, receive, send)

    places[1].answer = once
    answer = await post(places, "/v1/schedules:pause", TEXT)
    assert (answer["changed"], answer["complete"], answer["next"]) == (3, False, "1~")
    assert (await post(places, "/v1/schedules:pause", {**TEXT, "after": "1~"}, 503))["detail"] == "shard 0001: no"
    places[1].answer = None
    assert (await post(places, "/v1/schedules:pause", {**TEXT, "after": "1~"}))["complete"]
    assert paused(places) == 9


@pytest.mark.parametrize(
    "body",
    [None, [], {"filter": {}}, {**TEXT, "expected": "3"}]
    + [{**TEXT, "after": after} for after in (7, "9~x", "x~", "~", "1~~", "-1~a", "²~a")],
)
async def test_a_body_that_no_shard_takes_is_refused(body: Any) -> None:
    places = await with_schedules()
    async with asking(merged_at(places)) as client:
        answer = await client.post("/v1/schedules:pause", json=body)
    assert answer.status_code in (400, 413, 415, 422), answer.text
    assert paused(places) == 0
