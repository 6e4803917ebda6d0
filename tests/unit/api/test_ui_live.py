"""``/v1/cluster/live``: a whole picture a second, made once for all who look; and what is wrong, in words."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from hascheduler.api.http.limits import Limit
from hascheduler.api.http.server import ApiServer
from hascheduler.api.ui import live
from hascheduler.api.ui.alerts import alerts
from hascheduler.api.ui.live import COMPARED_MAX, EVERY_MS, LivePictures
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import EventType, position
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Cluster, Gauges
from hascheduler.schema.pause import EVERYTHING, StandingPause
from tests.unit.api.doubles import NOW, StandingView, World
from tests.unit.api.requests import Client
from tests.unit.api.test_events import Sent, log, token
from tests.unit.api.test_server import plain_client, serving
from tests.unit.daemon.happenings import happened, log_of

__all__ = ["log"]
PATH = "/v1/cluster/live"
LIMIT_S = 20


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


async def test_the_picture_says_what_the_routes_say(client: Client, world: World) -> None:
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
    assert (acme["processors"], acme["cluster"]["quarantine"], acme["numbers"]["pending"]) == (None, [], 2)
    assert nobody["tenants"]["items"] == [{"name": "nobody", "pending": 0, "dispatched": 0, "running": 0}]


async def test_of_too_many_tenants_none_is_looked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tenants = {f"tenant-{number}": {"pending": 1} for number in range(COMPARED_MAX + 1)}
    gauges = replace(world.view.gauges(), jobs_of_tenant=tenants)
    monkeypatch.setattr(world.view, "gauges", lambda: gauges)
    pictures = LivePictures()
    with pictures.followed(None, world.view) as sight:
        picture = shown(await pictures.picture(sight, world.services()))
    assert (picture["tenants"], picture["lanes"]["whole"]) == (None, True)


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


async def test_a_picture_serves_all_who_look_within_its_second(world: World, log: EventLog) -> None:
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight, pictures.followed(None, world.view) as another:
        assert sight is another
        first = await pictures.picture(sight, services)
        world.clock.mono = EVERY_MS - 1
        assert await pictures.picture(another, services) is first
        world.clock.mono = EVERY_MS
        assert await pictures.picture(another, services) is not first
        assert log.followers == 1


async def test_a_gap_in_the_events_is_no_number(world: World) -> None:
    """A look that comes after more events than the replica remembers begins to count again."""
    world.events = log = log_of(begun_at=10, events_max=4)
    pictures, services = LivePictures(), world.services()
    with pictures.followed(None, world.view) as sight:
        await pictures.picture(sight, services)
        log.append([happened(second, type=EventType.STARTED) for second in range(20, 40)], position(40, 1))
        world.clock.mono = EVERY_MS
        assert shown(await pictures.picture(sight, services))["numbers"]["started"] == 0
        world.clock.mono = 2 * EVERY_MS
        await pictures.picture(sight, services)
        log.append([happened(41, type=EventType.STARTED)], position(41, 1))
        world.clock.mono = 3 * EVERY_MS
        assert shown(await pictures.picture(sight, services))["numbers"]["started"] == 1


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


RUNBOOKS = json.loads((files("hascheduler.api.ui") / "static" / "runbooks.json").read_text(encoding="utf-8"))
PAUSE = StandingPause(id=EVERYTHING, rev=0, since_ms=WallMs(NOW), by="ops", because="a move")


def sound() -> tuple[Cluster, Gauges]:
    view = StandingView()
    cluster = replace(view.cluster(), quarantine=[], quarantined=0, last_check=None, differing=[])
    return cluster, replace(view.gauges(), quarantined=0, findings=None, mirrors_differ=0)


def test_a_sound_cluster_has_nothing_wrong() -> None:
    assert alerts(*sound(), "") == []


ROWS: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({"lease": None}, {}, "", "HaschedulerNobodyLeads", "No replica leads"),
    ({"silent": frozenset({"replica-1.aa"})}, {}, "", "HaschedulerUnreachable", "replica-1 is silent"),
    ({}, {}, "reading the collections", "HaschedulerReplicaNotReady", "reading the collections"),
    ({}, {"stream_lag_ms": 61_000}, "", "HaschedulerStreamLagging", "1m1s behind"),
    ({}, {"loop_age_ms": 60_000}, "", "HaschedulerLoopWedged", "1m"),
    ({}, {"broker_accepting": False}, "", "HaschedulerBrokerNotAccepting", "no job starts"),
    ({}, {"processors": {"live": 0}}, "", "HaschedulerNoProcessors", "3 jobs wait, and no processor is alive"),
    ({}, {"unschedulable": 1}, "", "HaschedulerUnschedulable", "1 job can't run on any live processor"),
    ({}, {"pause": PAUSE}, "", "HaschedulerPaused", "ops paused everything (a move)"),
    ({}, {"pause": PAUSE.model_copy(update={"schedules_only": True})}, "", "HaschedulerPaused", "no schedule fires"),
    ({}, {"waited_ms": {"slow": 7_200_000}}, "", "HaschedulerWaitsBeyondBound", "lane slow has waited for 2h"),
    ({"differing": ["replica-2.bb"]}, {}, "", "HaschedulerMirrorsDiffer", "replica-2.bb"),
    ({"quarantined": 2}, {}, "", "HaschedulerQuarantined", "2 documents can't be read"),
]


@pytest.mark.parametrize(("cluster", "gauges", "unready", "runbook", "words"), ROWS, ids=[row[3] for row in ROWS])
def test_each_trouble_is_told_with_its_runbook(
    cluster: dict[str, Any], gauges: dict[str, Any], unready: str, runbook: str, words: str
) -> None:
    of_cluster, of_gauges = sound()
    found = alerts(replace(of_cluster, **cluster), replace(of_gauges, **gauges), unready)
    assert [alert.runbook for alert in found] == [runbook]
    assert words in found[0].text
    assert RUNBOOKS[runbook]
