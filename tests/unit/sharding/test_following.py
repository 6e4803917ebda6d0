"""Which shards a replica follows: few of many, none without followers, and little that comes and goes with replicas."""

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hascheduler.election.preferences import candidates_of
from hascheduler.model.collection import Collection
from hascheduler.model.replica import LedShard, ReplicaStatus, ShardReport
from hascheduler.model.values.instants import WallMs
from hascheduler.sharding.following import READING_MAX, Following, StoredHolds
from hascheduler.sharding.reports import LOOK_MS, ShardReports
from hascheduler.sharding.shard import KnownShard, Shard
from tests.unit.sharding.deployment import HandClock

NAMES = ("a", "b", "c", "d")
SHARDS = ["default", *(f"{index:04d}" for index in range(1, 9))]
BEGIN_MS, LEAVE_MS = 5_000, 30_000


class Replica:
    """One that follows a shard, as far as these tests go."""

    def __init__(self, shard: str, *, ready: bool = True) -> None:
        self.shard = shard
        self.events: Any = "its events"
        self.view: Any = SimpleNamespace(ready=ready, leading=False, unseen_shards=lambda tenant=None: ())
        self.stopped = asyncio.Event()
        self.lease_holder = ""
        self.live: Sequence[ReplicaStatus] = ()

    async def run(self) -> None:
        await self.stopped.wait()

    def stop(self) -> None:
        self.stopped.set()

    def forget(self) -> None:
        self.view = None

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        return {"its": collection}

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]:
        return {"mine": {"pending": 1}}

    def short_of(self) -> frozenset[str]:
        return frozenset({"mine"})

    def kept_aside(self, slot: int) -> int:
        return 7

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        return self.live

    def hurry(self) -> None: ...

    def leave_first_try_ms(self, delay_ms: int) -> None: ...

    def expect_lease(self, *, expected: bool) -> None: ...

    async def hand_over(self) -> None: ...


def status(name: str, followed: Mapping[str, ShardReport] | None = None) -> ReplicaStatus:
    known = None if followed is None else len(SHARDS)
    return ReplicaStatus(
        f"{name}.1", name, 1, WallMs(0), f"{name}:80", "", True, 1, "", "", 0, followed=followed, shards=known
    )


class Member:
    """One replica of several, which see each other's heartbeats as they were told last."""

    def __init__(self, name: str, clock: HandClock, most: int = 2, *, ready: bool = True) -> None:
        self.live: list[ReplicaStatus] = []
        self.clock = clock
        self.ready = ready
        self.reports = ShardReports(lambda: self.live)
        home = Shard(SHARDS[0], lambda: Replica(SHARDS[0]), None)
        self.shards = [home, *(self._other(shard, home) for shard in SHARDS[1:])]
        self.following = Following(
            self.shards,
            self.reports,
            name=name,
            replica_id=f"{name}.1",
            most=most,
            clock=clock,
            begin_after_ms=BEGIN_MS,
            leave_after_ms=LEAVE_MS,
        )
        self.name = name

    def _other(self, shard: str, home: Shard) -> Shard:
        return Shard(shard, lambda: Replica(shard, ready=self.ready), self.reports, home)

    def turn(self) -> int:
        """How many shards it begins with."""
        begun = self.following.turn()
        for shard in begun:
            shard.begin()
        for shard in self.shards[1:]:
            if shard.replica is not None and shard.replica.stopped.is_set():  # type: ignore[attr-defined]
                shard.gone()
        return len(begun)

    @property
    def followed(self) -> set[str]:
        return {shard.shard for shard in self.shards[1:] if shard.is_followed}

    def told(self) -> ReplicaStatus:
        return status(self.name, self.following.reports())


class Members:
    def __init__(self, *names: str, most: int = 2) -> None:
        self.clock = HandClock(0)
        self.all = {name: Member(name, self.clock, most) for name in names}

    def add(self, name: str) -> None:
        self.all[name] = Member(name, self.clock)

    def pass_time(self, ms: int) -> int:
        """In turns of half a second, each after the heartbeats of all; how many followings began."""
        begun = 0
        for _ in range(ms // 500):
            self.clock.now += 500
            told = [member.told() for member in self.all.values()]
            for member in self.all.values():
                member.live = told
            begun += sum(member.turn() for member in self.all.values())
            self.least = min(self.least, self.fewest)
        return begun

    least = 99

    @property
    def fewest(self) -> int:
        counts = [sum(shard in member.followed for member in self.all.values()) for shard in SHARDS[1:]]
        return min(counts)

    def assert_as_the_names_say(self, most: int = 2) -> None:
        candidates = candidates_of(SHARDS, self.all, most)
        for name, member in self.all.items():
            assert member.followed == {shard for shard in SHARDS[1:] if name in candidates[shard]}, name


def test_each_shard_is_followed_by_its_candidates_once_all_see_each_other() -> None:
    members = Members(*NAMES)
    members.pass_time(10_000)
    members.assert_as_the_names_say()
    assert all(not member.following.unready_reason for member in members.all.values())


def test_a_shard_is_never_left_to_nobody_as_replicas_come_and_go() -> None:
    members = Members(*NAMES)
    members.pass_time(10_000)
    members.least = 99
    for change in ("e", "f", "-a", "-b", "a", "-e", "b"):
        if change.startswith("-"):
            del members.all[change[1:]]
        else:
            members.add(change)
        members.pass_time(60_000)
        members.assert_as_the_names_say()
    assert members.least >= 1


def test_one_that_comes_back_soon_moves_nothing() -> None:
    members = Members(*NAMES)
    members.pass_time(10_000)
    lost = members.all.pop("a")
    assert members.pass_time(BEGIN_MS - 1_000) == 0
    members.all["a"] = lost
    assert members.pass_time(LEAVE_MS) == 0


def test_one_that_flaps_costs_one_snapshot_a_shard_of_it() -> None:
    members = Members(*NAMES)
    members.pass_time(10_000)
    lost = members.all["a"]
    begun = 0
    for _ in range(5):
        members.all.pop("a", None)
        begun += members.pass_time(BEGIN_MS + 2_000)
        members.all["a"] = lost
        begun += members.pass_time(LEAVE_MS - 10_000)
    assert 0 < begun <= len(lost.followed)


def test_with_fewer_replicas_than_candidates_all_follow_all() -> None:
    members = Members("a", "b", most=3)
    members.pass_time(10_000)
    assert all(member.followed == set(SHARDS[1:]) for member in members.all.values())


def test_two_that_would_leave_to_each_other_do_not_both_leave() -> None:
    """Both follow a shard of c and d, and c has gone silent for one of them alone."""
    clock = HandClock(0)
    candidates = candidates_of(SHARDS, NAMES, 2)
    shard = next(shard for shard in SHARDS[1:] if set(candidates[shard]) == {"c", "d"})
    members = {name: Member(name, clock) for name in ("a", "b")}
    for member in members.values():
        next(each for each in member.shards if each.shard == shard).begin()
    for _ in range(200):
        clock.now += 500
        told = {name: member.told() for name, member in members.items()}
        ready = {shard: ShardReport(ready=True)}
        # Only d is counted on by both; c is not there, so a and b are candidates in turn, by what each sees.
        for name, member in members.items():
            member.live = [*told.values(), status("d", ready), *([status("c", {})] if name == "a" else [])]
            member.turn()
        assert sum(shard in member.followed for member in members.values()) >= 1


def test_one_that_sees_nothing_leaves_all_as_it_is() -> None:
    members = Members(*NAMES)
    members.pass_time(10_000)
    one = members.all["a"]
    followed, one.live = one.followed, [one.told()]
    home: Any = one.shards[0].replica
    home.view.ready = False
    members.clock.now += 10 * LEAVE_MS
    assert one.turn() == 0
    assert one.followed == followed


def test_few_snapshots_are_read_at_once_and_it_is_ready_once_it_follows_all_that_it_should() -> None:
    clock = HandClock(0)
    alone = Member("a", clock, ready=False)
    alone.live = [alone.told()]
    for _ in range(20):
        clock.now += 500
        alone.turn()
        alone.live = [alone.told()]
    begun = [shard for shard in alone.shards[1:] if shard.replica is not None]
    assert len(begun) == min(READING_MAX, len(SHARDS) - 1)
    assert alone.following.unready_reason
    assert alone.followed == set(), "others are asked until the mirror is complete"
    for shard in begun:
        shard.replica.view.ready = True  # type: ignore[union-attr]
    alone.turn()
    assert not alone.following.unready_reason


async def test_what_runs_at_the_end_ends_in_good_order() -> None:
    clock = HandClock(0)
    member = Member("a", clock)
    member.live = [member.told()]
    ran: list[str] = []

    async def run(replica: Any) -> None:
        await replica.run()
        ran.append(replica.shard)

    running = asyncio.create_task(member.following.run(run))
    async with asyncio.timeout(10):
        while len(member.followed) < len(SHARDS) - 1:
            clock.now += BEGIN_MS
            await asyncio.sleep(0.05)
        member.following.stop()
        await running
    assert sorted(ran) == SHARDS[1:]


def test_whom_to_ask_is_who_leads_and_is_ready() -> None:
    led = LedShard(3, since_ms=WallMs(0), journal_seq=1)
    shard = SHARDS[1]
    live = [
        status("a", {}),
        status("b", {shard: ShardReport(ready=True, leaving=True)}),
        status("c", {shard: ShardReport(ready=True, led=led)}),
        status("d", {shard: ShardReport(ready=False)}),
        status("e"),
    ]
    reports = ShardReports(lambda: live)
    assert reports.addresses(shard, "x.1") == ["c:80", "e:80", "b:80"]
    assert reports.addresses(shard, "c.1") == ["e:80", "b:80"]
    told = reports.led(shard)
    assert told is not None
    assert told[1] == led
    later = replace(led, term=4)
    live.append(status("f", {shard: ShardReport(ready=True, led=later)}))
    told = reports.led(shard)
    assert told is not None
    assert told[0].name == "f"


def test_a_look_at_the_heartbeats_is_kept_for_a_moment() -> None:
    clock, live = HandClock(0), [status("b", {SHARDS[1]: ShardReport(ready=True)})]
    reports = ShardReports(lambda: live, clock.mono_ms)
    assert reports.addresses(SHARDS[1], "a.1") == ["b:80"]
    live.clear()
    assert reports.addresses(SHARDS[1], "a.1") == ["b:80"]
    clock.now += LOOK_MS
    assert reports.addresses(SHARDS[1], "a.1") == []


class Stored:
    def __init__(self, holds: Mapping[str, Any]) -> None:
        self.holds = holds

    async def all(self) -> Mapping[str, Any]:
        return self.holds


async def test_who_leads_the_home_reads_the_shares_of_what_it_does_not_follow() -> None:
    member = Member("a", HandClock(0))
    home: Any = member.shards[0].replica
    stored = StoredHolds(member.shards, [Stored({"k": index}) for index, _ in enumerate(SHARDS)])
    await stored.turn()
    assert member.shards[1].nouns(Collection.HOLDS) == {}
    home.view.leading = True
    led = LedShard(1, since_ms=WallMs(0), journal_seq=1)
    member.live = [status("b", {SHARDS[1]: ShardReport(ready=True, led=led)})]
    assert member.shards[1].view.unready_reason == "its holds have not been read yet"
    await stored.turn()
    assert member.shards[1].view.ready
    assert member.shards[1].nouns(Collection.HOLDS) == {"k": 1}
    assert member.shards[1].nouns(Collection.JOBS) == {}
    assert member.shards[0].nouns(Collection.HOLDS) == {"its": Collection.HOLDS}


def test_of_a_shard_that_others_follow_its_leader_tells() -> None:
    member = Member("a", HandClock(0))
    shard = member.shards[1]
    assert (shard.live_jobs(), shard.short_of(), shard.kept_aside(3)) == ({}, frozenset(), 0)
    led = LedShard(
        3,
        since_ms=WallMs(0),
        journal_seq=1,
        definitions={"log": {"running": 2}},
        short_of=("all",),
        kept_aside={"partition/03": 5},
    )
    member.live = [status("b", {shard.shard: ShardReport(ready=True, led=led)})]
    told: tuple[Any, Set[str], int] = (shard.live_jobs(), shard.short_of(), shard.kept_aside(3))
    assert told == ({"log": {"running": 2}}, {"all"}, 5)
    assert shard.view.ready
    assert shard.events is None


def test_a_slot_moves_where_all_know_the_shard() -> None:
    member = Member("a", HandClock(0))
    known = KnownShard(1, member.shards[1], member.reports)
    of_fewer = replace(status("b", {}), shards=1)
    member.live = [status("a", {}), of_fewer]
    assert [each.name for each in known.live_replicas()] == ["a"]
    assert [each.name for each in KnownShard(0, member.shards[0], member.reports).live_replicas()] == ["a", "b"]
