"""Slots, ids that tell them, and the routing that all processes of a deployment agree on."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import decode_routing, encode_routing
from hascheduler.model.job import backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.routing import SLOT_COUNT, Routing, shard_database, shard_name, slot_in, slot_of, with_slot
from hascheduler.sharding.home import agreed_routing
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.plans import even_moves, moves_to, slot_counts
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryNameStore, MemoryRoutingStore
from tests.factories import NOW, make_schedule
from tests.tiers import examples

NAMES = ["default", "0001", "0002"]


def store(*, used: bool = False) -> MemoryRoutingStore:
    database = MemoryDatabase()
    if used:
        database.insert(Collection.SCHEDULES, make_schedule("nightly"))
    return MemoryRoutingStore(MemoryConnection(database))


def test_slots_are_the_same_for_ever() -> None:
    assert [slot_of(tenant) for tenant in ("default", "acme", "", "müller")] == [105, 237, 46, 85]


@given(st.text())
def test_an_id_tells_the_slot_of_its_tenant(tenant: str) -> None:
    assert slot_in(with_slot("job:1", tenant)) == slot_of(tenant)


@given(st.from_regex(r"[A-Za-z0-9._~-]{1,20}", fullmatch=True))
def test_the_id_of_a_job_that_a_schedule_made_tells_none(name: str) -> None:
    fired = fire_job_id(name, 1_700_000_000_000)
    for id in (fired, backfill_job_id(name, 1), trigger_job_id(name, "7~ab"), graph_job_id(fired, "x~ab"), "job:1"):
        assert slot_in(id) is None


def test_every_shard_has_about_as_many_slots() -> None:
    routing = Routing.even(NAMES)
    counts = [routing.shard_of_slot.count(index) for index in range(3)]
    assert sum(counts) == SLOT_COUNT
    assert max(counts) - min(counts) <= 1
    assert decode_routing(encode_routing(routing)) == routing


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("shards", [], ("shards",)),
        ("shards", ["a", "a"], ("shards",)),
        ("shards", "abc", ("shards",)),
        ("shards", [f"{n}" for n in range(65)], ("shards",)),
        ("slots", [0] * 255, ("slots",)),
        ("slots", [3] * 256, ("slots", 0)),
        ("slots", [-1] * 256, ("slots", 0)),
        ("slots", [True] * 256, ("slots",)),
        ("slots", None, ("slots",)),
        ("epoch", 0, ("epoch",)),
        ("epoch", "1", ("epoch",)),
        ("v", 99, ("v",)),
    ],
)
def test_a_malformed_routing_is_refused_with_what_is_wrong(field: str, value: object, path: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_routing(encode_routing(Routing.even(NAMES)) | {field: value})
    assert refused.value.path == path


def test_names_of_shards_and_databases() -> None:
    assert [shard_name("default", index) for index in range(3)] == NAMES
    assert [shard_database("hascheduler", index) for index in (0, 7)] == ["hascheduler", "hascheduler-0007"]


async def test_the_first_replica_makes_the_routing_and_all_others_find_it() -> None:
    routings = store()
    found = await asyncio.gather(*(agreed_routing(routings, NAMES, "db", NOW) for _ in range(3)))
    assert found == [Routing.even(NAMES)] * 3


async def test_a_deployment_of_one_shard_has_no_routing() -> None:
    routings = store(used=True)
    assert await agreed_routing(routings, ["default"], "db", NOW) is None
    assert await routings.get() is None


@pytest.mark.parametrize(
    ("there", "names", "setting", "says"),
    [
        (NAMES, NAMES[:2], "HASCHEDULER_SHARDS", "2, and the deployment in the database 'db' has 3"),
        (NAMES, NAMES[:1], "HASCHEDULER_SHARDS", "1, and the deployment in the database 'db' has 3"),
        (NAMES, ["main", *NAMES[1:]], "HASCHEDULER_SHARD", "calls its first shard 'default'"),
    ],
)
async def test_other_shards_than_the_home_has_are_refused(
    there: list[str], names: list[str], setting: str, says: str
) -> None:
    routings = store()
    await agreed_routing(routings, there, "db", NOW)
    with pytest.raises(InvalidInput) as refused:
        await agreed_routing(routings, names, "db", NOW)
    assert refused.value.path == (setting,)
    assert says in str(refused.value)


async def test_a_home_that_was_used_as_the_only_shard_has_all_slots_and_the_names_of_its_schedules() -> None:
    connection = MemoryConnection(MemoryDatabase())
    routings, names = MemoryRoutingStore(connection), MemoryNameStore(connection)
    connection.database.insert(Collection.SCHEDULES, {"_id": "tick", "job": {"tenant": "acme"}})
    assert await agreed_routing(routings, NAMES, "db", NOW) == Routing.all_at_home(NAMES)
    reserved = await names.get("tick")
    assert reserved is not None
    assert reserved.tenant == "acme"


async def test_shards_that_are_new_are_added_without_a_slot() -> None:
    routings = store()
    await agreed_routing(routings, NAMES, "db", NOW)
    more = [*NAMES, "0003"]
    found = await asyncio.gather(*(agreed_routing(routings, more, "db", NOW) for _ in range(3)))
    assert found == [replace(Routing.even(NAMES), epoch=2, shards=tuple(more))] * 3


# Moves


def test_a_slot_is_where_it_was_until_it_has_arrived() -> None:
    routing = Routing.even(NAMES)
    begun = routing.beginning({0: 2, 1: 1})
    assert begun.moving == {0: 2}, "the other one is there"
    assert begun.shard_of_slot == routing.shard_of_slot
    with pytest.raises(InvalidInput, match="it moves to 0002"):
        begun.beginning({0: 1})
    assert (begun.goal_of(0), begun.other_of(0), begun.is_at_rest(0)) == (2, 2, False)
    arrived = begun.arrived(0)
    assert (arrived.epoch, arrived.moving, arrived.shard_of_slot[0]) == (3, {}, 2)


def test_a_slot_rests_once_nothing_of_it_is_left_where_it_was() -> None:
    arrived = Routing.even(NAMES).beginning({0: 2, 3: 1}).arrived(0)
    assert arrived.leaving == {0: 0}
    assert (arrived.goal_of(0), arrived.other_of(0), arrived.is_at_rest(0)) == (2, 0, False)
    with pytest.raises(InvalidInput, match="it moves to 0002"):
        arrived.beginning({0: 1})
    assert decode_routing(encode_routing(arrived)) == arrived
    emptied = arrived.emptied(0)
    assert (emptied.epoch, emptied.moving, emptied.leaving) == (4, {3: 1}, {})
    assert (emptied.other_of(0), emptied.is_at_rest(0)) == (None, True)


@pytest.mark.parametrize("name", ["moving", "leaving"])
@pytest.mark.parametrize("slots", [{256: 0}, {0: 3}, {-1: 0}])
def test_moves_to_nowhere_are_refused(name: str, slots: dict[int, int]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Routing(1, tuple(NAMES), Routing.even(NAMES).shard_of_slot, **{name: slots})
    assert refused.value.path == (name,)


@pytest.mark.parametrize("name", ["moving", "leaving"])
@pytest.mark.parametrize("slots", ["x", [[1]], [[1, "a"]], [[300, 0]]])
def test_moves_that_were_broken_by_hand_are_refused(name: str, slots: object) -> None:
    stored = {**encode_routing(Routing.even(NAMES)), name: slots}
    with pytest.raises(InvalidInput) as refused:
        decode_routing(stored)
    assert refused.value.path == (name,)


@given(st.lists(st.integers(0, 4), min_size=SLOT_COUNT, max_size=SLOT_COUNT), st.integers(5, 7))
@settings(max_examples=examples(60))
def test_after_even_moves_no_shard_has_two_slots_more_than_another(placed: list[int], count: int) -> None:
    routing = Routing(1, tuple(f"s{index}" for index in range(count)), tuple(placed))
    moves = even_moves(routing)
    counts = slot_counts(routing, moves)
    assert sum(counts) == SLOT_COUNT
    assert max(counts) - min(counts) <= 1
    assert len(moves) <= sum(max(placed.count(index) - SLOT_COUNT // count, 0) for index in range(count))
    assert even_moves(routing.beginning(moves)) == {}


def test_tenants_and_slots_are_moved_by_name() -> None:
    routing = Routing.even(NAMES)
    elsewhere = (routing.index_of("acme") + 1) % len(NAMES)
    assert moves_to(routing, NAMES[elsewhere], ["acme"]) == {slot_of("acme"): elsewhere}
    assert moves_to(routing, NAMES[0], [], [0, 1]) == {1: 0}
    for shard, tenants, slots, path in (("0009", ["a"], [], "--to"), (NAMES[0], [], [256], "--slot")):
        with pytest.raises(InvalidInput) as refused:
            moves_to(routing, shard, tenants, slots)
        assert refused.value.path == (path,)
    with pytest.raises(InvalidInput, match="1 moves to default"):
        moves_to(routing.beginning({1: 0}), NAMES[2], [], [1])
    with pytest.raises(InvalidInput, match="1 moves to default"):
        moves_to(routing.beginning({1: 0}).arrived(1), NAMES[2], [], [1])


async def test_places_follow_the_newest_routing_of_their_shards() -> None:
    names = MemoryNameStore(MemoryConnection(MemoryDatabase()))
    routing = Routing.even(NAMES)
    places = ShardPlaces(routing, names)
    newest: Routing | None = None
    places.follow(lambda: newest)
    tenant = "acme"
    here, there = routing.index_of(tenant), (routing.index_of(tenant) + 1) % len(NAMES)
    assert places.of_tenant(tenant) == here
    places.require_at_rest(tenant)
    newest = routing.beginning({slot_of(tenant): there})
    assert places.of_tenant(tenant) == here
    with pytest.raises(StoreUnavailable, match="moves to another shard"):
        places.require_at_rest(tenant)
    assert places.meant([0, 1, 2], tenant) == [here, there], "some of it is there already"
    newest = newest.arrived(slot_of(tenant))
    assert places.of_tenant(tenant) == there
    assert places.meant([0, 1, 2], tenant) == [there, here], "the rest is there still"
    with pytest.raises(StoreUnavailable, match="moves to another shard"):
        places.require_at_rest(tenant)
    newest = newest.emptied(slot_of(tenant))
    assert places.meant([0, 1, 2], tenant) == [there]
    places.require_at_rest(tenant)
    newest = newest.extended([*NAMES, "0003"]).beginning({slot_of(tenant): 3}).arrived(slot_of(tenant))
    assert places.count == len(NAMES)
    with pytest.raises(StoreUnavailable, match="shard 0003 was added since this replica started"):
        places.of_tenant(tenant)


async def test_between_two_mongodbs_what_is_not_found_may_be_on_its_way() -> None:
    """A document that has departed is in no shard until it arrives, and is not said not to exist."""
    names = MemoryNameStore(MemoryConnection(MemoryDatabase()))
    routing, tenant = Routing.even(NAMES), "acme"
    here = routing.index_of(tenant)
    near, far = [index for index in range(len(NAMES)) if index != here]
    mongodbs = [int(index == far) for index in range(len(NAMES))]
    places = ShardPlaces(routing, names, mongodbs)
    newest = routing
    places.follow(lambda: newest)
    await names.reserve("nightly", tenant, None, 0)  # type: ignore[arg-type]  # an instant
    ids = [with_slot("job:1", tenant), fire_job_id("nightly", 1)]

    async def require_all() -> None:
        places.require_found(tenant)
        await places.require_schedule_found("nightly")
        for id in ids:
            await places.require_job_found(id)

    await require_all()
    newest = routing.beginning({slot_of(tenant): near})
    await require_all()
    moving = routing.beginning({slot_of(tenant): far})
    for newest in (moving, moving.arrived(slot_of(tenant))):  # noqa: B007  # places follow it
        for id in ids:
            with pytest.raises(StoreUnavailable, match="come again in a second"):
                await places.require_job_found(id)
        with pytest.raises(StoreUnavailable, match="come again in a second"):
            await places.require_schedule_found("nightly")
        with pytest.raises(StoreUnavailable, match="come again in a second"):
            places.require_found(tenant)
        await places.require_job_found("job:1")
        await places.require_job_found(fire_job_id("hourly", 1))
        await places.require_schedule_found("hourly")
    newest = newest.emptied(slot_of(tenant))
    await require_all()


# Where to look


async def test_a_job_is_looked_for_first_where_its_id_says() -> None:
    names = MemoryNameStore(MemoryConnection(MemoryDatabase()))
    places = ShardPlaces(Routing.even(NAMES), names)
    acme = places.of_tenant("acme")
    assert list(await places.search(with_slot("job:1", "acme"))) == [acme, *(n for n in range(3) if n != acme)]
    assert list(await places.search("job:1")) == [0, 1, 2]
    assert await places.of_job(fire_job_id("nightly", 1)) is None
    await names.reserve("nightly", "acme", None, 0)  # type: ignore[arg-type]  # an instant
    assert await places.of_job(fire_job_id("nightly", 1)) == acme


def test_what_would_be_in_two_shards_is_refused_with_the_names_of_both() -> None:
    places = ShardPlaces(Routing.even(NAMES), MemoryNameStore(MemoryConnection(MemoryDatabase())))
    here = "default"
    there = next(f"t{n}" for n in range(99) if places.of_tenant(f"t{n}") != places.of_tenant(here))
    with pytest.raises(InvalidInput) as refused:
        places.require_one_shard([here, here, there], ("jobs",))
    for tenant, shard in ((here, NAMES[places.of_tenant(here)]), (there, NAMES[places.of_tenant(there)])):
        assert f"'{tenant}' is in shard {shard}" in str(refused.value) or f"'{tenant}' in {shard}" in str(refused.value)
    places.require_one_shard([here, here], ("jobs",))
    places.require_one_slot(here, here, ("job", "tenant"))
    with pytest.raises(InvalidInput):
        places.require_one_slot(here, there, ("job", "tenant"))
