"""Caps over all shards: which shard gets a unit, and that no unit is ever used twice on its way."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.documents.share import decode_share, decode_shared_cap
from hascheduler.model.share import (
    Grant,
    Share,
    SharedCap,
    definition_key,
    definition_of_key,
    rate_key,
    rate_of_key,
    tier_key,
    tier_of_key,
)
from hascheduler.sharding.shares import ShareKeeper, Use, adopted, first_cap, next_cap
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryCapStore, MemoryShareStore
from tests.tiers import examples
from tests.unit.sharding.deployment import HandClock

KEY = definition_key("log")


def cap_of(*targets: int, cap: int | None = None) -> SharedCap:
    grants = tuple(Grant(target, target, 1) for target in targets)
    return SharedCap(KEY, 1, sum(targets) if cap is None else cap, grants)


def busy(running: int, waiting: int = 100) -> Use:
    return Use(running, waiting)


def idle(running: int = 0) -> Use:
    return Use(running, 0)


def targets(cap: SharedCap) -> list[int]:
    return [grant.target for grant in cap.grants]


def settled(
    cap: SharedCap, *uses: Use, limit: int | None = None, least: int = 0, may_go_around: bool = True
) -> SharedCap:
    """Where it ends, with every release at once."""
    wanted = cap.cap if limit is None else limit
    for _ in range(50):
        released = [cap.rev] * len(cap.grants)
        after = next_cap(cap, wanted, uses, released, least=least, may_go_around=may_go_around)
        if after is cap:
            return cap
        cap = after
    raise AssertionError(f"it goes on for ever: {cap}")


def test_nothing_moves_where_nobody_is_short() -> None:
    cap = cap_of(2, 2, 2)
    for uses in ((idle(), idle(), idle()), (busy(1), idle(), idle()), (Use(2, 0), Use(2, 0), idle())):
        assert next_cap(cap, 6, uses, [0, 0, 0]) is cap


def test_what_is_not_used_goes_to_where_jobs_wait_in_three_steps() -> None:
    uses = (busy(2), idle(), idle(1))
    lowered = next_cap(cap_of(2, 2, 2), 6, uses, [0, 0, 0])
    assert lowered.grants == (Grant(2, 2, 1), Grant(2, 0, 2), Grant(2, 1, 2))
    assert [share.lowered for share in lowered.shares()] == [False, True, True]
    assert next_cap(lowered, 6, uses, [0, 1, 0]) is lowered, "of an earlier revision"
    freed = next_cap(lowered, 6, uses, [0, 2, 0])
    assert freed.grants == (Grant(4, 4, 3), Grant(0, 0, 2), Grant(2, 1, 2)), "what is free is granted in the same step"
    assert targets(next_cap(freed, 6, (busy(4), idle(), idle(1)), [0, 2, 2])) == [5, 0, 1]


def test_no_more_is_taken_than_is_needed() -> None:
    assert targets(settled(cap_of(2, 10, 10), Use(2, 3), idle(), idle())) == [5, 9, 8]


def test_where_all_is_used_the_shares_become_about_equal() -> None:
    cap = cap_of(12, 0, 0)
    for _ in range(40):
        uses = [busy(target) for target in targets(cap)]
        cap = next_cap(cap, 12, uses, [cap.rev] * 3, may_go_around=False)
    assert sorted(targets(cap)) == [4, 4, 4]


def test_a_single_unit_goes_around_when_it_may() -> None:
    cap = cap_of(0, 1, 0, 1)
    uses = (busy(0), busy(1), idle(), busy(1))
    assert next_cap(cap, 2, uses, [0] * 4, may_go_around=False) is cap
    assert targets(next_cap(cap, 2, uses, [0] * 4)) == [0, 0, 0, 1]
    assert targets(settled(cap_of(0, 1), busy(0), idle())) == [1, 0]


def test_a_cap_that_was_raised_goes_to_those_that_are_short_first_and_else_to_all() -> None:
    assert targets(settled(cap_of(2, 2, 2), busy(2), Use(2, 1), idle(), limit=12)) == [7, 3, 2]
    assert targets(settled(cap_of(2, 2, 2), idle(), idle(), idle(), limit=12)) == [4, 4, 4]


def test_a_cap_that_was_lowered_is_taken_from_the_largest_and_granted_to_nobody_before() -> None:
    lowered = next_cap(cap_of(8, 2, 2), 6, (busy(8), busy(2), idle()), [0, 0, 0])
    assert lowered.cap == 6
    assert lowered.grants == (Grant(8, 2, 2), Grant(2, 2, 1), Grant(2, 2, 1))
    assert lowered.free < 0
    assert next_cap(lowered, 6, (busy(8), busy(2), idle()), [0, 0, 0]) is lowered
    assert targets(next_cap(lowered, 6, (Use(2, 0), Use(2, 0), idle()), [2, 0, 0])) == [2, 2, 2]


def test_of_a_rate_each_shard_keeps_one_whatever_others_are_short_of() -> None:
    assert targets(settled(cap_of(2, 2, 2), busy(2), idle(), idle(), least=1)) == [4, 1, 1]
    assert targets(settled(cap_of(8, 2, 2), busy(8), idle(), idle(), limit=3, least=1)) == [1, 1, 1]
    cap = cap_of(4, 1, 1)
    assert next_cap(cap, 6, (busy(4), idle(), idle()), [0] * 3, least=1) is cap
    assert targets(settled(cap, busy(9), busy(9), busy(9), least=1)) == [2, 2, 2]
    assert next_cap(cap_of(1, 1), 2, (busy(1), busy(1)), [0] * 2, least=1).rev == 1, "no unit goes around"


def test_a_shard_without_any_of_a_rate_gets_one_before_all_others() -> None:
    assert targets(settled(cap_of(5, 1, 0), busy(9), idle(1), idle(), least=1)) == [4, 1, 1]
    assert targets(next_cap(cap_of(5, 1, 0), 7, (busy(5), busy(1), idle()), [0] * 3, least=1)) == [5, 1, 1]


def test_a_home_that_was_put_back_grants_what_shards_use_and_sets_every_share_anew() -> None:
    older = cap_of(2, 2, 2)
    later = adopted(older, [Share(KEY, 9, 6), Share(KEY, 8, 0), None])
    assert later.rev == 10
    assert later.grants == (Grant(6, 2, 10), Grant(2, 2, 10), Grant(2, 2, 10))
    assert later.free < 0, "nothing is granted before the first one has released what is too much"


def test_the_first_document_of_a_cap_is_even_but_for_what_runs() -> None:
    even = SharedCap.even(KEY, 10, 4)
    assert first_cap(even, [3, 3, 2, 0]) == even
    grown = first_cap(even, [10, 0, 0, 0])
    assert grown.grants == (Grant(10, 3, 1), Grant(0, 0, 1), Grant(0, 0, 1), Grant(0, 0, 1))
    assert first_cap(even, [5, 0, 2, 0]).grants == (Grant(5, 3, 1), Grant(2, 2, 1), Grant(2, 2, 1), Grant(1, 1, 1))
    assert first_cap(even, [13, 1, 0, 0]).free < 0, "a cap that was lowered"


@given(st.integers(1, 40), st.lists(st.integers(0, 12), min_size=1, max_size=6))
@settings(max_examples=examples(100))
def test_the_first_document_grants_no_more_than_the_cap_unless_more_runs(cap: int, running: list[int]) -> None:
    even = SharedCap.even(KEY, cap, len(running))
    first = first_cap(even, running)
    assert sum(grant.granted for grant in first.grants) <= max(cap, sum(running))
    for grant, used, share in zip(first.grants, running, even.grants, strict=True):
        if used > share.target:
            assert grant == Grant(used, share.target, 1)
        else:
            assert grant.granted == grant.target <= share.target


def test_keys_name_what_a_cap_is_on() -> None:
    assert (definition_of_key(definition_key("tier/3")), tier_of_key(definition_key("tier/3"))) == ("tier/3", None)
    assert (definition_of_key(tier_key(3)), tier_of_key(tier_key(3))) == (None, 3)
    assert (definition_of_key("all"), tier_of_key("all"), tier_of_key("tier/x")) == (None, None, None)
    assert (rate_of_key(rate_key("tier/3")), definition_of_key(rate_key("log")), tier_of_key(rate_key("log"))) == (
        "tier/3", None, None
    )  # fmt: skip
    assert rate_of_key(definition_key("rate/log")) is None


COUNTS = st.integers(0, 40)


@given(st.data(), st.integers(1, 6), st.integers(1, 60), st.integers(0, 1))
@settings(max_examples=examples(200))
def test_whatever_happens_what_is_granted_stays_within_the_cap(
    data: st.DataObject, shards: int, limit: int, least: int
) -> None:
    """Uses, releases and caps as they come; a shard uses at most what the last share that it saw allowed."""
    least_of_all = max(shards * least, 1)
    limit = max(limit, least_of_all)
    cap = SharedCap.even(KEY, limit, shards)
    in_use = [grant.granted for grant in cap.grants]
    seen, released = list(cap.grants), [0] * shards
    for _ in range(20):
        uses = [Use(min(data.draw(COUNTS), used), data.draw(COUNTS)) for used in in_use]
        limit = max(least_of_all, limit + data.draw(st.sampled_from([0, 0, 0, -7, 9])))
        before = cap
        cap = next_cap(before, limit, uses, released, least=least, may_go_around=data.draw(st.booleans()))
        assert all(grant.target >= least for grant in cap.grants)
        granted = sum(grant.granted for grant in cap.grants)
        assert granted <= max(limit, sum(grant.granted for grant in before.grants))
        assert all(grant.granted >= used for grant, used in zip(cap.grants, in_use, strict=True))
        for index in range(shards):
            if data.draw(st.booleans()):
                seen[index] = cap.grants[index]  # its share arrives
            in_use[index] = data.draw(st.integers(0, max(in_use[index], seen[index].target)))
            if in_use[index] <= seen[index].target and data.draw(st.booleans()):
                released[index] = max(released[index], seen[index].since)


# The keeper


@dataclass
class View:
    ready: bool = True
    leading: bool = False


@dataclass
class Shard:
    """What the keeper sees of a shard: its mirror is what its database has."""

    connection: MemoryConnection = field(default_factory=lambda: MemoryConnection(MemoryDatabase()))
    view: Any = field(default_factory=View)
    live: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    waits_for_more: Set[str] = frozenset()
    taken: Mapping[str, int] = field(default_factory=dict)

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        if collection is Collection.DEFINITIONS:
            return self.definitions
        stored = self.connection.database.documents(collection)
        return {one["_id"]: decode_share(one["_id"], one) for one in stored}

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]:
        return self.live

    def short_of(self) -> Set[str]:
        """Whatever waits waits for a cap, but for what ``waits_for_more``."""
        waiting = {name for name, of_state in self.live.items() if of_state["pending"]} - self.waits_for_more
        keys = {key_of(name) for name in waiting for key_of in (definition_key, rate_key)}
        return keys | {"all", tier_key(3)} if waiting else keys

    def tokens_taken(self) -> Mapping[str, int]:
        return self.taken

    def has(self, running: int, waiting: int, definition: str = "log") -> None:
        self.live = {**self.live, definition: {"running": running, "pending": waiting}}

    def share(self, key: str = KEY) -> Share | None:
        share: Share | None = self.nouns(Collection.SHARES).get(key)
        return share

    def release(self, key: str = KEY) -> None:
        share = self.connection.database.find(Collection.SHARES, key)
        assert share is not None
        self.connection.database.update(Collection.SHARES, share, {"released": share["rev"]})


class Deployment:
    def __init__(self, *definitions: Definition, cap: int | None = None, shards: int = 3) -> None:
        self.clock = HandClock()
        self.shards = [Shard() for _ in range(shards)]
        home = self.shards[0]
        home.view.leading = True
        home.definitions = {each.name: each for each in definitions}
        self.keeper = ShareKeeper(
            MemoryCapStore(home.connection),
            [MemoryShareStore(shard.connection) for shard in self.shards],
            self.shards,
            cap,
            self.clock,
        )

    async def turns(self, count: int = 1) -> None:
        for _ in range(count):
            self.clock.now += 500
            await self.keeper.turn()

    def caps(self) -> Mapping[str, SharedCap]:
        stored = self.shards[0].connection.database.documents(Collection.CAPS)
        return {one["_id"]: decode_shared_cap(one) for one in stored}

    def limits(self, key: str = KEY) -> Sequence[int | None]:
        shares = [shard.share(key) for shard in self.shards]
        return [None if share is None else share.limit for share in shares]


CAPPED = Definition("log", max_concurrency=6)


async def test_nothing_is_written_before_a_unit_has_to_move() -> None:
    deployment = Deployment(CAPPED)
    for shard in deployment.shards:
        shard.has(1, 0)
    await deployment.turns(5)
    assert deployment.caps() == {}
    assert deployment.limits() == [None, None, None]


async def test_units_move_to_where_jobs_wait_once_they_are_released() -> None:
    deployment = Deployment(CAPPED)
    one, two, three = deployment.shards
    one.has(2, 9)
    await deployment.turns(3)
    assert deployment.limits() == [2, 2, 2], "first what holds anyway is written down"
    await deployment.turns()
    assert deployment.limits() == [2, 0, 0]
    await deployment.turns(3)
    assert deployment.limits() == [2, 0, 0], "nothing is released yet"
    two.release()
    await deployment.turns()
    assert deployment.limits() == [4, 0, 0]
    one.has(4, 7)
    three.release()
    await deployment.turns()
    assert deployment.limits() == [6, 0, 0]


async def test_caps_of_tiers_and_of_all_jobs_move_too() -> None:
    deployment = Deployment(Definition("log", tier=3), Definition("mail", tier=3), cap=3)
    one, two, three = deployment.shards
    one.has(0, 5)
    one.has(1, 0, "mail")
    for _ in range(8):
        await deployment.turns()
        for shard in (two, three):
            for key in (tier_key(3), "all"):
                if shard.share(key) is not None:
                    shard.release(key)
    for key in (tier_key(3), "all"):
        assert deployment.limits(key) == [3, 0, 0]


async def test_a_shard_whose_jobs_wait_for_something_else_too_gets_no_unit_and_gives_its_own() -> None:
    deployment = Deployment(CAPPED)
    one, two, three = deployment.shards
    one.has(2, 9)
    two.has(0, 9)
    two.waits_for_more = {"log"}  # no processor is there
    three.has(2, 0)
    for _ in range(12):
        await deployment.turns()
        for shard in (one, two, three):
            if shard.share() is not None:
                shard.release()
    assert deployment.limits() == [4, 0, 2]
    one.has(4, 9)
    await deployment.turns(4)
    assert deployment.limits() == [4, 0, 2]


async def test_a_unit_that_came_lately_is_left_while_jobs_wait_as_they_may_need_another_one_too() -> None:
    deployment = Deployment(Definition("log", max_concurrency=1))
    home, one, two = deployment.shards
    one.has(0, 9)
    while deployment.limits()[1] != 1:
        await deployment.turns()
        if home.share() is not None:
            home.release()
    one.waits_for_more = {"log"}
    two.has(0, 9)
    await deployment.turns(5)
    assert deployment.limits()[1] == 1
    await deployment.turns(3)
    assert deployment.limits()[1] == 0


async def test_a_shard_that_does_not_answer_keeps_what_it_has_and_holds_up_no_other() -> None:
    deployment = Deployment(CAPPED)
    one, two, three = deployment.shards
    two.view.ready = False
    two.connection.cut()
    one.has(2, 9)
    for _ in range(8):
        await deployment.turns()
        if three.share() is not None:
            three.release()
    assert deployment.limits() == [4, None, 0]
    two.connection.mend()
    two.view.ready = True
    await deployment.turns()
    assert deployment.limits() == [4, 2, 0], "it gets what it has"


async def test_another_replica_goes_on_where_the_first_one_broke_off() -> None:
    deployment = Deployment(CAPPED)
    deployment.shards[0].has(2, 9)
    await deployment.turns(3)
    put, broken = deployment.keeper._stores[1].put, []

    async def breaks_off(share: Share) -> bool:
        broken.append(share)
        raise StoreUnavailable("away")

    deployment.keeper._stores[1].put = breaks_off  # type: ignore[method-assign]
    await deployment.turns()
    assert [share.limit for share in broken] == [0]
    assert deployment.limits() == [2, 2, 2]
    deployment.keeper._stores[1].put = put  # type: ignore[method-assign]
    await deployment.turns()
    assert deployment.limits() == [2, 0, 0]


async def test_who_does_not_lead_the_home_moves_nothing() -> None:
    deployment = Deployment(CAPPED)
    deployment.shards[0].has(2, 9)
    for view in (View(leading=False), View(ready=False, leading=True)):
        deployment.shards[0].view = view
        await deployment.turns(5)
        assert deployment.caps() == {}


async def test_a_cap_that_was_broken_by_hand_is_left_alone_and_the_others_move() -> None:
    deployment = Deployment(CAPPED, Definition("mail", max_concurrency=3))
    home = deployment.shards[0]
    home.connection.database.insert(Collection.CAPS, {"_id": KEY, "rev": "x"})
    home.has(2, 9)
    home.has(1, 9, "mail")
    await deployment.turns(4)
    assert deployment.limits() == [None, None, None]
    assert deployment.limits(definition_key("mail")) == [1, 0, 0]


async def test_what_one_shard_runs_of_the_only_one_until_now_is_not_granted_to_the_others() -> None:
    deployment = Deployment(CAPPED)
    one, two, _ = deployment.shards
    one.has(6, 0)
    await deployment.turns()
    assert deployment.limits() == [2, 0, 0]
    two.has(0, 4)
    await deployment.turns(5)
    assert deployment.limits() == [2, 0, 0], "all of it still runs"
    one.has(2, 0)
    one.release()
    await deployment.turns(4)
    assert deployment.limits() == [2, 4, 0]


async def test_a_home_that_was_put_back_to_an_earlier_state_does_not_exceed_its_cap() -> None:
    deployment = Deployment(CAPPED)
    one, two, three = deployment.shards
    one.has(2, 9)
    await deployment.turns(3)
    backup = list(one.connection.database.documents(Collection.CAPS))
    for _ in range(5):
        await deployment.turns()
        for shard in (two, three):
            shard.release()
    assert deployment.limits() == [6, 0, 0]
    one.connection.database.replace(Collection.CAPS, backup[0])
    one.has(6, 9)
    two.has(0, 9)
    await deployment.turns(4)
    assert deployment.limits() == [2, 2, 2]
    assert [share.lowered for share in map(Shard.share, deployment.shards) if share] == [True, False, False]


async def test_shards_that_came_later_begin_with_nothing() -> None:
    deployment = Deployment(CAPPED)
    home = deployment.shards[0]
    store = MemoryCapStore(home.connection)
    await store.create(SharedCap.even(KEY, 6, 2))
    deployment.shards[2].has(0, 4)
    for _ in range(8):
        await deployment.turns()
        for shard in deployment.shards:
            if shard.share() is not None:
                shard.release()
    limits = deployment.limits()
    assert limits[2] == 4
    assert sum(limit or 0 for limit in limits) == 6


async def test_of_two_keepers_one_moves_each_unit() -> None:
    deployment = Deployment(CAPPED)
    one, two, _ = deployment.shards
    one.has(2, 9)
    await deployment.turns(4)
    (cap,) = deployment.caps().values()
    store = MemoryCapStore(one.connection)
    stale = replace(cap, rev=cap.rev + 1)
    two.release()
    await deployment.turns()
    assert deployment.limits() == [4, 0, 0]
    assert not await store.replace(cap.rev, stale)


# Rates

PACED = Definition("log", rate_limit=RateLimit(12, 60_000))
RATE = rate_key("log")


async def test_what_is_not_taken_of_a_rate_goes_to_where_jobs_wait_for_the_next_token() -> None:
    deployment = Deployment(PACED)
    one, two, three = deployment.shards
    one.has(0, 9)
    one.taken = {"log": 1}  # its bucket is small: no token is left
    two.taken = {"log": 3}
    await deployment.turns(3)
    assert deployment.limits(RATE) == [4, 4, 4], "first what holds anyway is written down"
    await deployment.turns()
    assert deployment.limits(RATE) == [4, 3, 1], "one is left to each"
    for _ in range(4):
        for shard in (two, three):
            shard.release(RATE)
        await deployment.turns()
    assert deployment.limits(RATE) == [8, 3, 1]


async def test_a_rate_moves_by_itself_beside_the_cap_of_its_definition() -> None:
    deployment = Deployment(Definition("log", max_concurrency=6, rate_limit=RateLimit(9, 1_000)))
    one, two, three = deployment.shards
    one.has(1, 9)
    one.waits_for_more = {"log"}
    two.has(2, 9)
    two.taken = {"log": 3}
    for _ in range(8):
        await deployment.turns()
        for key in (KEY, RATE):
            for shard in (one, two, three):
                if shard.share(key) is not None:
                    shard.release(key)
    assert deployment.limits(RATE) == [1, 7, 1]
    assert deployment.limits() == [1, 5, 0]


async def test_a_rate_below_the_number_of_shards_is_left_as_it_is() -> None:
    deployment = Deployment(Definition("log", rate_limit=RateLimit(2, 1_000)))
    deployment.shards[0].has(0, 9)
    await deployment.turns(5)
    assert deployment.caps() == {}


async def test_of_a_rate_shards_that_came_later_get_one_at_once() -> None:
    deployment = Deployment(PACED)
    store = MemoryCapStore(deployment.shards[0].connection)
    await store.create(SharedCap(RATE, 1, 12, (Grant(11, 11, 1), Grant(1, 1, 1))))
    await deployment.turns(3)
    assert deployment.limits(RATE)[2] == 0, "nothing of it is free"
    for _ in range(3):
        deployment.shards[0].release(RATE)
        await deployment.turns()
    assert deployment.limits(RATE) == [10, 1, 1]
