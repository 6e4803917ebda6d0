"""``/v1/events`` of two shards at a replica that follows one: the other's come from a replica that follows that."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx
import pytest

from hascheduler.api.app import create_app
from hascheduler.api.http.server import ApiServer
from hascheduler.api.http.shares import PoolRequest, Slot, address_party
from hascheduler.api.middleware.pools import FORWARDED_MAX
from hascheduler.api.routing import peer_events
from hascheduler.api.routing.forwarder import Forwarder
from hascheduler.api.routing.peer_events import PeerEvents
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import EventType, encode_event, position
from hascheduler.model.routing import Routing
from hascheduler.model.token import Role
from hascheduler.ports import Closing, EventFilter, Lagging, Missed, NewEvents
from hascheduler.sharding.events import ShardedEventFeed
from hascheduler.sharding.places import ShardPlaces
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryNameStore
from tests.factories import make_token
from tests.unit.api.doubles import World
from tests.unit.api.peers import Peer
from tests.unit.api.peers import serving as serving_peers
from tests.unit.api.requests import check_problem
from tests.unit.api.test_events import LIMIT_S, Sent, following, until_nobody_follows
from tests.unit.api.test_server import serving
from tests.unit.daemon.happenings import happened, log_of

HOME, OTHER = "default", "0001"
ROUTING = Routing.even([HOME, OTHER])
PLACES = ShardPlaces(ROUTING, MemoryNameStore(MemoryConnection(MemoryDatabase())))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@dataclass
class Replica:
    """One that follows one of the two shards, and asks at ``addresses`` for the other's events."""

    world: World
    log: EventLog
    addresses: list[str]
    server: ApiServer | None = None

    @property
    def address(self) -> str:
        assert self.server is not None
        return f"127.0.0.1:{self.server.port}"


@asynccontextmanager
async def replica_of(shard: str, world: World, addresses: Sequence[str] = ()) -> AsyncIterator[Replica]:
    replica = Replica(world, log_of(11, 12, begun_at=10), list(addresses))
    logs = {shard: replica.log}
    feed = ShardedEventFeed(PLACES, [logs.get(name) for name in (HOME, OTHER)])
    world.view.unseen = tuple({HOME, OTHER} - {shard})
    forwarder = Forwarder(lambda _: replica.addresses)
    services = replace(world.services(), events=feed, join_events=feed.joined, forwarder=forwarder)
    try:
        async with serving(world, create_app(services, forwards=True)) as replica.server:
            yield replica
    finally:
        await forwarder.close()


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Replica, Replica]]:
    async with replica_of(OTHER, World()) as there, replica_of(HOME, World(), [there.address]) as here:
        yield here, there


def tell(replica: Replica, second: int, job: str) -> None:
    replica.log.append([happened(second, job)], position(second, 1))


def server_of(replica: Replica) -> ApiServer:
    assert replica.server is not None
    return replica.server


async def jobs(sent: Sent, count: int) -> list[str]:
    return [(await sent.data())["job"] for _ in range(count)]


async def test_the_events_of_both_shards_come_in_the_order_of_their_ids() -> None:
    async with two() as (here, there), following(server_of(here)) as sent:
        assert await sent.next() == {"": "still here", "id": position(12, 1)}
        tell(there, 13, "there:13")
        tell(here, 14, "here:14")
        tell(there, 15, "there:15")
        tell(here, 16, "here:16")
        tell(there, 17, "there:17")
        assert await jobs(sent, 4) == ["there:13", "here:14", "there:15", "here:16"]
        tell(here, 18, "here:18")
        assert await jobs(sent, 1) == ["there:17"]


async def test_a_client_that_reconnects_resumes_in_both_and_the_filter_holds_in_both() -> None:
    async with two() as (here, there):
        for replica, name in ((here, "here"), (there, "there")):
            failed = happened(14 + (replica is there), f"{name}:failed", type=EventType.FAILED)
            replica.log.append([happened(13, f"{name}:submitted"), failed, happened(20)], position(20, 1))
        query = f"type=failed&after={position(12, 1)}"
        async with following(server_of(here), query, {"Last-Event-ID": position(13, 1)}) as sent:
            assert await jobs(sent, 2) == ["here:failed", "there:failed"]


async def test_one_tenants_events_come_from_where_it_is_and_of_no_other_tenant() -> None:
    tenant = next(f"t{n}" for n in range(99) if ROUTING.index_of(f"t{n}") == 1)
    async with two() as (here, there), following(server_of(here), f"tenant={tenant}") as sent:
        there.log.append([happened(13, "another's"), happened(14, "its", tenant=tenant)], position(14, 1))
        assert await jobs(sent, 1) == ["its"]


async def test_where_the_other_replica_ends_the_next_one_goes_on_without_a_gap() -> None:
    async with replica_of(OTHER, World()) as next_one, two() as (here, there):
        here.addresses.append(next_one.address)
        async with following(server_of(here)) as sent:
            tell(there, 13, "13")
            tell(here, 13, "here")
            assert sorted(await jobs(sent, 2)) == ["13", "here"]
            there.log.close()
            for second in (13, 14):
                tell(next_one, second, str(second))
            assert await jobs(sent, 1) == ["14"]


async def test_the_other_replica_is_shown_the_callers_token_and_asked_for_one_shard() -> None:
    peer, world = Peer(HEAD + b": still here\nid: " + position(12, 1).encode() + b"\n\n"), World()
    token = make_token(role=Role.ADMIN, tenant="*")
    world.view.token = lambda _: token
    async with serving_peers(peer) as addresses, replica_of(HOME, world, addresses) as here:
        headers = {"authorization": "Bearer hsk_" + "x" * 43, "Last-Event-ID": position(11, 1)}
        async with following(server_of(here), "type=failed&definition=log", headers) as sent:
            assert await sent.next()
    target = f"/v1/events?type=failed&definition=log&shard={OTHER}&after={position(11, 1)}"
    assert peer.requests[0].startswith(f"GET {target} HTTP/1.1\r\n".encode())
    assert peer.headers["authorization"] == headers["authorization"]
    assert peer.headers["x-hascheduler-forwarded"] == "1"
    assert "last-event-id" not in peer.headers


async def get(replica: Replica, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://{replica.address}", timeout=LIMIT_S) as client:
        return await client.get(path)


async def test_none_that_answers_is_503_with_the_name_of_the_shard() -> None:
    async with replica_of(HOME, World()) as here:
        problem = check_problem(await get(here, "/v1/events"), 503)
    assert problem["type"].endswith("shard-unanswered")
    assert OTHER in problem["detail"]


async def test_what_the_other_refuses_is_refused() -> None:
    body = b'{"type":"urn:hascheduler:problem:share-used-up","detail":"end some"}'
    head = b"HTTP/1.1 429 No\r\nretry-after: 5\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with serving_peers(Peer(head + body)) as addresses, replica_of(HOME, World(), addresses) as here:
        answer = await get(here, "/v1/events")
    problem = check_problem(answer, 429)
    assert (problem["type"].rpartition(":")[2], problem["detail"]) == ("share-used-up", "end some")
    assert answer.headers["retry-after"] == "5"


async def test_a_caller_whose_share_of_what_is_under_way_is_used_up_opens_no_stream() -> None:
    peer = Peer()
    async with serving_peers(peer) as addresses, replica_of(HOME, World(), addresses) as here:
        full = here.world.pools.forwarded.admit(PoolRequest((address_party("elsewhere"),)), FORWARDED_MAX)
        assert isinstance(full, Slot)
        with full:
            answer = await get(here, "/v1/events")
    assert answer.status_code in (429, 503)
    assert not peer.requests


async def test_the_stream_there_ends_when_the_client_leaves() -> None:
    async with two() as (here, there):
        async with following(server_of(here)) as sent:
            assert await sent.next()
            assert there.log.followers == 1
        await until_nobody_follows(there.log)
        assert here.world.pools.forwarded.in_use == 0


@pytest.mark.parametrize("shard", ["0009", "x"])
async def test_an_unknown_shard_is_refused_with_the_names_of_those_that_there_are(shard: str) -> None:
    async with two() as (here, _):
        problem = check_problem(await get(here, f"/v1/events?shard={shard}"), 422)
        assert problem["errors"][0] == {
            "path": "shard",
            "problem": f"'{shard}' is no shard",
            "expected": f"one of {HOME}, {OTHER}",
        }


async def test_where_there_is_one_shard_it_may_be_named_and_no_other(world: World) -> None:
    world.events = log_of(11, 12, begun_at=10)
    async with serving(world) as server:
        async with following(server, f"shard={HOME}") as sent:
            assert (await sent.next())["id"] == position(12, 1)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            assert "the only one" in check_problem(await client.get(f"/v1/events?shard={OTHER}"), 422)["detail"]


# What is read from the other replica


def said(*blocks: str) -> Callable[[str | None], Awaitable[httpx.Response]]:
    """A replica that says that, and then nothing more."""
    text = "".join(f"{block}\n\n" for block in blocks).encode()

    async def ask(_after: str | None) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(text))

    return ask


async def test_gaps_and_slowness_are_told_as_they_are() -> None:
    reset = f'id: {position(9, 1)}\nevent: reset\ndata: {{"reason": "lost; list the jobs again", "position": "9"}}'
    feed = PeerEvents(said("retry: 2000", reset, 'event: lagging\ndata: {"missed": 3}'), None)
    assert await feed.begin() is None
    await feed.run()
    with feed.follow(None, EventFilter()) as follower:
        assert await follower.next(0) == Missed("lost", "9")
        assert await follower.next(0) == Lagging(3)
        assert await follower.next(0) == Closing()
        assert await follower.next(0) == NewEvents([], position(9, 1))
    assert feed.position == position(9, 1)


@pytest.mark.parametrize("data", ["{", "{}", '{"type": "invented"}', "[]", "5"])
async def test_a_replica_that_speaks_otherwise_ends_the_feed(data: str) -> None:
    feed = PeerEvents(said(f"event: failed\ndata: {data}"), None)
    await feed.begin()
    await feed.run()
    assert await feed.next(0) == Closing()


async def test_a_client_that_reads_nothing_costs_a_bounded_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_events, "_KEPT_MAX", 10)
    events = [happened(second) for second in range(11, 111)]
    blocks = [f"event: {each.type}\nid: {each.id}\ndata: {json.dumps(encode_event(each))}" for each in events]
    feed = PeerEvents(said(*blocks), None)
    await feed.begin()
    reading = asyncio.create_task(feed.run())
    seen: list[int] = []
    async with asyncio.timeout(LIMIT_S):
        while len(seen) < 100:
            told = await feed.next(1_000)
            assert isinstance(told, NewEvents)
            assert len(told.events) <= 10
            seen += [event.at_ms // 1_000 for event in told.events]
    reading.cancel()
    assert seen == list(range(11, 111))
