"""Which shards this replica follows, where each shard has a few candidates (`HASCHEDULER_SHARD_CANDIDATES`).

Twice a second it looks at the replicas that live in the home's mirror, and at who is a candidate of which shard by
their names (`hascheduler.election.preferences`). All replicas go by the same rule and nearly the same list, and none is
told by another::

    a candidate for a while ──► begin: stream, mirror, core, election ──► mirror complete: it answers and may lead
          ▲                                                                        │
          │ a candidate again                                                      ▼ none for a while, and all
          └───────────────────────────────────── it says that it leaves ◄──────────  candidates say they are ready
                                                           │
                                       its own heartbeat came back, and still all candidates are ready
                                                           ▼
                                       end: hands the lease over as on SIGTERM, and forgets the mirror

What keeps a shard from being without followers, whatever replicas see of each other:

* each counts itself among those that live, so the first in the order of a shard is a candidate in its own eyes;
* one that leaves has said so first, and has seen every heartbeat from before it said so: of two that leave at once, the
  later one sees that the other is not to be counted on, and stays;
* where it sees less (its home stream is silent), it leaves things as they are.

A replica that comes and goes costs little: who took over for it goes on following for `leave_after_ms` once it is back,
and at most `READING_MAX` snapshots are read here at once. None of this is safety: any follower may lead, by its
lease and its journal, and for a moment no replica may follow: then nothing is decided there, and nothing is lost.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from collections.abc import Collection as SomeOf
from typing import Any, Protocol

import structlog

from hascheduler.election.preferences import candidates_of
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.hold import Hold
from hascheduler.model.replica import ReplicaStatus, ShardReport
from hascheduler.model.routing import Routing
from hascheduler.ports import Clock
from hascheduler.sharding.reports import ShardReports, report_in
from hascheduler.sharding.shard import FollowingReplica, Shard

log = structlog.get_logger(__name__)

READING_MAX = 8
"""Snapshots that are read at once."""
ALONE_AFTER_MS = 1_000
"""For so long a candidate has been one before it begins to follow a shard that nobody else does, that is ready."""
_TURN_S = 0.5
_HOLDS_TURN_S, _HOLDS_BUSY_TURN_S = 1.0, 0.1
"""The second while slots move: nothing of these starts meanwhile."""
_HOLDS_LIMIT_S = 5.0


class HoldsOfShard(Protocol):
    """`hascheduler.ports.holds.HoldStore`, for reading."""

    async def all(self) -> Mapping[str, Hold]: ...


Run = Callable[[FollowingReplica], Coroutine[Any, Any, None]]
"""Runs a replica to its end, as the process runs that of the home."""


class Following:
    """Owner of since when this replica should follow a shard that it does not, and the other way round. ``shards`` are
    all, the home first; ``name`` and ``replica_id`` are this replica's, ``most`` is how many candidates a shard has.

    It begins as a candidate after ``begin_after_ms`` where others follow, and leaves after ``leave_after_ms``.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        reports: ShardReports,
        *,
        name: str,
        replica_id: str,
        most: int,
        clock: Clock,
        begin_after_ms: int,
        leave_after_ms: int,
    ) -> None:
        self._home, self._others = shards[0], shards[1:]
        self._names = [shard.shard for shard in shards]
        self._reports = reports
        self._name = name
        self._replica_id = replica_id
        self._most = most
        self._clock = clock
        self._begin_after_ms = begin_after_ms
        self._leave_after_ms = leave_after_ms
        self._wanted_since: dict[str, int] = {}
        self._unwanted_since: dict[str, int] = {}
        self._is_settled = False
        self._stopping = asyncio.Event()

    @property
    def unready_reason(self) -> str:
        """Why this replica should not be asked yet; "" once it has followed all that it should, and from then on."""
        return "" if self._is_settled else "it does not follow all shards yet that it should"

    def reports(self) -> Mapping[str, ShardReport]:
        """What this replica's heartbeat in the home tells."""
        told = {shard.shard: shard.report() for shard in self._others}
        return {shard: report for shard, report in told.items() if report is not None}

    def followers(self, shard: str) -> Sequence[str]:
        """The names of those that say they follow it."""
        return sorted({status.name for status, _ in self._reports.followers(shard)})

    async def run(self, run: Run) -> None:
        """Until `stop`, and until what is followed then has ended in good order."""
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while not self._stopping.is_set():
                for shard in self.turn():
                    running[shard.shard] = tasks.create_task(run(shard.begin()), name=shard.shard)
                    log.info("shard_followed", shard=shard.shard)
                self._clear(running)
                try:
                    async with asyncio.timeout(_TURN_S):
                        await self._stopping.wait()
                except TimeoutError:
                    pass
            for shard in self._others:
                if shard.replica is not None:
                    shard.replica.stop()

    def _clear(self, running: dict[str, asyncio.Task[None]]) -> None:
        for shard in self._others:
            task = running.get(shard.shard)
            if task is not None and task.done():
                del running[shard.shard]
                shard.gone()
                log.info("shard_left", shard=shard.shard)

    def stop(self) -> None:
        """Begin to end in good order: hand the leases over first."""
        self._stopping.set()

    def turn(self) -> Sequence[Shard]:
        """One look: leave what is to be left; the shards to begin with now."""
        if not self._home.view.ready:
            return ()
        now, live = self._clock.mono_ms(), self._reports.live()
        candidates = candidates_of(self._names, {*(status.name for status in live), self._name}, self._most)
        beginning: list[Shard] = []
        reading = sum(shard.replica is not None and not shard.is_followed for shard in self._others)
        for shard in self._others:
            if self._name in candidates[shard.shard]:
                self._unwanted_since.pop(shard.shard, None)
                shard.is_leaving = False
                is_due = shard.replica is None and self._may_begin(shard.shard, live, now)
                if is_due and reading + len(beginning) < READING_MAX:
                    beginning.append(shard)
            else:
                self._wanted_since.pop(shard.shard, None)
                if shard.replica is not None:
                    self._consider_leaving(shard, candidates[shard.shard], live, now)
        wanted = [shard for shard in self._others if self._name in candidates[shard.shard]]
        self._is_settled = self._is_settled or all(shard.is_followed for shard in wanted)
        return beginning

    def _may_begin(self, shard: str, live: Sequence[ReplicaStatus], now: int) -> bool:
        lasted_ms = now - self._wanted_since.setdefault(shard, now)
        is_followed = bool(self._counted_on(shard, live))
        return lasted_ms >= (self._begin_after_ms if is_followed else min(ALONE_AFTER_MS, self._begin_after_ms))

    def _consider_leaving(self, shard: Shard, candidates: SomeOf[str], live: Sequence[ReplicaStatus], now: int) -> None:
        if now - self._unwanted_since.setdefault(shard.shard, now) < self._leave_after_ms:
            return
        if not set(candidates) <= self._counted_on(shard.shard, live):
            shard.is_leaving = False
        elif not shard.is_leaving:
            shard.is_leaving = True
        elif self._has_said(shard.shard, live):
            shard.leave()

    def _counted_on(self, shard: str, live: Sequence[ReplicaStatus]) -> set[str]:
        """The names of the others that follow it, are ready there and stay."""
        told = [(status, report_in(status, shard)) for status in live if status.id != self._replica_id]
        return {status.name for status, report in told if report is not None and report.ready and not report.leaving}

    def _has_said(self, shard: str, live: Sequence[ReplicaStatus]) -> bool:
        """Whether this replica's own heartbeat came back in which it says that it leaves."""
        own = next((status for status in live if status.id == self._replica_id), None)
        report = None if own is None else report_in(own, shard)
        return report is not None and report.leaving


class StoredHolds:
    """Reads the holds of shards that are not followed here, while this replica leads the home: who moves slots looks at
    all shards. A shard that does not answer keeps what was read last."""

    def __init__(self, shards: Sequence[Shard], stores: Sequence[HoldsOfShard]) -> None:
        self._shards = shards
        self._stores = stores

    async def run(self) -> None:
        while True:
            await self.turn()
            routing: Routing | None = self._shards[0].nouns(Collection.ROUTING).get(ROUTING_ID)
            is_busy = routing is not None and bool(routing.moving)
            await asyncio.sleep(_HOLDS_BUSY_TURN_S if is_busy else _HOLDS_TURN_S)

    async def turn(self) -> None:
        leads = self._shards[0].view.leading
        for shard, store in zip(self._shards, self._stores, strict=True):
            if not leads or shard.is_followed:
                shard.keep_holds(None)
                continue
            try:
                async with asyncio.timeout(_HOLDS_LIMIT_S):
                    shard.keep_holds(await store.all())
            except (StoreUnavailable, TimeoutError) as error:
                log.debug("holds_unread", shard=shard.shard, error=str(error))
