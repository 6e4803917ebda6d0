"""What replicas tell of the shards that they follow, for those that do not follow them.

Each replica follows the home, so its heartbeat there reaches all others (`ReplicaStatus.followed`): nothing is read for
it. A report is as old as a heartbeat, so it is for people, for what may be off by a second, and for whom to ask; no
decision rests on it. A replica whose heartbeat names no shards follows all of them: it was started without
`HASCHEDULER_SHARD_CANDIDATES`, or is of an earlier release.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from heapq import nlargest
from typing import Any, Protocol

from hascheduler.model.collection import Collection
from hascheduler.model.hold import partition_key, partition_of_key
from hascheduler.model.replica import LANES_MAX, NAMES_MAX, LedShard, ReplicaStatus, ShardReport
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ClusterView

Told = tuple[ReplicaStatus, ShardReport]
LOOK_MS = 100


class ReportedShard(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def view(self) -> ClusterView: ...

    def nouns(self, collection: Collection) -> Mapping[str, Any]: ...

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]: ...

    def short_of(self) -> Set[str]: ...

    def kept_aside(self, slot: int) -> int: ...


class ShardReports:
    """Owner of the last look at the heartbeats, which serves for `LOOK_MS`: a request asks about many shards. ``live``
    gives the replicas that live, by the home's mirror; ``mono_ms`` the time: without it each look is new."""

    def __init__(self, live: Callable[[], Sequence[ReplicaStatus]], mono_ms: Callable[[], int] | None = None) -> None:
        self._live = live
        self._mono_ms = mono_ms
        self._looked_at_ms: int | None = None
        self._told: dict[str, list[Told]] = {}
        self._of_all: list[Told] = []

    def live(self) -> Sequence[ReplicaStatus]:
        """As they are now."""
        return self._live()

    def followers(self, shard: str) -> Sequence[Told]:
        self._look()
        return [*self._told.get(shard, ()), *self._of_all]

    def _look(self) -> None:
        now_ms = None if self._mono_ms is None else self._mono_ms()
        if now_ms is not None and self._looked_at_ms is not None and now_ms - self._looked_at_ms < LOOK_MS:
            return
        self._looked_at_ms = now_ms
        self._told, self._of_all = {}, []
        for status in self._live():
            if status.followed is None:
                self._of_all.append((status, ShardReport(ready=status.ready)))
            for shard, report in (status.followed or {}).items():
                self._told.setdefault(shard, []).append((status, report))

    def led(self, shard: str) -> tuple[ReplicaStatus, LedShard] | None:
        """What the leader tells; None: none does. Of two, the one of the later term."""
        found = [(status, report.led) for status, report in self.followers(shard) if report.led is not None]
        return max(found, key=lambda told: told[1].term, default=None)

    def addresses(self, shard: str, but: str) -> Sequence[str]:
        """Where the replicas that follow the shard and are ready answer, its leader first; not that of id ``but``."""
        told = [
            (status, report)
            for status, report in self.followers(shard)
            if report.ready and status.http_endpoint and status.id != but
        ]
        told.sort(key=lambda each: (each[1].led is None, each[1].leaving, each[0].id))
        return [status.http_endpoint for status, _ in told]


def report_in(status: ReplicaStatus, shard: str) -> ShardReport | None:
    if status.followed is None:
        return ShardReport(ready=status.ready)
    return status.followed.get(shard)


def report_of(shard: ReportedShard, *, leaving: bool = False) -> ShardReport:
    """What this replica tells of a shard that it follows."""
    view = shard.view
    if not view.leading:
        return ShardReport(view.ready, leaving)
    cluster, gauges, lag = view.cluster(), view.gauges(), view.leader_lag
    slots = {slot for key in shard.nouns(Collection.HOLDS) if (slot := partition_of_key(key)) is not None}
    aside = {partition_key(slot): count for slot in sorted(slots) if (count := shard.kept_aside(slot))}
    used = [name for name in sorted(view.calendars()) if view.schedules_on(name)]
    led = LedShard(
        term=gauges.term or 0,
        since_ms=WallMs(0) if cluster.lease is None else cluster.lease.acquired_at_ms,
        journal_seq=0 if cluster.journal is None else cluster.journal.seq,
        stream_lag_ms=cluster.stream_lag_ms,
        lag_ms=lag.now_ms,
        least_lag_ms=lag.least_ms,
        jobs=_present(gauges.jobs),
        runnable=view.runnable(),
        schedules=dict(gauges.schedules),
        processors=dict(gauges.processors),
        slots=dict(gauges.slots),
        definitions=_largest(shard.live_jobs(), NAMES_MAX),
        lanes=_largest(gauges.jobs_of_lane, LANES_MAX),
        dependencies=view.dependencies(),
        unschedulable=tuple(sorted(view.unschedulable())[:NAMES_MAX]),
        calendars=tuple(used[:NAMES_MAX]),
        short_of=tuple(sorted(shard.short_of())[:NAMES_MAX]),
        kept_aside=aside,
        quarantined=gauges.quarantined,
        events_per_s=_present(gauges.events_per_s),
    )
    return ShardReport(view.ready, leaving, led)


def _largest(table: Mapping[str, Mapping[str, int]], most: int) -> Mapping[str, Mapping[str, int]]:
    """Those with the most jobs, and the sum of the others under the name ""."""
    sizes = {name: sum(counts.values()) for name, counts in table.items()}
    names = nlargest(most, (name for name, size in sizes.items() if size), key=lambda name: (sizes[name], name))
    told = {name: _present(table[name]) for name in names}
    rest: dict[str, int] = {}
    for name in table.keys() - told.keys():
        for state, count in table[name].items():
            rest[state] = rest.get(state, 0) + count
    return told | ({"": _present(rest)} if any(rest.values()) else {})


def _present(counts: Mapping[str, int]) -> Mapping[str, int]:
    return {str(state): count for state, count in counts.items() if count}
