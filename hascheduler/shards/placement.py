"""Spreads the leaders of the shards over the replicas. Each process runs this; it never decides who may lead.

Every second it works out who should lead which shard (`hascheduler.election.preferences`), from the replicas that live
and are ready in the home's mirror:

* If another replica should lead a shard, this one leaves the first try at a free lease to those before it, except to
  the one that holds the lease: that one has to end before the lease is free.
* If this replica leads a shard that another should lead, it hands over in good order, as on SIGTERM, once it has led
  and the other has been ready for a while. (A replica that was just killed is taken for ready until its beats have been
  missed.) It hands over one shard at a time, with a pause after each, and so many in ten minutes that a replica that
  comes and goes costs little.
* A replica that waits for a shard reads its stream as a leader does, so that nothing waits for its next look.

It does nothing to a shard that this process does not host.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Protocol

import structlog

from hascheduler.election.preferences import preferred_leaders
from hascheduler.model.replica import ReplicaStatus
from hascheduler.ports import Clock, ClusterView

log = structlog.get_logger(__name__)

RANK_DELAY_MS = 50
"""Longer than a challenge takes, so that the next in rank comes too late where the one before it lives."""
_PAUSE_MS = 5_000
_SPAN_MS = 600_000
_IN_SPAN_MAX = 60
_TURN_S = 1.0


class PlacedReplica(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def scheduler(self) -> str: ...

    @property
    def view(self) -> ClusterView: ...

    @property
    def lease_holder(self) -> str: ...

    def live_replicas(self) -> Sequence[ReplicaStatus]: ...

    def leave_first_try_ms(self, delay_ms: int) -> None: ...

    def expect_lease(self, *, expected: bool) -> None: ...

    async def hand_over(self) -> None: ...


class LeaderPlacement:
    """Owner of since when each replica has been ready and each shard been led here, and of when shards were handed over
    from here.

    ``shards`` are the names of all, the home's first, and ``hosted`` returns the replicas of those that this process
    hosts now, that of the home first. ``name`` is this replica's. A shard is handed over after ``after_ms``; 0: never.
    ``candidates`` is how many replicas host a shard besides the home; 0: all do.
    """

    def __init__(
        self,
        shards: Sequence[str],
        hosted: Callable[[], Sequence[PlacedReplica]],
        *,
        name: str,
        clock: Clock,
        after_ms: int,
        candidates: int = 0,
    ) -> None:
        self._shards = shards
        self._hosted = hosted
        self._name = name
        self._clock = clock
        self._after_ms = after_ms
        self._candidates = candidates
        self._ready_since: dict[tuple[str, str], int] = {}
        self._led_since: dict[str, int] = {}
        self._moved_at: deque[int] = deque(maxlen=_IN_SPAN_MAX)

    async def run(self) -> None:
        while True:
            await self.turn()
            await asyncio.sleep(_TURN_S)

    async def turn(self) -> None:
        """Look once; hand over one shard at most."""
        now, hosted = self._clock.mono_ms(), self._hosted()
        live = [status for status in hosted[0].live_replicas() if status.ready]
        name_of = {status.id: status.name for status in live}
        orders = preferred_leaders(self._shards, {*name_of.values(), self._name}, self._candidates)
        self._forget_others({replica.scheduler for replica in hosted})
        ripe = None
        for replica in hosted:
            order, holder = orders[replica.scheduler], name_of.get(replica.lease_holder)
            if self._name not in order:
                order = (*order, self._name)  # it is about to leave, or others are about to hear of it
            rivals = [name for name in order if name == self._name or name != holder]
            replica.leave_first_try_ms(rivals.index(self._name) * RANK_DELAY_MS)
            replica.expect_lease(expected=bool(self._after_ms) and order[0] == self._name != holder)
            lasted_ms = min(self._led_for_ms(replica, now), self._ready_for_ms(replica, order[0], now))
            if ripe is None and order[0] != self._name and self._may_move(lasted_ms, now):
                ripe = replica
        if ripe is not None:
            self._moved_at.append(now)
            log.info("shard_handed_over", shard=ripe.scheduler, to=orders[ripe.scheduler][0])
            await ripe.hand_over()

    def _forget_others(self, hosted: Set[str]) -> None:
        """A shard that is hosted again begins anew."""
        self._led_since = {shard: since for shard, since in self._led_since.items() if shard in hosted}
        self._ready_since = {key: since for key, since in self._ready_since.items() if key[0] in hosted}

    def _may_move(self, lasted_ms: int, now: int) -> bool:
        if not self._after_ms or lasted_ms < self._after_ms:
            return False
        if self._moved_at and now - self._moved_at[-1] < _PAUSE_MS:
            return False
        return len(self._moved_at) < _IN_SPAN_MAX or now - self._moved_at[0] >= _SPAN_MS

    def _led_for_ms(self, replica: PlacedReplica, now: int) -> int:
        if not replica.view.leading:
            self._led_since.pop(replica.scheduler, None)
            return 0
        return now - self._led_since.setdefault(replica.scheduler, now)

    def _ready_for_ms(self, replica: PlacedReplica, name: str, now: int) -> int:
        """Return for how long a replica of that name has been ready in this shard, as far as was seen here."""
        shard, is_ready = replica.scheduler, any(each.ready and each.name == name for each in replica.live_replicas())
        for key in [key for key in self._ready_since if key[0] == shard and (key[1] != name or not is_ready)]:
            del self._ready_since[key]
        return now - self._ready_since.setdefault((shard, name), now) if is_ready else 0
