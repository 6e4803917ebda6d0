"""Puts the shards of one replica together, for `hascheduler.assembly`: which it follows, and who asks the others.

With `HASCHEDULER_SHARD_CANDIDATES` a replica follows the home and the shards that it is a candidate of
(`hascheduler.sharding.following`); without it, all of them from its start to its end.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakMethod

from hascheduler.daemon.leadership.liveness import LivenessServer, Silencing
from hascheduler.daemon.replica import Replica
from hascheduler.mongo.connection import Database
from hascheduler.mongo.holds import MongoHoldStore
from hascheduler.mongo.left_transactions import LeftTransactions
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.mongo.slots import MongoSlotStore
from hascheduler.ports import Clock
from hascheduler.settings import Settings
from hascheduler.sharding.following import Following, StoredHolds
from hascheduler.sharding.moves import SlotMover
from hascheduler.sharding.reports import ShardReports
from hascheduler.sharding.shard import KnownShard, Shard

_BEGIN_AFTER_MAX_MS = 5_000
_LEAVE_AFTER_MS = 30_000

Make = Callable[[int, Silencing], Replica]
"""Makes the replica of the shard of that index."""


@dataclass(frozen=True, slots=True)
class Followed:
    """All ``shards``, the home first. ``following`` and ``reports`` are None where all of them are followed."""

    shards: Sequence[Shard]
    reports: ShardReports | None = None
    following: Following | None = None

    @property
    def for_ever(self) -> Sequence[Replica]:
        """The replicas of the shards that are followed from the start to the end."""
        shards = self.shards if self.following is None else self.shards[:1]
        return [shard.replica for shard in shards if isinstance(shard.replica, Replica)]

    def stop(self) -> None:
        for replica in self.for_ever:
            replica.stop()
        if self.following is not None:
            self.following.stop()

    def answer_at(self, http_endpoint: str) -> None:
        """Have the heartbeats of all shards say where the API is."""

        def tell(replica: Replica | None) -> None:
            if replica is not None:
                replica.http_endpoint = http_endpoint

        for shard in self.shards:
            shard.when_followed(tell)


def followed(settings: Settings, replica_id: str, clock: Clock, liveness: LivenessServer, make: Make) -> Followed:
    names = settings.shard_names
    if not settings.shard_candidates or len(names) == 1:
        return Followed([_always(index, name, liveness, make) for index, name in enumerate(names)])
    home = _always(0, names[0], liveness, make)
    reports = ShardReports(home.live_replicas, clock.mono_ms)

    def at_times(index: int) -> Shard:
        silenced = _SilencedByLast(liveness)
        return Shard(names[index], lambda: make(index, silenced), reports, home)

    others = [at_times(index) for index in range(1, len(names))]
    shards = [home, *others]
    after_ms = settings.rebalance_after_ms or _LEAVE_AFTER_MS
    following = Following(
        shards,
        reports,
        name=settings.replica_id,
        replica_id=replica_id,
        most=settings.shard_candidates,
        clock=clock,
        begin_after_ms=min(after_ms, _BEGIN_AFTER_MAX_MS),
        leave_after_ms=after_ms,
    )
    assert isinstance(home.replica, Replica)
    home.replica.followed_shards = following.reports
    return Followed(shards, reports, following)


def _always(index: int, name: str, liveness: LivenessServer, make: Make) -> Shard:
    return Shard(name, lambda: make(index, liveness), None)


class _SilencedByLast:
    """`Silencing` for one shard: the replica that follows it last has a say, and none that has ended is kept."""

    def __init__(self, liveness: LivenessServer) -> None:
        self._last: WeakMethod[Callable[[], bool]] | None = None
        liveness.silence_while(self._is_silenced)

    def silence_while(self, silenced: Callable[[], bool]) -> None:
        self._last = WeakMethod(silenced)

    def _is_silenced(self) -> bool:
        silenced = None if self._last is None else self._last()
        return silenced is not None and silenced()


def start_keepers(
    tasks: asyncio.TaskGroup, settings: Settings, here: Followed, databases: Sequence[Database], clock: Clock
) -> list[asyncio.Task[None]]:
    """What goes on over several shards, in each replica: moves of slots."""
    shards, stores = here.shards, [MongoHoldStore(database) for database in databases]
    reports = here.reports
    mover = SlotMover(
        MongoRoutingStore(databases[0]),
        stores,
        shards if reports is None else [KnownShard(index, shard, reports) for index, shard in enumerate(shards)],
        MongoSlotStore(databases, settings.job_retention_ms),
        clock,
    )
    started = [
        tasks.create_task(mover.run(), name="slots"),
        tasks.create_task(LeftTransactions(databases, mover.is_moving, clock).run(), name="left-transactions"),
    ]
    if reports is not None:
        started.append(tasks.create_task(StoredHolds(shards, stores).run(), name="stored-holds"))
    return started
