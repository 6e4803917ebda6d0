"""Shards that only some replicas follow, in trouble: who begins and who leaves is the real `Following`.

The story is that of `tests.cluster_simulation.shards`, told of four replicas, of which all follow the home and two each
other shard (``HASCHEDULER_SHARD_CANDIDATES=2``). As they die, stand still, are cut off and come back, others begin to
follow their shards and leave them again. All that is asked of shards there is asked here, and of those who follow:

* who leaves a shard has seen as many others follow it as it has candidates (`left_to_others`);
* who begins beside others has waited, as a restart of some seconds moves nothing (`begun_in_time`);
* a shard is without followers for a moment at most, while some replica could know (`followed_by_some`);
* in the end exactly its candidates follow each shard, and one of them leads it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from hascheduler.assembly_shards import Followed, followed
from hascheduler.election.preferences import candidates_of
from hascheduler.sharding.following import Following, StoredHolds
from hascheduler.sharding.shard import KnownShard, Shard
from hascheduler.shards.placement import LeaderPlacement
from tests.cluster_simulation.cluster import Life
from tests.cluster_simulation.loop import Process, SimClock, SimLoop
from tests.cluster_simulation.run import Result, Say, run_story
from tests.cluster_simulation.shards import REBALANCED_MS, SHARDS, TROUBLES, ShardBugs, ShardedCluster, ShardStory

REPLICAS = ("r1", "r2", "r3", "r4")
CANDIDATES = 2
FOLLOWING_TROUBLES = (*TROUBLES, "hold_stream")
ORDERS = candidates_of(SHARDS, REPLICAS, len(REPLICAS))
"""All replicas of each shard, its candidates first."""
_LOOK_S = 0.05
_KNOWN_S = 4.0
"""So long ago one may have followed a shard that another still counts on: a heartbeat that stops is missed for more
than a second, and one looks twice a second. Longer for one that was disturbed itself."""
_KNOWN_AT_MOST_S = 15.0
_SETTLED_S = 2.0
"""Undisturbed for so long, a replica is seen by all others that are."""
_WAITED_S = REBALANCED_MS / 1_000 - 0.5
_WITHOUT_S = 6.0
"""A shard may be without followers for so long: those that followed are missed, and a candidate waits a second."""


@dataclass
class FollowingBugs(ShardBugs):
    """What a run has planted where replicas begin and leave shards."""

    following: Callable[[Following], None] = lambda following: None


def run_following(seed: int, only: Sequence[str] = (), bugs: FollowingBugs | None = None) -> Result:
    """As `tests.cluster_simulation.run.run_seed`."""

    def tell(loop: SimLoop, result: Result, say: Say) -> Coroutine[Any, Any, None]:
        story = _FollowingStory(loop, Random(f"{seed} following"), result, say, bugs or FollowingBugs())
        return story.tell(tuple(only) or FOLLOWING_TROUBLES)

    return run_story(seed, tell)


class _Followers:
    """One process, as `hascheduler.assembly.serve` puts it together: the home and what it follows of the others."""

    def __init__(self, here: Followed, *beside: Any) -> None:
        self.shards: Sequence[Shard] = here.shards
        self._here = here
        self._beside = beside

    async def run(self) -> None:
        following = self._here.following
        assert following is not None
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(each.run()) for each in self._beside]
            async with asyncio.TaskGroup() as serving:
                for replica in self._here.for_ever:
                    serving.create_task(replica.run())
                serving.create_task(following.run(lambda replica: replica.run()))
            for task in beside:
                task.cancel()

    def stop(self) -> None:
        self._here.stop()

    def is_out_of_touch(self) -> bool:
        return any(replica.is_out_of_touch() for replica in self._replicas())

    def leads(self) -> int:
        return sum(replica._leader.leads() for replica in self._replicas())

    def leads_shard(self, index: int) -> bool:
        """And counts as a follower of it."""
        return self.follows(index) and self.shards[index].view.leading

    def follows(self, index: int) -> bool:
        return self.shards[index].is_followed

    @property
    def _leader(self) -> "_Followers":
        """As a life asks who leads."""
        return self

    def _replicas(self) -> Iterator[Any]:
        return (shard.replica for shard in self.shards if shard.replica is not None)


class FollowingCluster(ShardedCluster):
    """Each shard but the first has so many ``candidates`` among the replicas. ``watch`` is told who begins with a shard
    and who leaves one, as it happens."""

    candidates = CANDIDATES
    watch: "_Watch | None" = None

    def _replica(self, host: str, id: str, process: Process) -> Life:
        if len(self._shards) == 1:
            return super()._replica(host, id, process)
        clock = SimClock(self._loop, process)
        settings: Any = SimpleNamespace(
            shard_names=[shard.name for shard in self._shards],
            shard_candidates=self.candidates,
            rebalance_after_ms=REBALANCED_MS,
            replica_id=host,
        )
        sources = []

        def make(index: int, _: object) -> Any:
            made = self._replica_of(index, host, id, process)
            sources.append(made.source)
            return made.actor

        here = followed(settings, id, clock, _Speaking(), make)  # type: ignore[arg-type]  # it is asked nothing else
        shards, reports, following = here.shards, here.reports, here.following
        assert reports is not None
        assert following is not None
        known = [KnownShard(index, shard, reports) for index, shard in enumerate(shards)]
        mover = self._mover(id, host, clock, known)
        placement = LeaderPlacement(
            [shard.shard for shard in shards],
            lambda: shards,
            name=host,
            clock=clock,
            after_ms=REBALANCED_MS,
            candidates=self.candidates,
        )
        actor = _Followers(here, mover, placement, StoredHolds(shards, self._holds(host)))
        life = Life(host, id, process, actor, sources[0])
        if isinstance(self._planted, FollowingBugs):
            self._planted.following(following)
        if self.watch is not None:
            for shard in shards[1:]:
                _told(shard, life, self.watch)
        return life


class _Speaking:
    def silence_while(self, silenced: Callable[[], bool]) -> None: ...


def _told(shard: Shard, life: Life, watch: "_Watch") -> None:
    begin, leave = shard.begin, shard.leave

    def begin_told() -> Any:
        watch.begins(life, shard.shard)
        return begin()

    def leave_told() -> None:
        watch.leaves(life, shard.shard)
        leave()

    shard.begin, shard.leave = begin_told, leave_told  # type: ignore[method-assign]


@dataclass
class _Watch:
    """Owner of what was seen of who follows what. ``lives`` are the processes of replicas that are up, and
    ``is_disturbed`` says whether something is wrong with one, so that it may not know what others do."""

    loop: SimLoop
    lives: Callable[[], Sequence[Life]]
    is_disturbed: Callable[[Life], bool]
    say: Say
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    begun: int = 0
    left: int = 0
    _followed_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """When a host that has not left a shard was last seen to follow it."""
    _disturbed_s: dict[str, float] = field(default_factory=dict)
    """When something was last wrong with a process."""
    _ready_since_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when a host that follows a shard has been ready there."""
    _settled: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """Which hosts were undisturbed for a while, lately: when."""
    _some_s: dict[str, float] = field(default_factory=dict)
    """When a shard last had a follower, or nobody could know that it has none."""

    async def run(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_S)

    def begins(self, life: Life, shard: str) -> None:
        now_s = self.loop.now_s
        self.begun += 1
        self.say(f"{life.id} begins to follow {shard}")
        before = ORDERS[shard][: ORDERS[shard].index(life.host)]
        self._look()
        counted_on = self._settled[-1][1].intersection(
            host for (host, of), since_s in self._ready_since_s.items() if of == shard and now_s - since_s > _SETTLED_S
        )
        if self._undisturbed_for_s(life) < _KNOWN_S or not counted_on:
            return  # it may not know, or nobody else is there: then it waits less
        for at_s, hosts in self._settled:
            if now_s - _WAITED_S <= at_s and len(hosts.intersection(before)) >= CANDIDATES:
                self.wrong["begun_in_time"].append(
                    f"{life.id} begins to follow {shard} at {now_s:.3f} s; {sorted(hosts)} were well at {at_s:.3f} s"
                )
                return

    def leaves(self, life: Life, shard: str) -> None:
        now_s = self.loop.now_s
        self.left += 1
        self.say(f"{life.id} leaves {shard}")
        known_s = _KNOWN_S if self._undisturbed_for_s(life) >= _KNOWN_S else _KNOWN_AT_MOST_S
        others = self._others(life, shard, known_s)
        if len(others) < CANDIDATES:
            self.wrong["left_to_others"].append(
                f"{life.id} leaves {shard} at {now_s:.3f} s, to {', '.join(others) or 'nobody'}"
            )
        self._followed_s.pop((life.host, shard), None)  # it has said so: nobody counts on it

    def _others(self, life: Life, shard: str, within_s: float) -> list[str]:
        """The hosts that followed the shard so lately."""
        self._look()
        since_s = self.loop.now_s - within_s
        return [
            host
            for host in REPLICAS
            if host != life.host and self._followed_s.get((host, shard), since_s - 1) >= since_s
        ]

    def _undisturbed_for_s(self, life: Life) -> float:
        return self.loop.now_s - self._disturbed_s.get(life.id, self.loop.now_s)

    def _look(self) -> None:
        now_s, some, lives = self.loop.now_s, set[str](), self.lives()
        for life in lives:
            if self.is_disturbed(life):
                self._disturbed_s[life.id] = now_s
            for shard in life.actor.shards[1:]:
                place = life.host, shard.shard
                is_there = shard.replica is not None and not life.process.is_paused
                if is_there:
                    some.add(shard.shard)
                if is_there and shard.is_followed:
                    self._followed_s[place] = now_s
                if is_there and shard.is_followed and shard.view.ready:
                    self._ready_since_s.setdefault(place, now_s)
                else:
                    self._ready_since_s.pop(place, None)
        well = {life.host: self._undisturbed_for_s(life) for life in lives if life.id in self._disturbed_s}
        settled = frozenset(host for host, for_s in well.items() if for_s >= _SETTLED_S)
        self._settled = [each for each in self._settled if now_s - each[0] < _KNOWN_S]
        self._settled.append((now_s, settled))
        for shard in SHARDS[1:]:
            if shard in some or max(well.values(), default=0) < _WITHOUT_S:
                self._some_s[shard] = now_s
            elif now_s - self._some_s.get(shard, now_s) > _WITHOUT_S:
                self.wrong["followed_by_some"].append(f"nobody follows {shard} at {now_s:.3f} s")
                self._some_s[shard] = now_s


class _FollowingStory(ShardStory):
    hosts = (*REPLICAS, "p1", "p2", "p3")

    def _cluster_with(self, bugs: ShardBugs) -> ShardedCluster:
        cluster = FollowingCluster(
            self._loop, self._network, self._shards, self._broker, self._handlers, self._say, bugs
        )
        self._watch = cluster.watch = _Watch(self._loop, lambda: self._cluster.up("r"), self._is_disturbed, self._say)
        return cluster

    def _is_disturbed(self, life: Life) -> bool:
        home = self._shards[0].server
        return (
            life.process.is_paused
            or life.is_starved
            or life.process.rate != 1
            or self._network.is_lossy
            or not home.is_up
            or home.lag_s > 0.05
            or not self._network.both_ways("db", life.host)
            or life.source is None
            or not life.source.flowing.is_set()
            or not life.actor.shards[0].view.ready
            or life.actor.shards[0].view.stopping
        )

    async def tell(self, only: tuple[str, ...]) -> None:
        watching = self._loop.create_task(self._watch.run())
        await super().tell(only)
        watching.cancel()
        self._result.violations.update(self._watch.wrong)
        self._result.begun, self._result.left = self._watch.begun, self._watch.left

    def _what_is_not_well(self) -> str:
        trouble = super()._what_is_not_well()
        if trouble:
            return trouble
        for index, name in enumerate(SHARDS):
            hosts = sorted(life.host for life in self._cluster.up("r") if life.actor.follows(index))
            wanted = sorted(ORDERS[name][:CANDIDATES] if index else REPLICAS)
            if hosts != wanted:
                return f"{hosts} follow {name}, and {wanted} should"
        return ""
