"""Slots, ids that tell them, and the routing that all processes of a deployment agree on."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import decode_routing, encode_routing
from hascheduler.model.job import backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.routing import SLOT_COUNT, Routing, shard_database, shard_name, slot_in, slot_of, with_slot
from hascheduler.sharding.home import agreed_routing
from hascheduler.sharding.places import ShardPlaces
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import MemoryDatabase
from hascheduler.testing.memory.routing import MemoryNameStore, MemoryRoutingStore
from tests.factories import make_schedule

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
    found = await asyncio.gather(*(agreed_routing(routings, NAMES, "db") for _ in range(3)))
    assert found == [Routing.even(NAMES)] * 3


async def test_a_deployment_of_one_shard_has_no_routing() -> None:
    routings = store(used=True)
    assert await agreed_routing(routings, ["default"], "db") is None
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
    await agreed_routing(routings, there, "db")
    with pytest.raises(InvalidInput) as refused:
        await agreed_routing(routings, names, "db")
    assert refused.value.path == (setting,)
    assert says in str(refused.value)


async def test_a_home_that_was_used_without_shards_can_not_be_divided() -> None:
    routings = store(used=True)
    with pytest.raises(InvalidInput, match="of a deployment of one shard"):
        await agreed_routing(routings, NAMES, "db")
    assert await routings.get() is None


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
