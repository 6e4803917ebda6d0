"""Spreads the leaders of the shards over the replicas. Each process runs this; it never decides who may lead.

Every second it works out who should lead which shard (`hascheduler.election.preferences`), from the replicas that are
ready in the home's mirror, and skips each shard that this process does not host:

* If another replica should lead a shard, this one leaves the first try at a free lease to those before it, except if it
  is the holder, which has to end before the lease is free.
* If this replica leads a shard that another should lead for a while, it hands over in good order, as on SIGTERM. (A
  killed replica counts as ready until its heartbeats have been missed.) It hands over one shard at a time, with a pause
  after each, and a limited number in ten minutes, so that a replica that flaps costs little.
* A replica that waits for a shard reads its stream as a leader does, so that nothing waits for its next poll.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import structlog

from hascheduler.daemon.replica import Replica
from hascheduler.election.preferences import preferred_leaders
from hascheduler.ports import Clock

log = structlog.get_logger(__name__)

RANK_DELAY_MS = 50
"""Longer than a challenge takes, so that the next in rank comes too late if the one before it lives."""
_PAUSE_MS = 5_000
_SPAN_MS = 600_000
_IN_SPAN_MAX = 60
_TURN_S = 1.0


@dataclass
class LeaderPlacement:
    """Owner of since when another replica should lead a shard that is led here, and of when shards were handed over.

    ``shards`` are the names of all, the home's first, and ``hosted`` returns the replicas of those that this process
    hosts now, the home's first. ``name`` is this replica's. A shard is handed over after ``after_ms``; never if 0.
    ``candidates`` is how many replicas host a shard besides the home; all do if 0.
    """

    shards: Sequence[str]
    hosted: Callable[[], Sequence[Replica]]
    _: KW_ONLY
    name: str
    clock: Clock
    after_ms: int
    candidates: int = 0

    def __post_init__(self) -> None:
        self._since: dict[tuple[str, str], int] = {}
        """Since when, by shard and name of the replica that should lead it and is ready there."""
        self._moved_at: deque[int] = deque(maxlen=_IN_SPAN_MAX)

    async def run(self) -> None:
        while True:
            await self.turn()
            await asyncio.sleep(_TURN_S)

    async def turn(self) -> None:
        """Check once; hand over one shard at most."""
        now, hosted = self.clock.mono_ms(), self.hosted()
        name_of = {status.id: status.name for status in hosted[0].live_replicas() if status.ready}
        orders = preferred_leaders(self.shards, {*name_of.values(), self.name}, self.candidates)
        before, self._since = self._since, {}
        ripe = None
        for replica in hosted:
            order, holder = orders[replica.scheduler], name_of.get(replica.lease_holder)
            if self.name not in order:
                order = (*order, self.name)  # it is about to leave, or others are about to see that
            rivals = [name for name in order if name == self.name or name != holder]
            replica.leader.leave_first_try_ms(rivals.index(self.name) * RANK_DELAY_MS)
            first = order[0]
            replica.feeder.expects_lease = bool(self.after_ms) and first == self.name != holder
            is_ready = any(each.ready and each.name == first for each in replica.live_replicas())
            if first != self.name and is_ready and replica.view.leading:
                since = self._since[replica.scheduler, first] = before.get((replica.scheduler, first), now)
                if ripe is None and now - since >= self.after_ms > 0:
                    ripe = replica
        if ripe is not None and self._may_move(now):
            self._moved_at.append(now)
            log.info("shard_handed_over", shard=ripe.scheduler, to=orders[ripe.scheduler][0])
            await ripe.leader.hand_over()

    def _may_move(self, now: int) -> bool:
        if self._moved_at and now - self._moved_at[-1] < _PAUSE_MS:
            return False
        return len(self._moved_at) < _IN_SPAN_MAX or now - self._moved_at[0] >= _SPAN_MS
