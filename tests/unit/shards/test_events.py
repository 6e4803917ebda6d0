"""The events of three shards as one stream: in the order of their ids, all of them, and none holds it up for long."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.ops import events as one_shards_events
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import EventType, position
from hascheduler.shards import answers, events, following
from hascheduler.shards.events import follow_events, follow_pictures
from tests.unit.api.doubles import the_routes
from tests.unit.api.test_events import LIMIT_S, Sent, until_nobody_follows
from tests.unit.api.test_server import plain_client, serving
from tests.unit.daemon.happenings import happened, log_of
from tests.unit.shards.worlds import Answer, WorldPlace, asking, in_front, shards


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_shards_events, "_SILENCE_MS", 20)


class ThreeShards:
    """Their logs have begun at second 10, and tell of 11 and 12."""

    def __init__(self) -> None:
        self.places = shards()
        self.queries: list[str] = []
        for place in self.places:
            self.take_log(place)

    def take_log(self, place: WorldPlace) -> EventLog:
        log = place.world.events = log_of(11, 12, begun_at=10)
        place.__post_init__()
        place.answer = self.without_keepalive(the_routes())
        return log

    def without_keepalive(self, app: Any) -> Answer:
        """In these tests a shard tells every 20 ms how far it is, asked or not."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            query = scope["query_string"].decode()
            self.queries.append(query)
            parts = [each for each in query.split("&") if each and each != "keepalive=500ms"]
            await app({**scope, "query_string": "&".join(parts).encode()}, receive, send)

        return answer

    def log(self, index: int) -> EventLog:
        return self.places[index].world.events

    def tell(self, index: int, second: int, job: str = "", **fields: Any) -> None:
        event = happened(second, job or f"{index}:{second}", **fields)
        self.log(index).append([event], position(second, 1))

    def come_past(self, second: int, *indexes: int) -> None:
        for index in indexes or range(3):
            self.log(index).append([], position(second, 1))


def app_of(three: ThreeShards) -> Any:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        stream = follow_events if scope["path"] == "/v1/events" else follow_pictures
        await stream(three.places, scope, receive, send)

    return in_front(three.places[0].world, answer)


@asynccontextmanager
async def following_all(
    three: ThreeShards, query: str = "", headers: dict[str, str] | None = None, path: str = "/v1/events"
) -> AsyncIterator[Sent]:
    world = three.places[0].world
    async with (
        serving(world, app_of(three)) as server,
        plain_client(server.port) as client,
        client.stream("GET", f"{path}?{query}", headers=headers, timeout=LIMIT_S) as sent,
    ):
        assert sent.status_code == 200, await sent.aread()
        yield Sent(sent)


@asynccontextmanager
async def caught_up(three: ThreeShards) -> AsyncIterator[Sent]:
    """A client that has got the first comment."""
    async with following_all(three) as sent:
        assert await sent.next() == {"retry": "2000"}
        assert await sent.next() == {"": "still here", "id": position(12, 1)}
        yield sent


async def refused(three: ThreeShards, query: str = "", path: str = "/v1/events") -> httpx2.Response:
    async with asking(app_of(three)) as client:
        return await client.get(f"{path}?{query}")


async def jobs(sent: Sent, count: int) -> list[str]:
    return [(await sent.data())["job"] for _ in range(count)]


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"type": "t", "detail": "no"}, 503, {"Retry-After": "3"})(scope, receive, send)


async def test_events_come_in_the_order_of_their_ids_once_every_shard_has_come_past_them() -> None:
    three = ThreeShards()
    async with caught_up(three) as sent:
        three.tell(2, 15)
        three.tell(0, 13)
        three.tell(1, 14)
        three.tell(0, 16)
        three.come_past(17)
        assert await jobs(sent, 4) == ["0:13", "1:14", "2:15", "0:16"]
        assert sent.answer.headers["content-type"].startswith("text/event-stream")
    assert all("keepalive=500ms" in query for query in three.queries)


async def test_one_that_stands_still_holds_the_others_back_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HELD_BACK_MAX_S", 0.1)
    three = ThreeShards()
    async with caught_up(three) as sent:
        three.tell(1, 14)
        three.tell(0, 13)
        assert await jobs(sent, 2) == ["0:13", "1:14"]
        three.tell(2, 13)  # it goes on: what it has comes, though later ones were seen
        three.come_past(15)
        assert await jobs(sent, 1) == ["2:13"]


async def test_a_client_that_reconnects_resumes_in_all_and_the_filter_holds_in_all() -> None:
    three = ThreeShards()
    for index in range(3):
        three.tell(index, 13, f"{index}:new")
        three.tell(index, 14 + index, f"{index}:failed", type=EventType.FAILED)
    three.come_past(20)
    query = f"type=failed&after={position(12, 1)}"
    async with following_all(three, query, {"Last-Event-ID": position(13, 1)}) as sent:
        assert await jobs(sent, 3) == ["0:failed", "1:failed", "2:failed"]
    assert all(query.count("after=") == 1 and "type=failed" in query for query in three.queries)


async def test_where_a_stream_ends_it_goes_on_without_a_gap() -> None:
    three = ThreeShards()
    async with caught_up(three) as sent:
        three.tell(1, 13)
        three.come_past(14)
        assert await jobs(sent, 1) == ["1:13"]
        ended = three.log(1)
        three.take_log(three.places[1])
        for second in (13, 15):
            three.tell(1, second)
        ended.close()
        three.come_past(16)
        assert await jobs(sent, 1) == ["1:15"]
    assert any(f"after={position(second, 1)}" in query for second in (13, 14) for query in three.queries)


async def test_the_streams_of_all_end_when_the_client_leaves_and_are_one_stream_in_the_pool() -> None:
    three = ThreeShards()
    pool = three.places[0].world.limits["followers"]
    async with caught_up(three):
        assert pool.in_use == 1
        assert [three.log(index).followers for index in range(3)] == [1, 1, 1]
    for index in range(3):
        await until_nobody_follows(three.log(index))
    assert pool.in_use == 0


async def test_without_room_in_the_pool_no_stream_is_opened() -> None:
    three = ThreeShards()
    limit = three.places[0].world.limits["followers"]
    limit.take((), limit.total, privileged=True)
    with pytest.raises(ProblemError) as raised:
        await refused(three)
    assert raised.value.status_code == 503
    assert not three.queries


@pytest.mark.parametrize("query", ["after=x", "keepalive=1ms", "nonsense=1"])
async def test_what_a_shard_refuses_is_refused(query: str) -> None:
    assert (await refused(ThreeShards(), query)).status_code == 422


async def test_a_shard_that_is_not_to_be_had_at_the_beginning_is_503_with_its_name() -> None:
    three = ThreeShards()
    three.places[1].answer = silent
    answer = await refused(three)
    assert (answer.status_code, answer.json()["detail"]) == (503, "shard 0001: no")
    assert answer.headers["retry-after"] == "3"


def saying(*blocks: str) -> Answer:
    """A replica that says that, and then nothing more, without an end."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for block in blocks:
            await send({"type": "http.response.body", "body": f"{block}\n\n".encode(), "more_body": True})
        await asyncio.get_running_loop().create_future()

    return answer


async def test_a_gap_in_one_is_a_gap_of_all_behind_which_nothing_is_passed_over() -> None:
    three = ThreeShards()
    gap = {"reason": "lost; list the jobs again", "position": position(30, 1)}
    three.places[1].answer = saying("retry: 1", f"id: {position(30, 1)}\nevent: reset\ndata: {json.dumps(gap)}")
    async with following_all(three) as sent:
        while "event" not in (said := await sent.next()):
            pass
    assert (said["event"], json.loads(said["data"])["reason"]) == ("reset", gap["reason"])
    assert said["id"] == json.loads(said["data"])["position"]
    assert said["id"] in (position(12, 1), position(30, 1))


async def test_a_client_that_reads_nothing_costs_a_bounded_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_KEPT_MAX", 10)
    told: list[int] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for second in range(11, 111):
            block = f"id: {position(second, 1)}\nevent: failed\ndata: {second}\n\n"
            await send({"type": "http.response.body", "body": block.encode(), "more_body": True})
            told.append(second)
        await asyncio.get_running_loop().create_future()

    place = WorldPlace("0001", answer=answer)
    scope: Any = {"query_string": b"", "headers": [], "state": {}}
    one = following.FollowedShard(place, scope, None, asyncio.Event(), patience_s=LIMIT_S)
    reading = asyncio.create_task(one.run())
    seen: list[int] = []
    async with asyncio.timeout(LIMIT_S):
        while len(seen) < 100:
            seen.append(int((await one.kept.get()).data))
            assert len(told) - len(seen) <= 11
    reading.cancel()
    assert seen == list(range(11, 111))


# Pictures


async def test_a_picture_is_of_all_shards_and_comes_once_a_second() -> None:
    three = ThreeShards()
    async with following_all(three, path="/v1/cluster/live") as sent:
        assert await sent.next() == {"retry": "1000"}
        history, picture = await sent.next(), await sent.next()
        assert (history["event"], picture["event"]) == ("history", "picture")
        shown = json.loads(picture["data"])
        again = json.loads((await sent.next())["data"])
    assert [row["name"] for row in shown["cluster"]["shards"]] == ["default", "0001", "0002"]
    assert shown["numbers"]["pending"] == 9
    assert shown["slots"] == {"occupied": 6, "free": 18}
    assert len(shown["processors"]["items"]) == 3
    assert shown["lanes"]["items"] == [
        {"name": "default", "pending": 9, "dispatched": 0, "running": 3, "waited_ms": 90_000}
    ]
    assert [each["name"] for each in shown["tenants"]["items"]] == ["acme", "umbrella"]
    assert again["numbers"]["pending"] == 9
    assert three.places[0].world.limits["viewers"].in_use <= 1


@pytest.mark.parametrize("answer", [silent, saying("event: picture\ndata: {")])
async def test_a_picture_shows_a_shard_that_does_not_answer_and_hides_no_other(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HELD_BACK_MAX_S", 0.1)
    three = ThreeShards()
    three.places[1].answer = answer
    async with following_all(three, path="/v1/cluster/live") as sent:
        while "cluster" not in (shown := await sent.data()):
            pass
    assert [row["ready"] for row in shown["cluster"]["shards"]] == [True, False, True]
    assert shown["numbers"]["pending"] == 6
    health = shown["cluster"]["health"]
    assert health["title"].startswith("No replica that hosts shard 0001 answers")
    assert (health["state"], health["counts"]["failed_jobs"]) == ("critical", None)


async def test_slowness_is_told_as_it_is_and_ends_the_stream() -> None:
    three = ThreeShards()
    three.places[1].answer = saying(f": still here\nid: {position(12, 1)}", 'event: lagging\ndata: {"missed": 3}')
    async with following_all(three) as sent:
        said = await sent.to_the_end()
    assert said[-1] == {"event": "lagging", "data": '{"missed": 3}'}


def test_one_verdict_names_each_problem_once_and_the_shard_where_it_is_not_the_home() -> None:
    def of(*problems: Mapping[str, Any], **changed: Any) -> Mapping[str, Any]:
        counts = {"failed_jobs": 2, "failing_schedules": 0, "late_schedules": 0}
        health = {"checked": ["x", "y"], "unchecked": [], "problems": problems, "counts": counts, **changed}
        return {"health": {"title": "its own", "state": "its own", **health}}

    paused = {"severity": "ticket", "rule": "pause", "text": "Everything is paused.", "runbook": "HaschedulerPaused"}
    leaderless = {
        "severity": "page",
        "rule": "leader",
        "text": "No replica leads.",
        "runbook": "HaschedulerNobodyLeads",
    }
    title = "No replica leads shard 0001"
    unread = {"rule": "Failed jobs", "reason": "no answer in 2 s"}
    others = of(paused, leaderless), of(checked=["x"], unchecked=[unread])
    health = answers._health(["default", "0001", "0002"], [of(paused), *others])
    assert [(each["text"], each["runbook"]) for each in health["problems"]] == [
        (
            "No replica leads shard 0001: its schedules do not fire and its jobs do not start.",
            "HaschedulerShardWithoutLeader",
        ),
        ("Everything is paused.", "HaschedulerPaused"),
    ]
    assert (health["state"], health["title"]) == ("critical", f"{title}, and 1 more problem")
    assert (health["checked"], health["unchecked"]) == (["x"], [{**unread, "rule": "Failed jobs (shard 0002)"}])
    assert health["counts"]["failed_jobs"] == 6
    silent = answers._health(["default", "0001"], [of(), None])
    assert (silent["state"], silent["counts"]["failed_jobs"]) == ("critical", None), "a shard that does not answer"
