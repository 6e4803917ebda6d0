"""What a replica reports of itself and the cluster: pauses, failovers, recordings, and a picture a second."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Limit
from hascheduler.api.http.server import ApiServer
from hascheduler.api.ops import cluster, processors
from hascheduler.api.ui import live
from hascheduler.api.ui.live import COMPARED_MAX, EVERY_MS, LivePictures
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading, read_recording
from hascheduler.model.collection import Collection
from hascheduler.model.event import EventType, position
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import DRAIN_FORGOTTEN_AFTER_MS, drain_id
from tests.factories import make_pause
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, Client, check_problem, get, post, scope_of
from tests.unit.api.test_events import Sent, log, token
from tests.unit.api.test_server import plain_client, serving
from tests.unit.daemon.happenings import happened, log_of


async def test_the_cluster_is_shown(client: Client) -> None:
    shown = (await client.get("/v1/cluster")).json()
    assert shown["leader"] == {
        "holder": "replica-1.aa",
        "term": 7,
        "endpoint": "127.0.0.1:9",
        "since": "2030-01-01T00:00:00.000Z",
    }
    assert (shown["replica_id"], shown["leading"], shown["ready"]) == ("replica-1.aa", True, True)
    assert (shown["journal_seq"], shown["stream_lag_ms"]) == (41, 3)
    assert [replica["name"] for replica in shown["replicas"]] == ["replica-1"]
    assert shown["counts"] == {"pending": 1, "schedules": 2}
    assert shown["quarantine"] == [{"collection": "jobs", "id": "bad", "reason": "state: missing"}]
    assert shown["findings"] == {"at": "2030-01-01T00:00:00.000Z", "counts": {"overdue": 2}}
    assert shown["mirrors_differ"] == ["replica-2.bb"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/schedules", None), ("GET", "/v1/schedules/tick/preview", None), ("GET", "/v1/jobs", None),
        ("GET", "/v1/schedules/tick/verdicts", None), ("POST", "/v1/schedules/tick/resume", {"catch_up": True}),
    ],
)  # fmt: skip
async def test_a_database_that_is_away_is_503_with_a_time_to_come_again(
    client: Client, world: World, method: str, path: str, body: object
) -> None:
    """`test_every_route` has the other writes."""
    world.go_away()
    answer = await client.request(method, path, json=body)
    check_problem(answer, 503, None)
    assert int(answer.headers["retry-after"]) > 0
    assert ("unknown" in answer.json()["detail"]) == (method != "GET")


async def test_a_defect_reveals_nothing(client: Client, world: World) -> None:
    world.view.broken = True
    with capture_logs() as logs:
        answer = await client.get("/v1/cluster")
    check_problem(answer, 500, None)
    assert "secret" not in answer.text
    assert [line["event"] for line in logs] == ["request_failed"]


DRAIN = "/v1/processors/p-1/drain"


async def test_drains_of_names_that_are_long_gone_are_forgotten(client: Client, world: World) -> None:
    drained_before(world, "long-gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS - 1)
    drained_before(world, "gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS)
    await post(client, DRAIN)
    assert {one["_id"] for one in world.database.documents(Collection.PAUSES)} == {drain_id("gone"), drain_id("p-1")}


async def test_no_more_names_than_the_bound_are_drained(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "DRAINS_MAX", 2)
    for name in ("a", "b"):
        drained_before(world, name, since_ms=NOW)
    assert "2 names are drained" in check_problem(await client.post(DRAIN), 409)["detail"]
    await post(client, "/v1/processors/a/undrain")
    await post(client, DRAIN)
    await post(client, DRAIN)


def drained_before(world: World, name: str, *, since_ms: int) -> None:
    pause = make_pause(drain_id(name), rev=1, since_ms=since_ms)
    world.database.insert(Collection.PAUSES, document_of(pause))


RECORDING = "/v1/cluster/recording"
HEADING = RecordingHeading(NOW, "replica-1.aa", 7, DispatchConfig())
STEPS: list[RecordedStep | RecordingEnd] = [
    RecordedStep(NOW, (TransportSeen(True),), (Dispatch("a", 1, "p"),)),
    RecordingEnd("over"),
]


async def test_a_recording_can_be_read_back(client: Client, world: World) -> None:
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    answer = await client.get(RECORDING, params={"for": "90s"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    heading, steps = read_recording(answer.text.splitlines())
    assert (heading, list(steps)) == (HEADING, STEPS)
    assert world.view.recorded_for_ms == 90_000


class Gone(Exception):
    """What a test lets happen."""


def _fails(*_: object) -> Any:
    raise Gone


ENDS = ["it ends by itself", "the leader's state cannot be copied", "it is cut off before the answer begins"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("leaves", [False, True])
async def test_a_place_for_a_recording_is_given_back_however_it_ends(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch, end: str, leaves: bool
) -> None:
    """``leaves``: nothing can be sent either, as its client is gone."""
    app.services = world.services()
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    limit, reached = world.limits["recordings"], asyncio.Event()

    async def stands_still(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    if "copied" in end:
        monkeypatch.setattr(world.view, "record", _fails)
    if "cut off" in end:
        monkeypatch.setattr(cluster._Closing, "__call__", stands_still)
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "http.request"})

    async def send(_: object) -> None:
        if leaves:
            raise OSError("the client is gone")

    scope = scope_of("GET", RECORDING, [(b"host", b"api")])
    with capture_logs():
        request = asyncio.create_task(app(scope, received.get, send))
        still = asyncio.create_task(reached.wait())
        await asyncio.wait({request, still}, return_when=asyncio.FIRST_COMPLETED)
        if reached.is_set():
            assert (request.done(), limit.in_use) == (False, 1)
        request.cancel()
        still.cancel()
        await asyncio.gather(request, still, return_exceptions=True)
    assert limit.in_use == 0
    assert reached.is_set() == ("cut off" in end)


PAUSE, RESUME, UNDRAIN = "/v1/cluster/pause", "/v1/cluster/resume", "/v1/processors/p-1/undrain"
BURNS = {"since": NOW_TEXT, "by": "anonymous", "because": "it burns", "schedules_only": False}


async def test_the_cluster_says_since_when_by_whom_and_why_everything_is_paused(client: Client) -> None:
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, PAUSE, {"because": "it burns"})) == {"paused": BURNS, "resumed": None}
    assert (await get(client, "/v1/cluster"))["paused"] == BURNS
    assert (await post(client, RESUME)) == {"paused": None, "resumed": BURNS}
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, RESUME)) == {"paused": None, "resumed": None}


async def test_a_drained_processor_is_shown_with_who_drained_it(client: Client) -> None:
    drained = {"since": NOW_TEXT, "by": "anonymous", "because": "its node is replaced"}
    assert await post(client, DRAIN, {"because": "its node is replaced"}) == {"name": "p-1", "drained": drained}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"], shown["occupied"]) == (True, drained, 2)
    assert (await post(client, DRAIN))["drained"] == drained, "without a reason it keeps the one it has"
    assert await post(client, UNDRAIN) == {"name": "p-1", "drained": None}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"]) == (False, None)
    assert (await post(client, UNDRAIN))["drained"] is None


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
    with pictures.followed(None, world.services()) as sight:
        picture = shown(await pictures.picture(sight, world.services()))
    assert picture["cluster"] == (await client.get("/v1/cluster")).json()
    assert picture["processors"] == (await client.get("/v1/processors")).json()


async def test_lanes_and_tenants_have_their_live_jobs_the_busiest_first(world: World) -> None:
    pictures = LivePictures()
    with (
        pictures.followed(None, world.services()) as sight,
        pictures.followed("acme", world.services()) as of_acme,
        pictures.followed("nobody", world.services()) as of_none,
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
    with pictures.followed(None, world.services()) as sight:
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
    with pictures.followed("acme", services) as sight, pictures.followed("acme", services) as another:
        assert sight is another
        first = await pictures.picture(sight, services)
        world.clock.mono = EVERY_MS - 1
        assert await pictures.picture(another, services) is first
        world.clock.mono = EVERY_MS
        assert await pictures.picture(another, services) is not first
        assert log.followers == 1
    assert log.followers == 0


async def test_the_events_of_a_tenant_are_counted_while_it_is_followed(world: World) -> None:
    """A look that comes after more events than the replica remembers begins to count again."""
    world.events = log = log_of(begun_at=10, events_max=4)
    pictures, services = LivePictures(), world.services()
    with pictures.followed("tenant", services) as sight:
        await pictures.picture(sight, services)
        log.append([happened(second, type=EventType.STARTED) for second in range(20, 40)], position(40, 1))
        world.clock.mono = EVERY_MS
        assert shown(await pictures.picture(sight, services))["numbers"]["per_minute"]["started"] == 0
        world.clock.mono = 2 * EVERY_MS
        await pictures.picture(sight, services)
        of_others = happened(42, type=EventType.STARTED, tenant="umbrella")
        missed = happened(43, type=EventType.SCHEDULE_MISSED, job=None, count=7)
        log.append([happened(41, type=EventType.STARTED), of_others, missed], position(43, 1))
        world.clock.mono = 3 * EVERY_MS
        counts = shown(await pictures.picture(sight, services))["numbers"]["per_minute"]
        assert {name: count for name, count in counts.items() if count} == {"started": 1, "missed": 7}


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
