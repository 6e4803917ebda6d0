"""What a replica sees of several shards together."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from hascheduler.daemon.outbound.waiters import Waiters
from hascheduler.errors import Overloaded
from hascheduler.model.job import fire_job_id
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.routing import Routing, slot_of, with_slot
from hascheduler.ports import LeaderLag
from hascheduler.sharding.admission import ShardedAdmission
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.view import ShardedView
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryNameStore
from tests.factories import make_processor

NAMES = ("default", "0001", "0002")


class Shard:
    """A view of one shard, with what the tests of it set."""

    def __init__(self) -> None:
        self.unready_reason, self.leading, self.stopping, self.alive = "", False, False, True
        self.waiters, self.known, self.explained = Waiters(), set[str](), dict[str, str]()
        self.live: dict[str, int] = {}
        self.serving: list[ProcessorRef] = []
        self.tenants_asked: list[str | None] = []
        self.leader_lag = LeaderLag()

    def unseen_shards(self, tenant: str | None = None) -> list[str]:
        return []

    def schedules(self) -> dict[str, Any]:
        return {name: SimpleNamespace(name=name) for name in self.known}

    def processors(self) -> list[ProcessorRef]:
        return self.serving

    def job_end_waiter(self, job_id: str) -> Any:
        return self.waiters.waiting(job_id)

    def explain(self, job_id: str, only: str | None = None) -> str | None:
        return self.explained.get(job_id)

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> dict[str, int]:
        self.tenants_asked.append(tenant)
        return self.live


class Room:
    def __init__(self) -> None:
        self.places = ShardPlaces(Routing.even(NAMES), MemoryNameStore(MemoryConnection(MemoryDatabase())))
        self.shards: list[Any] = [Shard() for _ in NAMES]
        self.view: Any = ShardedView(self.places, self.shards)


@pytest.fixture
def room() -> Room:
    return Room()


def test_it_is_ready_once_all_shards_were_and_then_while_the_home_is(room: Room) -> None:
    room.shards[2].unready_reason = "the mirror is not complete yet"
    assert room.view.unready_reason == "shard 0002: the mirror is not complete yet"
    room.shards[2].unready_reason = ""
    assert room.view.ready
    room.shards[2].unready_reason = "the change stream has been silent for too long"
    assert room.view.ready
    room.shards[0].unready_reason = "the change stream has been silent for too long"
    assert room.view.unready_reason == "the change stream has been silent for too long"


def test_counts_of_a_tenant_are_those_of_its_shard_and_others_the_sum(room: Room) -> None:
    for number, shard in enumerate(room.shards):
        shard.live = {"pending": number + 1, "running": 10}
    assert room.view.live_jobs() == {"pending": 6, "running": 30}
    own = room.places.of_tenant("acme")
    assert room.view.live_jobs(tenant="acme") == {"pending": own + 1, "running": 10}
    assert [shard.tenants_asked for shard in room.shards if "acme" in shard.tenants_asked] == [[None, "acme"]]


def test_counts_of_a_tenant_whose_slot_moves_are_those_of_both_shards(room: Room) -> None:
    for number, shard in enumerate(room.shards):
        shard.live = {"pending": number + 1}
    own, slot = room.places.of_tenant("acme"), slot_of("acme")
    begun = Routing.even(NAMES).beginning({slot: (own + 1) % 3})
    both = {"pending": own + 1 + (own + 1) % 3 + 1}
    for routing, told in (
        (begun, both),
        (begun.arrived(slot), both),
        (begun.arrived(slot).emptied(slot), {"pending": (own + 1) % 3 + 1}),
    ):
        room.places.follow(partial(lambda now: now, routing))
        assert room.view.live_jobs(tenant="acme") == told


def test_schedules_of_all_shards_are_one_mapping(room: Room) -> None:
    room.shards[0].known, room.shards[2].known = {"a"}, {"b", "c"}
    schedules = room.view.schedules()
    assert sorted(schedules) == ["a", "b", "c"]
    assert len(schedules) == 3
    assert schedules["b"].name == "b"
    assert "d" not in schedules
    with pytest.raises(KeyError):
        schedules["d"]


def test_why_a_job_waits_is_asked_where_its_id_says(room: Room) -> None:
    id = with_slot("job:1", "acme")
    for shard in room.shards:
        shard.explained = {id: "elsewhere", "fire:nightly:1": "elsewhere", "job:2": "somewhere"}
    own = room.places.of_tenant("acme")
    room.shards[own].explained[id] = "here"
    assert room.view.explain(id) == "here"
    room.shards[1].known, room.shards[1].explained["fire:nightly:1"] = {"nightly"}, "here"
    assert room.view.explain("fire:nightly:1") == "here"
    assert room.view.explain("job:2") == "somewhere"
    assert room.view.explain("job:3") is None


async def test_the_end_of_a_job_is_heard_in_whichever_shard_it_is(room: Room) -> None:
    own = room.places.of_tenant("acme")
    with room.view.job_end_waiter(with_slot("job:1", "acme")) as waiter:
        assert [len(shard.waiters.names) for shard in room.shards] == [index == own for index in range(3)]
        room.shards[own].waiters.notify(with_slot("job:1", "acme"))
        assert await waiter.wait()
    for shard in room.shards:
        with room.view.job_end_waiter(fire_job_id("nightly", 1)) as waiter:
            waiting = asyncio.create_task(waiter.wait())
            await asyncio.sleep(0)
            shard.waiters.notify(fire_job_id("nightly", 1))
            assert await waiting
    with room.view.job_end_waiter("job:2") as waiter:
        room.shards[1].waiters.close()
        assert not await waiter.wait()
    assert not any(shard.waiters.names for shard in room.shards)


def test_the_worst_of_all_leaders_is_what_counts(room: Room) -> None:
    room.shards[0].leader_lag, room.shards[1].leader_lag = LeaderLag(5, 2), LeaderLag(400, 1)
    assert room.view.leader_lag == LeaderLag(400, 2)
    assert not room.view.leading
    room.shards[2].leading = True
    assert room.view.leading


# Admission


class Admission:
    def __init__(self) -> None:
        self.admitted: list[str] = []
        self.refusal: Overloaded | None = None
        self.asked = 0

    async def admit(
        self, tenant: str, jobs: int, path: tuple[str | int, ...] = ("jobs",), dependencies: int = 0
    ) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.admitted.append(tenant)

    def turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        self.asked += 1
        return self.refusal

    def is_holding_back(self) -> bool:
        return self.refusal is not None

    def not_new(self, tenant: str, jobs: int, dependencies: int = 0) -> None:
        self.admitted.remove(tenant)


@contextmanager
def refused() -> Iterator[None]:
    with pytest.raises(Overloaded):
        yield


async def test_an_overloaded_shard_refuses_its_own_tenants_and_no_others(room: Room) -> None:
    parts = [Admission() for _ in NAMES]
    admission = ShardedAdmission(room.places, parts)
    own = room.places.of_tenant("acme")
    other = next(f"t{n}" for n in range(99) if room.places.of_tenant(f"t{n}") != own)
    parts[own].refusal = Overloaded("too much", 1)
    with refused():
        await admission.admit("acme", 1)
    await admission.admit(other, 1)
    assert parts[room.places.of_tenant(other)].admitted == [other]
    admission.not_new(other, 1)
    assert parts[room.places.of_tenant(other)].admitted == []
    assert admission.turned_away("acme", 10) is parts[own].refusal
    assert admission.turned_away(other, 10) is None
    assert admission.is_holding_back()
    # Whose it is stands in the body: it is read unless nobody would take it.
    assert admission.turned_away(None, 10) is None
    for wait_s, part in enumerate(parts, start=1):
        part.refusal = Overloaded("too much", wait_s)
    assert admission.turned_away(None, 10) is parts[0].refusal


def test_a_submit_of_any_tenant_is_a_refusal_of_no_shard_while_one_has_room(room: Room) -> None:
    parts = [Admission() for _ in NAMES]
    admission = ShardedAdmission(room.places, parts)
    parts[0].refusal = Overloaded("too much", 1)
    assert admission.turned_away(None, 10) is None
    assert [part.asked for part in parts] == [1, 1, 0]
    # From now on the one that has room is asked alone.
    assert admission.turned_away(None, 10) is None
    assert [part.asked for part in parts] == [1, 2, 0]


@pytest.mark.parametrize("definitions", [{"*"}, {"mail"}, {"mail", "report"}])
@pytest.mark.parametrize("other", [{"*"}, {"mail"}])
def test_a_worker_goes_where_the_fewest_slots_are_for_what_it_takes(
    room: Room, definitions: set[str], other: set[str]
) -> None:
    for shard, slots in zip(room.shards, (3, 1, 2), strict=True):
        shard.serving = [make_processor(f"p{slots}", definitions=sorted(other), slots=slots)]
    assert room.view.shard_for(frozenset(definitions)) == NAMES[1]
    assert room.view.shard_for(frozenset({"elsewhere"})) == (NAMES[1] if other == {"*"} else NAMES[0])
