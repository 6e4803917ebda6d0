"""One edge before several shards: what stands between chooses whose services answer, and a peer tells the client."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from hascheduler.api.app import with_edge
from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Slot, address_party
from hascheduler.api.http.server import BATCH_ID, peer_headers
from hascheduler.api.services import ApiServices
from hascheduler.errors import Overloaded
from tests.unit.api.doubles import World, the_routes
from tests.unit.api.requests import check_problem

LOG = {"definition": "log"}
FAR = {"X-Shard": "far"}
SHARED = ("auth", "audit_writer", "metrics", "limits", "logins", "tokens")


class ByHeader:
    """A gateway in small: the header says whose services answer, and the request goes on with a copy of its state."""

    def __init__(self, shards: Mapping[bytes, ApiServices]) -> None:
        self._shards = shards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shard = dict(scope["headers"]).get(b"x-shard", b"home")
        state = {**scope["state"], "services": self._shards[shard]}
        await the_routes()({**scope, "state": state}, receive, send)


@pytest.fixture
def far() -> World:
    return World()


def both(home: World, far: World, **changes: Any) -> Mapping[bytes, ApiServices]:
    """The services of each, which share what belongs to the process."""
    services = replace(home.services(), **changes)
    shared = {name: getattr(services, name) for name in SHARED}
    return {b"home": services, b"far": replace(far.services(), **shared)}


def before(shards: Mapping[bytes, ApiServices], **options: Any) -> Edge:
    return with_edge(ByHeader(shards), shards[b"home"], **options)


def asking(app: Edge, secret: str | None = None) -> httpx.AsyncClient:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=headers)


async def test_which_submits_are_turned_away_unread_may_be_said_to_the_edge(world: World, far: World) -> None:
    asked: list[str | None] = []

    def turned_away(tenant: str | None, length: int) -> Overloaded | None:
        asked.append(tenant)
        return Overloaded("too many", 3)

    async with asking(before(both(world, far), turned_away=turned_away)) as client:
        answer = await client.post("/v1/jobs", json=LOG, headers=FAR)
    assert check_problem(answer, 503)["detail"] == "too many"
    assert (answer.headers["retry-after"], asked) == ("3", [None])
    await world.audit_writer.flush()
    assert world.everything()["audit"] == []


# What a replica that knows the key passes on is charged to the address of the client


KEY, CLIENT = b"k" * 32, "192.0.2.7"
Headers = list[tuple[bytes, bytes]]


def passed_on(key: bytes, client: str | None, batch_id: str | None = None) -> Headers:
    """The headers of a request of that client that a peer with ``key`` passes on."""
    address = None if client is None else (client, 1234)
    return list(peer_headers(key, {"client": address, "state": {BATCH_ID: batch_id}}))


def app_with(world: World, key: bytes | None) -> Edge:
    return with_edge(the_routes(), replace(world.services(), peer_key=key))


async def address_charged(app: Edge, world: World, headers: Headers) -> str:
    """The address in the audit record of a change with these headers."""
    transport = httpx.ASGITransport(app, client=("198.51.100.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        assert (await client.put("/v1/lanes/bulk", json={}, headers=headers)).status_code == 201
    await world.audit_writer.flush()
    [record] = world.everything()["audit"]
    return str(record["address"])


async def test_a_peer_s_word_counts(world: World) -> None:
    headers = passed_on(KEY, CLIENT)
    assert await address_charged(app_with(world, KEY), world, headers) == CLIENT


@pytest.mark.parametrize("key", [KEY, None, b""])
@pytest.mark.parametrize(
    "headers",
    [
        [(b"x-hascheduler-client", CLIENT.encode())],
        passed_on(b"another", CLIENT),
        passed_on(b"", CLIENT),
        [*passed_on(KEY, "192.0.2.8"), (b"x-hascheduler-client", CLIENT.encode())],
        [(b"x-hascheduler-client", CLIENT.encode()), (b"x-hascheduler-proof", b"\xff")],
        [(b"x-hascheduler-shard", b"0002")],
    ],
    ids=["no proof", "another key", "no key", "a proof of another address", "not hexadecimal", "a shard alone"],
)
async def test_nobody_else_s_does(world: World, key: bytes | None, headers: Headers) -> None:
    assert await address_charged(app_with(world, key), world, headers) == "198.51.100.1"


async def test_the_limits_are_charged_with_the_client_s_address(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, app = world.limits["large_bodies"], app_with(world, KEY)
    held: list[int] = []
    take = limit.take

    def watched(*args: Any, **options: Any) -> Slot:
        slot = take(*args, **options)
        held.append(limit.held(address_party(CLIENT)))
        return slot

    monkeypatch.setattr(limit, "take", watched)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        answer = await client.post(
            "/v1/jobs:batch", json={"jobs": [{"definition": "log"}]}, headers=passed_on(KEY, CLIENT)
        )
    assert answer.status_code == 200
    assert held[0] > 0
    assert limit.in_use == 0


async def batch_made(app: Edge, headers: Headers) -> str:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        answer = await client.post("/v1/jobs:batch", json={"jobs": [{"definition": "log"}]}, headers=headers)
        assert answer.status_code == 200
        batch = str(answer.json()["batch"])
        assert len((await client.get(f"/v1/jobs?batch={batch}")).json()["items"]) == 1
        return batch


async def test_a_part_of_a_batch_has_the_id_that_a_peer_tells(world: World) -> None:
    assert await batch_made(app_with(world, KEY), passed_on(KEY, CLIENT, "batch:whole")) == "batch:whole"


@pytest.mark.parametrize("proof", [[], [passed_on(KEY, CLIENT)[-1]]], ids=["no proof", "one of no batch"])
async def test_no_client_chooses_the_id_of_its_batch(world: World, proof: Headers) -> None:
    headers = [(b"x-hascheduler-client", CLIENT.encode()), (b"x-hascheduler-batch", b"batch:whole"), *proof]
    assert await batch_made(app_with(world, KEY), headers) != "batch:whole"
