"""What another replica is asked, as it follows the shard that a request is about: once, with the caller's own token."""

import asyncio
from typing import Any

import httpx
import orjson
import pytest

from hascheduler.api.http.shares import PoolRequest
from hascheduler.api.middleware.pools import FORWARDED_MAX, Pools
from hascheduler.api.routing.forwarding import KEPT_BYTES_MAX
from hascheduler.errors import NotFollowedHere
from hascheduler.model.token import Role
from tests.factories import make_token
from tests.unit.api.doubles import World
from tests.unit.api.peers import ID, SHARD, WHY, Peer, asking, serving
from tests.unit.api.requests import check_problem as any_problem

BEAT = {"processor": "http:1@0001", "running": []}
NOT_HERE = b"HTTP/1.1 503 No\r\nx-hascheduler-not-followed: 0001\r\ncontent-length: 0\r\n\r\n"
REFUSED = b"HTTP/1.1 401 No\r\ncontent-type: application/problem+json\r\ncontent-length: 2\r\n\r\n{}"


def check_problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    problem = any_problem(answer, status)
    assert problem["type"] == f"urn:hascheduler:problem:{kind}"
    return problem


async def test_the_answer_is_the_others_as_it_is(world: World) -> None:
    peer = Peer()
    token = make_token(role=Role.ADMIN, tenant="*")
    world.view.token = lambda _: token
    headers = {"authorization": "Bearer hsk_" + "x" * 43, "x-request-id": "mine"}
    async with serving(peer) as addresses, asking(world, addresses) as client:
        answer = await client.get(f"{WHY}", headers=headers)
    assert (answer.status_code, answer.content, answer.headers["x-own"]) == (200, b'{"from":"p"}', "yes")
    assert answer.headers["x-request-id"] == "mine"
    assert peer.requests[0].startswith(f"GET {WHY} HTTP/1.1\r\n".encode())
    assert peer.headers["authorization"] == headers["authorization"]
    assert peer.headers["x-request-id"] == "mine"
    assert peer.headers["host"] == "api"
    assert peer.headers["x-hascheduler-forwarded"] == "1"


async def test_what_the_other_refuses_is_refused(world: World) -> None:
    async with serving(Peer(REFUSED)) as addresses, asking(world, addresses) as client:
        assert (await client.get(WHY)).status_code == 401


@pytest.mark.parametrize("short", [True, False])
async def test_a_body_goes_along_on_both_paths(world: World, short: bool) -> None:
    """The short path has read it already, and so has FastAPI."""
    peer = Peer()
    async with serving(peer) as addresses, asking(world, addresses) as client:
        query = "" if short else "?"
        answer = await client.post(f"/v1/work/heartbeat{query}", json=BEAT)
    assert answer.status_code == 200
    assert orjson.loads(peer.body) == BEAT
    assert peer.headers["content-type"] == "application/json"


async def test_a_request_is_forwarded_once(world: World) -> None:
    """The sender of the header, be it a replica or a client."""
    peer = Peer()
    async with serving(peer) as addresses, asking(world, addresses) as client:
        answer = await client.get(WHY, headers={"X-Hascheduler-Forwarded": "1"})
    problem = check_problem(answer, 503, "shard-unanswered")
    assert SHARD in problem["detail"]
    assert answer.headers["x-hascheduler-not-followed"] == SHARD
    assert not peer.requests


async def test_two_that_take_each_other_for_followers_end_in_an_answer(world: World) -> None:
    peers = [Peer(NOT_HERE), Peer(NOT_HERE)]
    async with serving(*peers) as addresses, asking(world, addresses) as client:
        answer = await client.get(WHY)
    check_problem(answer, 503, "shard-unanswered")
    assert "x-hascheduler-not-followed" not in answer.headers
    assert [len(peer.requests) for peer in peers] == [1, 1]


async def test_the_next_one_is_asked_where_one_is_dead_or_does_not_follow_the_shard(world: World) -> None:
    dead, stranger, peer = Peer(), Peer(NOT_HERE), Peer()
    async with serving(dead):
        pass
    async with serving(stranger, peer) as addresses, asking(world, [dead.address, *addresses]) as client:
        assert (await client.post("/v1/work/heartbeat", json=BEAT)).status_code == 200
    assert orjson.loads(peer.body) == BEAT


async def test_none_that_answers_is_503_with_the_name_of_the_shard(world: World) -> None:
    async with asking(world, []) as client:
        answer = await client.get(WHY)
    assert SHARD in check_problem(answer, 503, "shard-unanswered")["detail"]
    assert answer.headers["retry-after"]


@pytest.mark.parametrize(("method", "asked"), [("GET", 2), ("POST", 1)])
async def test_what_may_have_been_carried_out_is_not_sent_again(world: World, method: str, asked: int) -> None:
    peers = [Peer(b""), Peer(b"")]
    async with serving(*peers) as addresses, asking(world, addresses) as client:
        path, body = (WHY, None) if method == "GET" else ("/v1/work/heartbeat", BEAT)
        answer = await client.request(method, path, json=body)
    detail = check_problem(answer, 503, "shard-unanswered")["detail"]
    assert ("unknown" in detail) is (method == "POST")
    assert sum(len(peer.requests) for peer in peers) == asked


async def test_headers_that_are_not_for_the_other_stay_here(world: World) -> None:
    hostile = {
        "connection": "x-request-id",
        "x-forwarded-for": "10.0.0.1",
        "x-hascheduler-not-followed": "0001",
        "proxy-authorization": "secret",
        "te": "trailers",
        "expect": "100-continue",
        "upgrade": "h2c",
    }
    peer = Peer()
    async with serving(peer) as addresses, asking(world, addresses) as client:
        assert (await client.get(WHY, headers=hostile)).status_code == 200
    assert not (hostile.keys() - {"connection"}) & peer.headers.keys()
    assert peer.headers["connection"] == "keep-alive"
    assert peer.headers["accept-encoding"] in ("identity", "gzip, deflate")


async def test_a_path_can_lead_to_no_other_host(world: World) -> None:
    peer = Peer()
    async with serving(peer) as addresses, asking(world, addresses) as client:
        await client.get("/v1/jobs/job:0001/why?", headers={"host": "a"})
        odd = await client.get("//evil.example/v1/jobs/x/why")
    assert odd.status_code in (400, 404)
    assert [request.split(b" ")[1] for request in peer.requests] == [WHY.encode()]


async def test_a_body_that_is_too_large_is_refused_here(world: World) -> None:
    peer = Peer()
    large = {**BEAT, "running": [{"job": "x" * KEPT_BYTES_MAX, "attempt": 1}]}
    async with serving(peer) as addresses, asking(world, addresses) as client:
        assert (await client.post("/v1/work/heartbeat", json=large)).status_code == 413
    assert not peer.requests


async def test_a_client_that_leaves_ends_it_there_too(world: World) -> None:
    peer = Peer(waits=True)
    async with serving(peer) as addresses, asking(world, addresses) as client:
        asked = asyncio.create_task(client.get(WHY))
        async with asyncio.timeout(10):
            await peer.was_asked.wait()
            assert world.pools.forwarded.in_use == 1
            asked.cancel()
            await peer.was_left.wait()
    assert world.pools.forwarded.in_use == 0


async def test_what_is_under_way_has_a_bound(world: World) -> None:
    pools: Any = Pools()
    world.pools = pools
    slot = pools.forwarded.admit(PoolRequest(()), FORWARDED_MAX)
    async with serving(Peer()) as addresses, asking(world, addresses) as client:
        check_problem(await client.get(WHY), 503, "too-busy")
        slot.release()
        assert (await client.get(WHY)).status_code == 200
    assert pools.forwarded.in_use == 0


async def test_a_job_that_has_ended_needs_nobody(world: World) -> None:
    async with asking(world, []) as client:
        world.rewrite_job(ID, state="succeeded", finished_at_ms=1)
        assert (await client.get(WHY)).json()["state"] == "succeeded"


async def test_what_is_left_out_is_said_and_names_that_may_be_there_can_be_drained(world: World) -> None:
    async with asking(world, []) as client:
        assert SHARD in (await client.get("/v1/processors")).headers["warning"]
        assert (await client.post("/v1/processors/nowhere-seen/drain")).status_code == 200


async def test_jobs_that_the_mirror_does_not_tell_are_counted_in_the_database(world: World) -> None:
    def live_jobs(**_: object) -> dict[str, int]:
        raise NotFollowedHere(SHARD)

    world.view.live_jobs = live_jobs  # type: ignore[method-assign]
    async with asking(world, []) as client:
        assert (await client.get("/v1/jobs:counts?definition=log")).json()["matched"] == 1


async def test_the_picture_of_one_tenant_is_that_of_a_follower(world: World) -> None:
    token = make_token(role=Role.VIEWER, tenant="acme")
    world.view.token = lambda _: token
    peer = Peer()
    async with serving(peer) as addresses, asking(world, addresses) as client:
        answer = await client.get("/v1/cluster/live", headers={"authorization": "Bearer hsk_" + "x" * 43})
    assert answer.headers["x-own"] == "yes"
