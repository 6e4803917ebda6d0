"""Changes of all that matches over three shards: agreed to by the sum, done in turn, and gone on with by ``next``."""

from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from hascheduler.api.jobs import all_that_match as of_jobs
from hascheduler.api.schedules import all_that_match as of_schedules
from hascheduler.model.collection import Collection
from tests.unit.shards.test_merging import merged_at, silent
from tests.unit.shards.worlds import TENANTS, WorldPlace, asking, shards, submit

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


async def test_a_dry_run_counts_in_all_shards_and_changes_nothing() -> None:
    places = await with_jobs()
    answer = await post(places, "/v1/jobs:cancel", {**BATCH, "dry_run": True, "expected": 1})
    assert (answer["matched"], answer["exact"], answer["changed"], answer["complete"]) == (9, True, 0, True)
    assert states(places) == [3, 3, 3]


async def test_all_shards_change_what_matches_and_the_answer_is_the_sum() -> None:
    places = await with_jobs()
    answer = await post(places, "/v1/jobs:cancel", {**BATCH, "expected": 9})
    counts = {"matched": 9, "changed": 9, "asked_to_stop": 0, "refused": 0}
    assert answer == {**counts, "exact": True, "error": None, "complete": True, "next": None}
    assert states(places) == [0, 0, 0]


@pytest.mark.parametrize("path", ["/v1/jobs:cancel", "/v1/schedules:pause"])
async def test_more_than_was_agreed_to_is_refused_by_the_sum_of_all(path: str) -> None:
    places = await (with_jobs() if "jobs" in path else with_schedules())
    problem = await post(places, path, {**(BATCH if "jobs" in path else TEXT), "expected": 3}, 409)
    assert problem["detail"] == "9 match now, and 3 were expected; look again"
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


@pytest.mark.parametrize("most", [1, 2, 4, 20])
async def test_schedules_are_changed_once_each_however_often_it_takes(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_schedules, "CHANGED_MAX", most)
    monkeypatch.setattr("hascheduler.shards.all_that_match.CHANGED_MAX", most)
    places = await with_schedules()
    changed, turns = 0, 0
    after: dict[str, str] = {}
    while True:
        answer = await post(places, "/v1/schedules:trigger", {**TEXT, **after}, key="k")
        changed, turns = changed + answer["changed"], turns + 1
        if answer["complete"]:
            break
        after = {"after": answer["next"]}
    jobs = [len(list(place.world.database.documents(Collection.JOBS))) for place in places]
    assert (changed, jobs) == (9, [3, 3, 3])
    assert turns <= 12


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
    [None, [], 7, "x", {}, {"filter": {}}, {**TEXT, "dry_run": "yes"}, {**TEXT, "expected": "3"}, {**TEXT, "after": 7}]
    + [{**TEXT, "after": after} for after in ("9~x", "x~", "~", "1~~", "-1~a", "²~a")],
)
async def test_a_body_that_no_shard_takes_is_refused(body: Any) -> None:
    places = await with_schedules()
    async with asking(merged_at(places)) as client:
        answer = await client.post("/v1/schedules:pause", json=body)
    assert answer.status_code in (400, 413, 415, 422), answer.text
    assert paused(places) == 0


async def test_the_time_of_a_request_is_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.shards.all_that_match.BUSY_MS_MAX", 0)
    places = await with_schedules()
    answer = await post(places, "/v1/schedules:pause", TEXT)
    assert (answer["changed"], answer["complete"], answer["next"]) == (3, False, "1~")
