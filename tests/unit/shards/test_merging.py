"""The answers of three shards as one: as one shard answers that has it all, page by page."""

import random
from copy import deepcopy
from http import HTTPStatus
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.mirror.history import DAY_EVERY_MS
from hascheduler.model.collection import Collection
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import StandingPause, drain_id
from hascheduler.shards.answers import naming_refusals
from hascheduler.shards.layout import Layout
from hascheduler.shards.merging import MERGED, Key, newest_first, newest_first_text, pages_as_one
from tests.factories import make_failover
from tests.tiers import examples
from tests.unit.api.doubles import NOW, World
from tests.unit.shards.worlds import LAYOUT, NAMES, TENANTS, Answer, WorldPlace, asking, in_front, shards, submit

COPIED = (Collection.JOBS, Collection.SCHEDULES, Collection.VERDICTS)


def merged_at(places: list[WorldPlace], layout: Layout = LAYOUT) -> Answer:
    """The gateway, as far as requests over all tenants go."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        body = message.get("body", b"")
        merge = MERGED[scope["method"], scope["path"]]
        await merge(layout, places, orjson.loads(body) if body else None, (scope, receive, send))

    return in_front(places[0].world, answer)


def whole_of(places: list[WorldPlace]) -> list[WorldPlace]:
    """One shard that has all that these have."""
    world = World()
    world.clock.now = places[0].world.clock.now
    for place in places:
        for collection in COPIED:
            for document in place.world.database.documents(collection):
                world.database.insert(collection, deepcopy(dict(document)))
    return [WorldPlace("one", world)]


async def got(places: list[WorldPlace], path: str, layout: Layout = LAYOUT) -> Any:
    """Return what a single place answers itself, and several behind the gateway."""
    async with asking(places[0].app if len(places) == 1 else merged_at(places, layout)) as client:
        answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


_documents: list[list[tuple[Collection, dict[str, Any]]]] = []


async def filled() -> list[WorldPlace]:
    """Jobs that were submitted at instants that often coincide, schedules, failures and verdicts, in all shards."""
    if not _documents:
        _documents.extend(
            [(each, dict(one)) for each in COPIED for one in place.world.database.documents(each)]
            for place in await _filled_by_requests()
        )
    places = shards()
    for place, documents in zip(places, _documents, strict=True):
        place.world.clock.now = WallMs(NOW + 7_200_000)
        for collection, document in documents:
            place.world.database.insert(collection, deepcopy(document))
    return places


async def _filled_by_requests() -> list[WorldPlace]:
    places = shards()
    for number in range(24):
        place, tenant = places[number % 3], TENANTS[number % 3]
        place.world.clock.now = WallMs(NOW + number // 4)
        id = await submit(place, tenant=tenant, labels={"n": str(number % 2)}, target=f"t{number % 4}")
        if number % 2:
            error = f"TimeoutError: no answer in {number} s" if number % 3 else "ValueError: no"
            place.world.rewrite_job(id, state="failed", finished_at_ms=NOW + 50 + number, error=error)
    for number in range(9):
        place, name = places[number % 3], f"s{number}"
        body = {
            "name": name,
            "trigger": {"type": "interval", "every": "1h"},
            "job": {"definition": "log", "tenant": TENANTS[number % 3]},
        }
        async with asking(place.app) as client:
            assert (await client.post("/v1/schedules", json=body)).status_code == 201
        await place.world.pass_over(Verdict.MISSED, NOW + 3_600_000, name=name)
        place.world.rewrite(Collection.SCHEDULES, name, failures=number % 2, cursor_ms=NOW + (number % 4) * 3_600_000)
    return places


# Pages


async def all_pages(ask: Any, path: str) -> list[Any]:
    found: list[Any] = []
    after = ""
    for _ in range(100):
        page = await ask(path + after)
        found += page["items"]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"
    raise AssertionError("no last page")


@pytest.mark.parametrize("limit", [1, 4, 5, 200])
@pytest.mark.parametrize(
    "path",
    [
        "jobs?",
        "jobs?label=n%3D1&",
        "schedules?",
        "schedules?text=s&state=active&",
        "schedules?sort=trouble&",
        "schedules?sort=next&",
        "verdicts?",
        "timeline?",
    ],
)
async def test_pages_are_those_of_one_shard_that_has_it_all(path: str, limit: int) -> None:
    places = await filled()
    one = whole_of(places)
    found = await all_pages(lambda each: got(places, each), f"/v1/{path}limit={limit}")
    assert found == await all_pages(lambda each: got(one, each), f"/v1/{path}limit={limit}")
    assert len(found) in (9, 12, 24)


async def test_sums_are_those_of_one_shard_that_has_it_all() -> None:
    places = await filled()
    one = whole_of(places)
    for path in (
        "jobs:counts?label=n%3D1",
        "schedules:counts",
        "jobs:errors",
        "jobs:errors?target=t1",
        "schedules:recent?name=s8&name=s1&name=none&name=s3",
    ):
        assert await got(places, f"/v1/{path}") == await got(one, f"/v1/{path}")
    for shard in range(len(places)):
        past = places[shard].world.view.past
        past.sample(
            MonoMs(past.until_ms + (shard + 1) * DAY_EVERY_MS), {}, {"pending": 0, "running": shard + 1, "slots": 8}
        )
    merged, alone = [(await got(each, "/v1/timeline"))["load"] for each in (places, one)]
    assert sum(merged["items"][0]["needed"]) >= sum(alone["items"][0]["needed"]) > 0
    assert merged["used"] == [sum(range(1, len(places) + 1))], "of the time that all of them know"
    assert merged["items"][0]["slots"] == 3 * alone["items"][0]["slots"]


async def test_a_job_counts_only_from_the_shard_that_its_tenant_is_in() -> None:
    places = shards()
    id = await submit(places[0], tenant=TENANTS[0])
    copy = deepcopy(dict(places[0].world.job(id)))
    places[1].world.database.insert(Collection.JOBS, {**copy, "priority": 9})
    assert [job["priority"] for job in (await got(places, "/v1/jobs"))["items"]] == [copy["priority"]]
    moved = LAYOUT.beginning({partition_of(TENANTS[0]): 1}).arrived(partition_of(TENANTS[0]))
    assert [job["priority"] for job in (await got(places, "/v1/jobs", moved))["items"]] == [9]


def page_of(items: list[Key], after: Key | None, limit: int, chance: random.Random) -> tuple[list[Key], Key | None]:
    """What a shard answers: at most a full page, perhaps less, up to some item or to right before an instant."""
    left = [item for item in items if after is None or item < after]
    looked_at = chance.choice([len(left), chance.randrange(len(left) + 1)])
    some = left[: min(limit, looked_at)]
    if len(some) == len(left):
        return some, None
    if len(some) == limit:
        return some, some[-1]
    # Everything before the instant of the first that was not looked at; of that instant nothing.
    end: Key = (left[len(some)][0], True, "")
    if after is not None and end >= after:
        return left[:1], left[0]  # no page ends before it begins
    return [item for item in some if item[0] != end[0]], end


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4), st.integers(1, 9), st.integers())
@settings(max_examples=examples(300))
def test_every_item_comes_once_and_in_order(instants: list[list[int]], limit: int, seed: int) -> None:
    chance = random.Random(seed)
    lists = [
        sorted(((at, False, f"{shard}-{number:02d}") for number, at in enumerate(some)), reverse=True)
        for shard, some in enumerate(instants)
    ]
    seen: list[Any] = []
    after: Key | None = None
    for _ in range(2_000):
        pages = [page_of(each, after, limit, chance) for each in lists]
        rows = [[(item, {"key": item}) for item in items] for items, _ in pages]
        items, end = pages_as_one(rows, [end for _, end in pages], limit, descending=True)
        assert len(items) <= limit
        seen += [item["key"] for item in items]
        if end is None:
            break
        after = newest_first(newest_first_text(end))
        assert after == end
    assert seen == sorted((item for each in lists for item in each), reverse=True)


# What runs the whole


async def test_the_cluster_has_a_row_for_each_shard_and_the_sum_of_all() -> None:
    places = shards()
    whole = await got(places, "/v1/cluster")
    assert [row["name"] for row in whole["shards"]] == list(NAMES)
    assert whole["counts"] == {"pending": 3, "schedules": 6, "definitions": 0}
    assert whole["findings"]["counts"] == {"overdue": 6}
    assert whole["replicas"] == (await got(places[:1], "/v1/cluster"))["replicas"]
    row = whole["shards"][1]
    assert (row["leader"]["term"], row["journal_seq"], row["processors"]) == (7, 41, 1)
    assert (row["followers"], row["followed"], row["leading"]) == (["replica-1"], True, True)


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"type": "t", "detail": "no"}, 503)(scope, receive, send)


async def strange(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"items": [{}], "groups": 7})(scope, receive, send)


async def garbled(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"<html>", 200)(scope, receive, send)


async def broken_off(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ConnectionAbortedError


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """It hears that the client has left."""


@pytest.mark.parametrize("answer", [silent, strange, garbled, broken_off, nothing])
async def test_the_cluster_shows_a_shard_that_does_not_answer_and_hides_no_other(answer: Answer) -> None:
    places = shards()
    places[1].answer = answer
    whole = await got(places, "/v1/cluster")
    assert whole["counts"]["pending"] == 2
    assert [row["ready"] for row in whole["shards"]] == [True, False, True]
    assert whole["shards"][1]["unready_reason"]
    assert whole["shards"][1]["leader"] is None


@pytest.mark.parametrize("answer", [silent, strange, garbled, broken_off, nothing])
async def test_no_answer_of_a_shard_is_a_defect_here(answer: Answer) -> None:
    places = await filled()
    places[1].answer = answer
    async with asking(merged_at(places)) as client:
        for method, path in MERGED:
            if path == "/v1/cluster":
                continue
            body = {"filter": {"tenant": "nobody"}, **({"priority": 1} if path.endswith("reprioritize") else {})}
            answered = await client.request(method, path, json=body if method == "POST" else None)
            assert answered.status_code == HTTPStatus.SERVICE_UNAVAILABLE, (path, answered.text)
            assert "0001" in answered.json()["detail"] or answer is strange
            assert answer is silent or answered.headers["retry-after"]


async def test_processors_and_failovers_of_all_shards() -> None:
    places = shards()
    for name in ("p-1", "gone"):
        pause = StandingPause(id=drain_id(name), rev=1, since_ms=NOW, by="someone", because=None)
        places[0].world.database.insert(Collection.PAUSES, document_of(pause))
    listed = await got(places, "/v1/processors")
    assert [each["id"] for each in listed["items"]] == ["p-1.bb"] * 3
    assert [each["name"] for each in listed["absent"]] == ["gone"]
    for number in range(6):
        failover = make_failover(number, holder=f"r{number}", deciding_at_ms=WallMs(NOW + number))
        await places[number % 3].world.failovers.save(failover)
    listed = await got(places, "/v1/cluster/failovers?limit=4")
    assert [each["holder"] for each in listed["items"]] == ["r5", "r4", "r3", "r2"]


@pytest.mark.parametrize(
    ("refusal", "detail"),
    [
        (problem(503, "unavailable", "the database did not answer in time"), "shard 0001: the database did not"),
        (problem(503, "shard-unanswered", "shard 0001 is away"), "shard 0001 is away"),
        (problem(409, "conflict", "it is there"), "it is there"),
        (Response("{", 503), "shard 0001: no replica that hosts it answers"),
    ],
)
async def test_what_a_shard_can_not_do_now_is_refused_with_its_name(refusal: Response, detail: str) -> None:
    async with asking(naming_refusals("0001", refusal)) as client:
        answer = await client.get("/v1/jobs/x")
    assert answer.status_code == refusal.status_code
    assert answer.json()["detail"].startswith(detail)
