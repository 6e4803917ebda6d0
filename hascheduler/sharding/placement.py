"""Spreads the leaders of the shards over the replicas. Each replica runs one; none has a word in who may lead.

Every second it works out who should lead which shard (`hascheduler.election.preferences`), from the replicas that live
and are ready in the home's mirror. For a shard that another should lead, this replica leaves the first try at a free
lease to those before it, but for the one that holds it: that is what has to end for the lease to be free. For a shard
that it leads and another should, it hands over in good order, as on SIGTERM, once it has led and the other has been
ready for a while (a replica that was just killed is taken for ready until its beats have been missed): one shard at a
time, with a pause after each, and so many in ten minutes that a replica that comes and goes costs little. Who waits for
a shard reads its stream as a leader does, so that nothing waits for its next look.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
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


class PlacedShard(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def shard(self) -> str: ...

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
    from here. ``name`` is this replica's; ``after_ms`` is how long both must have lasted, 0: nothing is handed over.
    ``candidates`` is how many replicas follow a shard besides the home; 0: all."""

    def __init__(
        self, shards: Sequence[PlacedShard], name: str, clock: Clock, after_ms: int, candidates: int = 0
    ) -> None:
        self._shards = shards
        self._candidates = candidates
        self._name = name
        self._clock = clock
        self._after_ms = after_ms
        self._ready_since: dict[tuple[str, str], int] = {}
        self._led_since: dict[str, int] = {}
        self._moved_at: deque[int] = deque(maxlen=_IN_SPAN_MAX)

    async def run(self) -> None:
        while True:
            await self.turn()
            await asyncio.sleep(_TURN_S)

    async def turn(self) -> None:
        """One look; at most one shard is handed over."""
        now = self._clock.mono_ms()
        live = [status for status in self._shards[0].live_replicas() if status.ready]
        name_of = {status.id: status.name for status in live}
        names = {*name_of.values(), self._name}
        orders = preferred_leaders([shard.shard for shard in self._shards], names, self._candidates)
        ripe = None
        for shard in self._shards:
            order, holder = orders[shard.shard], name_of.get(shard.lease_holder)
            if self._name not in order:
                order = (*order, self._name)  # it is about to leave, or others are about to hear of it
            rivals = [name for name in order if name == self._name or name != holder]
            shard.leave_first_try_ms(rivals.index(self._name) * RANK_DELAY_MS)
            shard.expect_lease(expected=bool(self._after_ms) and order[0] == self._name != holder)
            lasted_ms = min(self._led_for_ms(shard, now), self._ready_for_ms(shard, order[0], now))
            if ripe is None and order[0] != self._name and self._may_move(lasted_ms, now):
                ripe = shard
        if ripe is not None:
            self._moved_at.append(now)
            log.info("shard_handed_over", shard=ripe.shard, to=orders[ripe.shard][0])
            await ripe.hand_over()

    def _may_move(self, lasted_ms: int, now: int) -> bool:
        if not self._after_ms or lasted_ms < self._after_ms:
            return False
        if self._moved_at and now - self._moved_at[-1] < _PAUSE_MS:
            return False
        return len(self._moved_at) < _IN_SPAN_MAX or now - self._moved_at[0] >= _SPAN_MS

    def _led_for_ms(self, shard: PlacedShard, now: int) -> int:
        if not shard.view.leading:
            self._led_since.pop(shard.shard, None)
            return 0
        return now - self._led_since.setdefault(shard.shard, now)

    def _ready_for_ms(self, shard: PlacedShard, name: str, now: int) -> int:
        """For how long a replica of that name has been ready in this shard, as far as was seen here."""
        is_ready = any(status.ready and status.name == name for status in shard.live_replicas())
        for key in [key for key in self._ready_since if key[0] == shard.shard and (key[1] != name or not is_ready)]:
            del self._ready_since[key]
        return now - self._ready_since.setdefault((shard.shard, name), now) if is_ready else 0
