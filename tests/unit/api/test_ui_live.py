"""``/v1/cluster/live``: a whole picture a second, made once for all who look, and nothing counted for nobody."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from hascheduler.api.http.limits import Limit
from hascheduler.api.http.server import ApiServer
from hascheduler.api.ui import live
from hascheduler.api.ui.live import BUSIEST_MAX, COMPARED_MAX, EVERY_MS, HISTORY_MAX, LivePictures
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import EventType, position
from hascheduler.model.values.instants import MonoMs
from tests.unit.api.doubles import StandingClock, World
from tests.unit.api.test_events import Sent, token, until_nobody_follows
from tests.unit.api.test_server import plain_client, serving
from tests.unit.daemon.happenings import happened, log_of

PATH = "/v1/cluster/live"
LIMIT_S = 20


class MovingClock(StandingClock):
    mono = 0

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.mono)


@pytest.fixture
def clock(world: World) -> MovingClock:
    world.clock = MovingClock()
    return world.clock


@pytest.fixture
def log(world: World) -> EventLog:
    world.events = log_of(11, 12, begun_at=10)
    return world.events


@pytest.fixture
async def server(world: World, log: EventLog, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    """Its pictures follow each other at once."""
    monkeypatch.setattr(live, "EVERY_MS", 1)
    async with serving(world) as server:
        yield server


def shown(picture: bytes) -> dict[str, Any]:
    head, data = picture.decode().strip().split("\n")
    assert head == "event: picture"
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return found


# What is shown


async def test_a_client_gets_the_history_and_then_whole_pictures(server: ApiServer) -> None:
    async with plain_client(server.port) as client, client.stream("GET", PATH, timeout=LIMIT_S) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        sent = Sent(answer)
        assert await sent.next() == {"retry": "1000"}
        assert (await sent.next())["event"] == "history"
        for _ in range(2):
            picture = await sent.data()
            assert picture["cluster"]["leader"]["term"] == 7
            assert picture["processors"]["items"][0]["name"] == "p-1"
            assert picture["slots"] == {"occupied": 2, "free": 6}
            assert picture["numbers"]["pending"] == 3


async def test_the_picture_says_what_the_routes_say(client: httpx.AsyncClient, world: World) -> None:
    pictures = LivePictures()
    with pictures.followed(None, world.view) as sight:
        picture = shown(await pictures.picture(sight, world.services()))
    assert picture["cluster"] == (await client.get("/v1/cluster")).json()
    assert picture["processors"] == (await client.get("/v1/processors")).json()


async def test_lanes_and_tenants_have_their_live_jobs_the_busiest_first(world: World) -> None:
    pictures = LivePictures()
    with (
        pictures.followed(None, world.view) as sight,
        pictures.followed("acme", world.view) as of_acme,
        pictures.followed("nobody", world.view) as of_none,
    ):
        picture = shown(await pictures.picture(sight, world.services()))
        acme = shown(await pictures.picture(of_acme, world.services()))
        nobody = shown(await pictures.picture(of_none, world.services()))
    lane = {"name": "default", "pending": 3, "dispatched": 0, "running": 1, "waited_ms": 90_000}
    mine = {"name": "acme", "pending": 2, "dispatched": 0, "running": 0}
    theirs = {"name": "umbrella", "pending": 1, "dispatched": 0, "running": 1}
    assert (picture["lanes"], picture["tenants"]) == (
        {"items": [lane], "whole": True},
        {"items": [mine, theirs], "whole": True},
    )
    assert (acme["lanes"], acme["tenants"]) == (None, {"items": [mine], "whole": True})
    assert nobody["tenants"]["items"] == [{"name": "nobody", "pending": 0, "dispatched": 0, "running": 0}]


@pytest.mark.parametrize(("count", "shown_count"), [(BUSIEST_MAX, BUSIEST_MAX), (BUSIEST_MAX + 1, BUSIEST_MAX)])
async def test_of_many_lanes_the_busiest_are_shown(
    world: World, monkeypatch: pytest.MonkeyPatch, count: int, shown_count: int
) -> None:
    lanes = {f"lane-{number:04}": {"pending": number} for number in range(1, count + 1)}
    gauges = replace(world.view.gauges(), jobs_of_lane=lanes)
    monkeypatch.setattr(world.view, "gauges", lambda: gauges)
    pictures = LivePictures()
    with pictures.followed(None, world.view) as sight:
        found = shown(await pictures.picture(sight, world.services()))["lanes"]
    assert [lane["name"] for lane in found["items"]] == sorted(lanes, reverse=True)[:shown_count]
    assert found["whole"] is (count <= BUSIEST_MAX)


async def test_of_too_many_tenants_none_is_looked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tenants = {f"tenant-{number}": {"pending": 1} for number in range(COMPARED_MAX + 1)}
    gauges = replace(world.view.gauges(), jobs_of_tenant=tenants)
    monkeypatch.setattr(world.view, "gauges", lambda: gauges)
    pictures = LivePictures()
    with pictures.followed(None, world.view) as sight:
        picture = shown(await pictures.picture(sight, world.services()))
    assert (picture["tenants"], picture["lanes"]["whole"]) == (None, True)


async def test_a_token_of_one_tenant_sees_its_own_jobs_and_no_processors(world: World) -> None:
    pictures = LivePictures()
    with pictures.followed("acme", world.view) as sight:
        picture = shown(await pictures.picture(sight, world.services()))
    assert picture["processors"] is None
    assert picture["cluster"]["quarantine"] == []
    assert (picture["numbers"]["pending"], picture["numbers"]["running"]) == (2, 0)


async def test_a_stream_ends_when_its_token_is_revoked(server: ApiServer) -> None:
    async with plain_client(server.port) as client:
        id, header = await token(client, "*")
        async with client.stream("GET", PATH, headers=header, timeout=LIMIT_S) as answer:
            sent = Sent(answer)
            assert (await sent.next(), (await sent.next())["event"]) == ({"retry": "1000"}, "history")
            assert (await client.delete(f"/v1/tokens/{id}")).status_code == 204
            assert {said["event"] for said in await sent.to_the_end()} <= {"picture"}


async def test_a_stream_ends_with_its_replica(server: ApiServer, world: World) -> None:
    async with plain_client(server.port) as client, client.stream("GET", PATH, timeout=LIMIT_S) as answer:
        sent = Sent(answer)
        await sent.next()
        world.view.stopping = True
        assert {said["event"] for said in await sent.to_the_end()} <= {"history", "picture"}


# What is counted


async def test_events_of_a_second_are_counted_by_type_and_tenant(
    world: World, log: EventLog, clock: MovingClock
) -> None:
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight, pictures.followed("other", world.view) as others:
        await pictures.picture(sight, services)
        await pictures.picture(others, services)
        done = [happened(second, f"job:{second}", type=EventType.SUCCEEDED) for second in range(13, 18)]
        log.append([*done, happened(18, "job:x", type=EventType.FAILED)], position(18, 1))
        clock.mono = EVERY_MS
        numbers = shown(await pictures.picture(sight, services))["numbers"]
        assert (numbers["succeeded"], numbers["failed"], numbers["submitted"]) == (5, 1, 0)
        assert shown(await pictures.picture(others, services))["numbers"]["succeeded"] == 0


async def test_a_picture_serves_all_who_look_within_its_second(world: World, log: EventLog, clock: MovingClock) -> None:
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight, pictures.followed(None, world.view) as another:
        assert sight is another
        first = await pictures.picture(sight, services)
        clock.mono = EVERY_MS - 1
        assert await pictures.picture(another, services) is first
        clock.mono = EVERY_MS
        assert await pictures.picture(another, services) is not first
        assert log.followers == 1


async def test_what_is_remembered_is_bounded(world: World, log: EventLog, clock: MovingClock) -> None:
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight:
        for second in range(HISTORY_MAX + 5):
            clock.mono = second * EVERY_MS
            await pictures.picture(sight, services)
        assert len(sight.history) == HISTORY_MAX


async def test_a_gap_in_the_events_is_no_number(world: World, clock: MovingClock) -> None:
    """A look that comes after more events than the replica remembers begins to count again."""
    world.events = log = log_of(begun_at=10, events_max=4)
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight:
        await pictures.picture(sight, services)
        log.append([happened(second, type=EventType.STARTED) for second in range(20, 40)], position(40, 1))
        clock.mono = EVERY_MS
        assert shown(await pictures.picture(sight, services))["numbers"]["started"] == 0
        clock.mono = 2 * EVERY_MS
        await pictures.picture(sight, services)
        log.append([happened(41, type=EventType.STARTED)], position(41, 1))
        clock.mono = 3 * EVERY_MS
        assert shown(await pictures.picture(sight, services))["numbers"]["started"] == 1


async def test_nothing_is_counted_for_nobody(server: ApiServer, log: EventLog) -> None:
    async with plain_client(server.port) as client:
        async with client.stream("GET", PATH, timeout=LIMIT_S) as answer:
            sent = Sent(answer)
            for _ in range(3):
                await sent.next()
            assert log.followers == 1
        await until_nobody_follows(log)


# Shares


async def test_pages_take_places_of_their_own_and_a_full_pool_says_when_to_come_again(world: World) -> None:
    world.limits["viewers"] = Limit("some", 1)
    async with (
        serving(world) as server,
        plain_client(server.port) as client,
        client.stream("GET", PATH, timeout=LIMIT_S) as answer,
    ):
        await Sent(answer).next()
        refused = await client.get(PATH)
        assert refused.status_code in {429, 503}
        assert int(refused.headers["retry-after"]) > 0
        assert world.limits["followers"].in_use == 0
