"""What a peer says of the client, and the limits that each party is charged with."""

from contextlib import suppress
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.api.app import with_edge
from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Holding, Limit, NoRoom, Party, Slot, address_party, limits
from hascheduler.api.http.server import BATCH_ID, peer_headers
from hascheduler.errors import Overloaded
from hascheduler.telemetry.metrics_http import POOLS, HttpMetrics
from tests.unit.api.doubles import World, the_routes
from tests.unit.api.requests import check_problem


async def test_which_submits_are_turned_away_unread_may_be_said_to_the_edge(world: World) -> None:
    """As several shards in one process do, each with its own queue."""
    asked: list[str | None] = []

    def turned_away(tenant: str | None, length: int) -> Overloaded | None:
        asked.append(tenant)
        return Overloaded("too many", 3)

    app = with_edge(the_routes(), world.services(), turned_away=turned_away)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://api") as client:
        answer = await client.post("/v1/jobs", json={"definition": "log"})
    assert check_problem(answer, 503)["detail"] == "too many"
    assert (answer.headers["retry-after"], asked) == ("3", [None])
    await world.audit_writer.flush()
    assert world.everything()["audit"] == []


KEY, CLIENT = b"k" * 32, "192.0.2.7"
Headers = list[tuple[bytes, bytes]]


def passed_on(key: bytes, client: str | None, batch_id: str | None = None) -> Headers:
    """The headers of a request of that client that a peer with ``key`` passes on."""
    address = None if client is None else (client, 1234)
    return list(peer_headers(key, {"client": address, "state": {BATCH_ID: batch_id}}))


def app_with(world: World, key: bytes | None) -> Edge:
    return with_edge(the_routes(), replace(world.services(), peer_key=key))


async def address_charged(app: Edge, world: World, headers: Headers) -> str:
    transport = httpx2.ASGITransport(app, client=("198.51.100.1", 1234))
    async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
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
async def test_nobody_else_s_word_counts(world: World, key: bytes | None, headers: Headers) -> None:
    assert await address_charged(app_with(world, key), world, headers) == "198.51.100.1"


async def batch_made(app: Edge, headers: Headers) -> str:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://api") as client:
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


def greedy(limit: Limit, party: Party) -> int:
    with suppress(NoRoom):
        while True:
            limit.take((party,))
    return limit.held(party)


def test_parties_that_take_all_they_can_leave_half_of_what_they_found() -> None:
    limit = Limit("some", 64)
    assert [greedy(limit, ("token", str(number))) for number in range(7)] == [32, 16, 8, 4, 2, 1, 1]
    assert limit.free() == 0
    assert greedy(Limit("some", 320, 64), address_party("127.0.0.1")) == 192


@pytest.mark.parametrize(
    ("one", "other", "is_one_party"),
    [
        ("127.0.0.1", "127.0.0.2", False), ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False), ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True), ("not:an:address", "not:an:address", True),
    ],
)  # fmt: skip
def test_which_addresses_are_one_party(one: str, other: str, is_one_party: bool) -> None:  # a case
    assert (address_party(one) == address_party(other)) == is_one_party


PARTIES: list[Party] = [("token", "a"), ("token", "b"), ("token", "c"), ("address", "1"), ("address", "2")]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sets(st.sampled_from(PARTIES), max_size=2), st.booleans(), st.integers(1, 9)),
        st.integers(0, 50),  # which slot is released
    ),
    max_size=120,
)


@given(st.integers(0, 40), st.integers(0, 10), STEPS)
def test_whatever_comes_and_goes_the_promises_hold(total: int, reserve: int, steps: list[object]) -> None:
    limit = Limit("some", total, min(reserve, total))
    slots: list[tuple[Slot, set[Party], int]] = []
    for step in steps:
        if isinstance(step, int):
            if slots:
                slots.pop(step % len(slots))[0].release()
        else:
            assert isinstance(step, tuple)
            parties, privileged, units = step
            free, held = limit.free(privileged=privileged), [limit.held(party) for party in parties]
            taken = None
            with suppress(NoRoom):
                taken = limit.take(tuple(parties), units, privileged=privileged)
            if taken is not None:
                slots.append((taken, parties, units))
                assert units <= free
            else:
                assert any(held) or units > free, "who holds nothing is refused only if there is no room"
        # The books balance.
        assert limit.in_use == sum(units for _, _, units in slots) <= total
        for party in PARTIES:
            assert limit.held(party) == sum(units for _, parties, units in slots if party in parties)
    for slot, _, _ in slots:
        slot.release()
    assert limit.in_use == 0


def test_the_refusals_of_every_limit_are_counted_from_the_beginning() -> None:
    assert {"connections", *limits()} == set(POOLS)


def test_a_request_gives_back_all_that_it_holds_and_is_charged_once_for_a_stream_of_several_shards() -> None:
    of_all = limits()
    holding = Holding(of_all, (("token", "t"),), HttpMetrics(), privileged=False)
    with holding.take("followers"), holding.take("followers"), holding.take("forwarded"), holding.take("forwarded"):
        assert [of_all[kind].in_use for kind in ("in_flight", "followers", "forwarded")] == [1, 1, 2]
    holding.hold_open("waits")
    assert holding.is_held_open
    assert [of_all[kind].in_use for kind in ("in_flight", "waits")] == [0, 1]
    holding.release()
    assert [limit.in_use for limit in of_all.values()] == [0] * len(of_all)
