"""One shard as this process reaches it: its own routes, or another replica, asked once with the caller's own token."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock

import httpx
import orjson
import pytest

from hascheduler.api.http.limits import FORWARDED_MAX
from hascheduler.api.routing.route_rules import BODY_BYTES_MAX
from hascheduler.errors import StoreUnavailable
from hascheduler.mongo.connection import Database
from hascheduler.shards.peers import HostAddresses
from tests.doubles.databases import mock_databases
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem as any_problem
from tests.unit.shards.replicas import JOB, SHARD, Peer, replica, serving

BODY = {"definition": "log"}
NOT_HERE = b"HTTP/1.1 503 No\r\nx-hascheduler-not-hosted: 0001\r\ncontent-length: 0\r\n\r\n"
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"


def check_problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    problem = any_problem(answer, status)
    assert problem["type"] == f"urn:hascheduler:problem:{kind}"
    return problem


async def test_a_shard_that_is_hosted_here_is_answered_with_its_own_services() -> None:
    peer, other = Peer(), World()
    async with serving(peer) as addresses, replica(World(), addresses, services=other.services()) as client:
        for headers in ({}, {"X-Hascheduler-Shard": SHARD}):
            answer = await client.post("/v1/jobs", json=BODY, headers=headers)
            assert answer.json() == {"retention": "default", "body": '{"definition":"log"}'}
    assert not peer.requests


async def test_the_request_goes_to_another_and_the_answer_is_the_others_as_they_are() -> None:
    peer = Peer()
    kept = {"authorization": "Bearer hsk_" + "x" * 43, "x-request-id": "mine", "content-type": "application/json"}
    async with serving(peer) as addresses, replica(World(), addresses) as client:
        answer = await client.post("/v1/jobs?wait=1s", json=BODY, headers=kept)
    assert (answer.status_code, answer.content, answer.headers["x-own"]) == (200, b'{"from":"p"}', "yes")
    assert peer.requests[0].startswith(b"POST /v1/jobs?wait=1s HTTP/1.1\r\n")
    assert orjson.loads(peer.body) == BODY
    own = {"host": "api", "x-hascheduler-shard": SHARD, "x-of": "127.0.0.1"}
    assert (kept | own).items() <= peer.headers.items()


async def test_a_request_is_passed_on_once() -> None:
    """The sender of the header, be it a replica or a client."""
    peer = Peer()
    async with serving(peer) as addresses, replica(World(), addresses) as client:
        answer = await client.get(JOB, headers={"X-Hascheduler-Shard": SHARD})
    assert SHARD in check_problem(answer, 503, "shard-unanswered")["detail"]
    assert answer.headers["x-hascheduler-not-hosted"] == SHARD
    assert not peer.requests


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_next_one_is_asked_if_one_is_dead_or_does_not_host_the_shard(method: str) -> None:
    peers = [Peer(NOT_HERE), Peer()]
    async with serving(*peers) as addresses, replica(World(), ["127.0.0.1:1", *addresses]) as client:
        answer = await client.request(method, "/v1/jobs", json=BODY if method == "POST" else None)
    assert answer.json() == {"from": "p"}
    assert [len(peer.requests) for peer in peers] == [1, 1]


async def test_no_more_than_three_are_asked_and_none_is_503_with_the_name_of_the_shard() -> None:
    peers = [Peer(NOT_HERE) for _ in range(4)]
    async with serving(*peers) as addresses, replica(World(), addresses) as client:
        answer = await client.get(JOB)
    assert SHARD in check_problem(answer, 503, "shard-unanswered")["detail"]
    assert answer.headers["retry-after"]
    assert "x-hascheduler-not-hosted" not in answer.headers
    assert [len(peer.requests) for peer in peers] == [1, 1, 1, 0]


@pytest.mark.parametrize(("method", "asked"), [("GET", 2), ("POST", 1)])
async def test_what_may_have_been_carried_out_is_not_sent_again(method: str, asked: int) -> None:
    peers = [Peer(b""), Peer(b"")]
    async with serving(*peers) as addresses, replica(World(), addresses) as client:
        answer = await client.request(method, "/v1/jobs", json=BODY if method == "POST" else None)
    detail = check_problem(answer, 503, "shard-unanswered" if method == "GET" else "outcome-unknown")["detail"]
    assert ("unknown" in detail) is (method == "POST")
    assert sum(len(peer.requests) for peer in peers) == asked


async def test_an_answer_that_breaks_off_is_no_whole_one() -> None:
    world = World()
    async with serving(Peer(HALF)) as addresses, replica(world, addresses) as client:
        with pytest.raises(ConnectionAbortedError):
            await client.get(JOB)
    assert world.limits["forwarded"].in_use == 0


async def test_headers_that_are_not_for_the_other_stay_here() -> None:
    hostile = {
        "connection": "x-request-id",
        "x-forwarded-for": "10.0.0.1",
        "x-hascheduler-not-hosted": "0001",
        "x-hascheduler-client": "10.0.0.1",
        "proxy-authorization": "secret",
        "te": "trailers",
        "expect": "100-continue",
        "upgrade": "h2c",
    }
    peer = Peer()
    async with serving(peer) as addresses, replica(World(), addresses) as client:
        assert (await client.get(JOB, headers=hostile)).status_code == 200
    assert not (hostile.keys() - {"connection"}) & peer.headers.keys()
    assert peer.headers["connection"] == "keep-alive"
    assert peer.headers["accept-encoding"] in ("identity", "gzip, deflate")


async def test_a_path_can_lead_to_no_other_host() -> None:
    peer = Peer()
    async with serving(peer) as addresses, replica(World(), addresses) as client:
        for path in ("/v1/jobs/x?", "//evil.example/v1/jobs/x", "/@evil.example/x"):
            assert (await client.get(f"http://api{path}")).status_code == 200
    targets = [request.split(b" ")[1] for request in peer.requests]
    assert targets == [b"/v1/jobs/x", b"//evil.example/v1/jobs/x", b"/@evil.example/x"]


async def test_a_body_that_is_too_large_is_refused_here() -> None:
    peer = Peer()
    async with serving(peer) as addresses, replica(World(), addresses) as client:
        check_problem(await client.post("/v1/jobs", content=b"x" * (BODY_BYTES_MAX + 1)), 413, "body-too-large")
        assert (await client.post("/v1/jobs:batch", content=b"x" * (BODY_BYTES_MAX + 1))).status_code == 200
    assert len(peer.requests) == 1


async def test_a_client_that_leaves_ends_it_there_too() -> None:
    peer, world = Peer(waits=True), World()
    async with serving(peer) as addresses, replica(world, addresses) as client:
        asked = asyncio.create_task(client.get(JOB))
        async with asyncio.timeout(10):
            await peer.was_asked.wait()
            assert world.limits["forwarded"].in_use == 1
            asked.cancel()
            await peer.was_left.wait()
    assert world.limits["forwarded"].in_use == 0


async def test_what_is_held_open_ends_when_this_replica_ends() -> None:
    peer, world = Peer(waits=True), World()
    async with serving(peer) as addresses, replica(world, addresses) as client:
        asked = asyncio.create_task(client.get(f"{JOB}?wait=60s"))
        async with asyncio.timeout(10):
            await peer.was_asked.wait()
            world.view.stopping = True
            check_problem(await asked, 503, "shard-unanswered")


async def test_what_is_under_way_has_a_bound() -> None:
    world = World()
    slot = world.limits["forwarded"].take((), FORWARDED_MAX)
    async with serving(Peer()) as addresses, replica(world, addresses) as client:
        check_problem(await client.get(JOB), 503, "too-busy")
        slot.release()
        assert (await client.get(JOB)).status_code == 200
    assert world.limits["forwarded"].in_use == 0


# Which replicas host a shard


NOW = datetime.now(UTC).replace(tzinfo=None)


@pytest.fixture
def database() -> Database:
    return mock_databases("x-0001")[0]


def row(id: str, address: object, beat_s_ago: float = 0, *, ready: object = True) -> dict[str, Any]:
    return {"_id": id, "http_endpoint": address, "ready": ready, "expire_at": NOW - timedelta(seconds=beat_s_ago)}


async def test_the_leader_is_asked_first_and_silent_replicas_last(database: Database) -> None:
    rows = row("dead", "dead:1", 30), row("a", "a:1", ready=False), row("b", "b:1"), row("c", "c:1"), row("none", "")
    await database["replicas"].insert_many(rows)
    await database["leases"].insert_one({"_id": "default", "holder": "a"})
    for holder, order in (("c", "cba"), ("dead", "bca"), ("", "bca")):
        await database["leases"].replace_one({"_id": SHARD}, {"_id": SHARD, "holder": holder}, upsert=True)
        assert await HostAddresses(database, SHARD).read() == [*(f"{name}:1" for name in order), "dead:1"]


async def test_what_was_read_is_kept_for_a_moment_and_while_the_database_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database["replicas"].insert_one(row("a", "a:1"))
    addresses = HostAddresses(database, SHARD)
    assert await addresses.read() == ["a:1"]
    await database["replicas"].insert_one(row("b", "b:1"))
    assert await addresses.read() == ["a:1"], "kept for a moment"
    monkeypatch.setattr("hascheduler.shards.peers._KEPT_S", 0.0)
    addresses = HostAddresses(database, SHARD)
    assert await addresses.read() == ["a:1", "b:1"]
    gone = AsyncMock(side_effect=StoreUnavailable("away"))
    monkeypatch.setattr(type(database["leases"]), "find_one", gone, raising=False)
    await database["replicas"].insert_one(row("c", "c:1"))
    assert await addresses.read() == ["a:1", "b:1"]
    gone.side_effect, gone.return_value = None, None
    assert await addresses.read() == ["a:1", "b:1", "c:1"]
