"""Shards that only some replicas host, in trouble: who begins and who leaves is the real `Hosting`.

The story is that of `tests.cluster_simulation.shards`, told of four replicas, of which all host the home and two each
other shard (``HASCHEDULER_SHARD_CANDIDATES=2``). As they die, stand still, are cut off and come back, others begin to
host their shards and leave them again. All that is asked of shards there is asked here, and of those who host:

* who leaves a shard has seen as many others host it as it has candidates (`left_to_others`);
* who begins beside others has waited, as a restart of some seconds moves nothing (`begun_in_time`);
* a shard is without hosts for a moment at most, while some replica could know (`hosted_by_some`);
* in the end exactly its candidates host each shard, and one of them leads it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hascheduler.election.preferences import candidates_of
from hascheduler.shards.hosting import HostedShard
from tests.cluster_simulation.cluster import Life
from tests.cluster_simulation.loop import SimLoop
from tests.cluster_simulation.run import Result, Say, run_story
from tests.cluster_simulation.shard_cast import REBALANCED_MS, ShardBugs
from tests.cluster_simulation.shards import SHARDS, TROUBLES, ShardStory

REPLICAS = ("r1", "r2", "r3", "r4")
CANDIDATES = 2
FOLLOWING_TROUBLES = (*TROUBLES, "hold_stream")
ORDERS = candidates_of(SHARDS, REPLICAS, len(REPLICAS))
"""All replicas of each shard, its candidates first."""
_LOOK_S = 0.05
_KNOWN_S = 4.0
"""So long ago one may have hosted a shard that another still counts on: a heartbeat that stops is missed for more than
a second, and one looks twice a second. Longer for one that was disturbed itself."""
_KNOWN_AT_MOST_S = 15.0
_SETTLED_S = 2.0
"""Undisturbed for so long, a replica is seen by all others that are."""
_WAITED_S = REBALANCED_MS / 1_000 - 0.5
_WITHOUT_S = 6.0
"""A shard may be without hosts for so long: those that hosted it are missed, and a candidate waits a second."""


def run_following(seed: int, only: Sequence[str] = (), bugs: ShardBugs | None = None) -> Result:
    """As `tests.cluster_simulation.run.run_seed`."""

    def tell(loop: SimLoop, result: Result, say: Say) -> Coroutine[Any, Any, None]:
        story = _HostingStory(loop, Random(f"{seed} following"), result, say, bugs or ShardBugs())
        return story.tell(tuple(only) or FOLLOWING_TROUBLES)

    return run_story(seed, tell)


@dataclass
class _Watch:
    """Owner of what was seen of who hosts what. ``lives`` are the processes of replicas that are up, and
    ``is_disturbed`` says whether something is wrong with one, so that it may not know what others do."""

    loop: SimLoop
    lives: Callable[[], Sequence[Life]]
    is_disturbed: Callable[[Life], bool]
    say: Say
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    begun: int = 0
    left: int = 0
    _hosted_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """When a replica that has not left a shard was last seen to host it."""
    _disturbed_s: dict[str, float] = field(default_factory=dict)
    """When something was last wrong with a process."""
    _ready_since_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when a replica that hosts a shard has been ready there."""
    _settled: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """Which replicas were undisturbed for a while, lately: when."""
    _some_s: dict[str, float] = field(default_factory=dict)
    """When a shard last had a host, or nobody could know that it has none."""

    async def run(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_S)

    def tells(self, life: Life) -> None:
        """Be told of what that process begins with and leaves, as it happens."""
        for shard in life.actor.hosting.shards[1:]:
            self._told(life, shard)

    def _told(self, life: Life, shard: HostedShard) -> None:
        begin, leave = shard.begin, shard.leave

        def begin_told() -> Any:
            self._begins(life, shard.name)
            return begin()

        def leave_told() -> None:
            if not shard._is_ending:
                self._leaves(life, shard.name)
            leave()

        shard.begin, shard.leave = begin_told, leave_told  # type: ignore[method-assign]

    def _begins(self, life: Life, shard: str) -> None:
        now_s = self.loop.now_s
        self.begun += 1
        self.say(f"{life.id} begins to host {shard}")
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
                    f"{life.id} begins to host {shard} at {now_s:.3f} s; {sorted(hosts)} were well at {at_s:.3f} s"
                )
                return

    def _leaves(self, life: Life, shard: str) -> None:
        self.left += 1
        self.say(f"{life.id} leaves {shard}")
        self._look()
        known_s = _KNOWN_S if self._undisturbed_for_s(life) >= _KNOWN_S else _KNOWN_AT_MOST_S
        since_s = self.loop.now_s - known_s
        hosts = [host for host in REPLICAS if self._hosted_s.get((host, shard), since_s - 1) >= since_s]
        others = [host for host in hosts if host != life.host]
        if len(others) < CANDIDATES:
            to = ", ".join(others) or "nobody"
            self.wrong["left_to_others"].append(f"{life.id} leaves {shard} at {self.loop.now_s:.3f} s, to {to}")
        self._hosted_s.pop((life.host, shard), None)  # nobody counts on it

    def _undisturbed_for_s(self, life: Life) -> float:
        return self.loop.now_s - self._disturbed_s.get(life.id, self.loop.now_s)

    def _look(self) -> None:
        now_s, some, lives = self.loop.now_s, set[str](), self.lives()
        for life in lives:
            if self.is_disturbed(life):
                self._disturbed_s[life.id] = now_s
            for shard in life.actor.hosting.shards[1:]:
                place = life.host, shard.name
                is_there = shard.replica is not None and not life.process.is_paused
                if is_there:
                    some.add(shard.name)
                if is_there and not shard._is_ending:
                    self._hosted_s[place] = now_s
                if is_there and not shard._is_ending and shard.replica.view.ready:
                    self._ready_since_s.setdefault(place, now_s)
                else:
                    self._ready_since_s.pop(place, None)
        well = {life.host: self._undisturbed_for_s(life) for life in lives if life.id in self._disturbed_s}
        settled = frozenset(host for host, for_s in well.items() if for_s >= _SETTLED_S)
        self._settled = [each for each in self._settled if now_s - each[0] < _KNOWN_S]
        self._settled.append((now_s, settled))
        for name in SHARDS[1:]:
            if name in some or max(well.values(), default=0) < _WITHOUT_S:
                self._some_s[name] = now_s
            elif now_s - self._some_s.get(name, now_s) > _WITHOUT_S:
                self.wrong["hosted_by_some"].append(f"nobody hosts {name} at {now_s:.3f} s")
                self._some_s[name] = now_s


class _HostingStory(ShardStory):
    hosts = (*REPLICAS, "p1", "p2", "p3")
    candidates = CANDIDATES

    def _is_disturbed(self, life: Life) -> bool:
        home, view = self._shards[0].server, life.actor.hosting.home.view
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
            or not view.ready
            or view.stopping
        )

    async def tell(self, only: tuple[str, ...]) -> None:
        watch = _Watch(self._loop, lambda: self._cluster.up("r"), self._is_disturbed, self._say)
        self._cluster.begun = watch.tells
        watching = self._loop.create_task(watch.run())
        await super().tell(only)
        watching.cancel()
        self._result.violations.update(watch.wrong)
        self._result.figures |= {"times a shard was begun with": watch.begun, "times left": watch.left}

    def _what_is_not_well(self) -> str:
        trouble = super()._what_is_not_well()
        if trouble:
            return trouble
        for index, name in enumerate(SHARDS):
            hosts = sorted(life.host for life in self._cluster.up("r") if life.actor.hosts(index))
            wanted = sorted(ORDERS[name][:CANDIDATES] if index else REPLICAS)
            if hosts != wanted:
                return f"{hosts} host {name}, and {wanted} should"
        return ""
