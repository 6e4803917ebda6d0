"""What this replica says of a shard that others follow: from their reports, or that they are to be asked.

It is second-hand and about a heartbeat old. What one job or one processor asks of it is answered by a replica that
follows the shard: `NotFollowedHere` says which shard. A wait for the end of a job needs none: the job is read again and
again, the less often the longer it takes.
"""

import asyncio
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from hascheduler.dispatch.explanation import Explanation
from hascheduler.errors import NotFollowedHere
from hascheduler.model.calendar import Calendar
from hascheduler.model.definition import Definition
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lane import Lane
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.processor import ProcessorRef, shard_in
from hascheduler.model.replica import LedShard
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.tenant import Tenant
from hascheduler.model.token import Token
from hascheduler.ports import Cluster, ClusterView, Gauges, LeaderLag, Recording, Waiter
from hascheduler.sharding.reports import ShardReports

_LOOK_FIRST_S, _LOOK_MOST_S = 0.1, 2.0
_GROWTH = 1.5
_NOTHING = LedShard(0, since_ms=0, journal_seq=0)  # type: ignore[arg-type]  # no instant: nobody leads


class DefinedInHome:
    """The part of `hascheduler.ports.ClusterView` about what people define: the ``home`` has it."""

    def __init__(self, home: ClusterView) -> None:
        self._home = home

    def tenant(self, name: str) -> Tenant | None:
        return self._home.tenant(name)

    def lanes(self) -> Mapping[str, Lane]:
        return self._home.lanes()

    def definitions(self) -> Mapping[str, Definition]:
        return self._home.definitions()

    def calendars(self) -> Mapping[str, Calendar]:
        return self._home.calendars()

    def token(self, digest: str) -> Token | None:
        return self._home.token(digest)


class DistantView(DefinedInHome):
    """`hascheduler.ports.ClusterView` of ``shard``, which this replica does not follow."""

    def __init__(self, shard: str, reports: ShardReports, home: ClusterView) -> None:
        super().__init__(home)
        self._shard = shard
        self._reports = reports
        self.holds_are_read = False
        """Who moves units over all shards has to know them; nobody else asks."""

    @property
    def led(self) -> LedShard:
        """What its leader told; nothing of anything where none does."""
        told = self._reports.led(self._shard)
        return _NOTHING if told is None else told[1]

    @property
    def slots(self) -> int:
        """Of the processors that live there."""
        return sum(self.led.slots.values())

    @property
    def processors_live(self) -> int:
        return self.led.processors.get("live", 0) + self.led.processors.get("draining", 0)

    # One job, one processor

    @contextmanager
    def job_end_waiter(self, job_id: str) -> Iterator[Waiter]:
        yield LookingWaiter()

    @contextmanager
    def dispatch_waiter(self, processor_id: str) -> Iterator[Waiter]:
        raise NotFollowedHere(self._shard)
        yield  # what a generator has

    def dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        return ()

    def processor(self, id: str) -> ProcessorRef | None:
        """`NotFollowedHere` for one of this shard."""
        if shard_in(id) == self._shard:
            raise NotFollowedHere(self._shard)
        return None

    def occupied(self, processor_id: str) -> int:
        """`NotFollowedHere` for one of this shard."""
        self.processor(processor_id)
        return 0

    def processors(self) -> Iterable[ProcessorRef]:
        return ()

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        return None

    def pending(self, tenant: str | None = None) -> int:
        """`NotFollowedHere` for one tenant."""
        if tenant is not None:
            raise NotFollowedHere(self._shard)
        return self.led.jobs.get("pending", 0)

    def dependencies(self) -> int:
        return self.led.dependencies

    def runnable(self) -> int:
        return self.led.runnable

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        """`NotFollowedHere` for one tenant, and for a definition that the report does not name."""
        led = self.led
        if tenant is not None:
            raise NotFollowedHere(self._shard)
        if definition is None:
            return led.jobs
        if definition not in led.definitions and "" in led.definitions:
            raise NotFollowedHere(self._shard)
        return led.definitions.get(definition, {})

    # The whole shard

    def unseen_shards(self, tenant: str | None = None) -> Sequence[str]:
        return (self._shard,)

    def schedules(self) -> Mapping[str, ScheduleRef]:
        return {}

    def schedules_on(self, calendar: str) -> list[str]:
        """That there are some; their names are not told."""
        return [f"(of shard {self._shard})"] if calendar in self.led.calendars else []

    def unschedulable(self) -> SomeOf[str]:
        return self.led.unschedulable

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        return None

    def record(self, for_ms: int) -> Recording | None:
        return None

    def cluster(self) -> Cluster:
        told = self._reports.led(self._shard)
        led, lease, journal = _NOTHING, None, None
        if told is not None:
            leader, led = told
            lease = LeaseRecord(
                self._shard, leader.id, led.term, 0, leader.liveness_endpoint, led.since_ms, led.since_ms, 0, 0
            )
            journal = JournalHead(self._shard, led.journal_seq, led.term, EntryKind.DECISIONS, leader.id, 0)
        counts = {"pending": 0, "dispatched": 0, "running": 0, **led.jobs}
        return Cluster(
            replica_id="",
            lease=lease,
            journal=journal,
            leading=False,
            ready=self.ready,
            replicas=(),
            processors=(),
            counts={**counts, "schedules": sum(led.schedules.values()), "definitions": 0},
            quarantine=(),
            quarantined=led.quarantined,
            stream_lag_ms=led.stream_lag_ms,
            position="",
            digest="",
        )

    def gauges(self) -> Gauges:
        led = self.led
        return Gauges(
            leading=False,
            ready=self.ready,
            term=led.term or None,
            stream_lag_ms=None,
            loop_age_ms=0,
            quarantined=led.quarantined,
            broker_accepting=True,
            jobs=led.jobs,
            jobs_of_definition={name: counts for name, counts in led.definitions.items() if name},
            jobs_of_lane={name: counts for name, counts in led.lanes.items() if name},
            jobs_of_tenant={},
            definitions=(),
            lanes=(),
            tenants=(),
            unschedulable=len(led.unschedulable),
            dependencies=led.dependencies,
            waited_ms={},
            wait_bound_ms=None,
            schedules=led.schedules,
            processors=led.processors,
            slots=led.slots,
            events_per_s=led.events_per_s,
        )

    @property
    def ready(self) -> bool:
        return not self.unready_reason

    @property
    def unready_reason(self) -> str:
        """Of the shard, as nothing is held here: why none of its followers can be counted on."""
        if self._home.leading and not self.holds_are_read:
            return "its holds have not been read yet"
        if any(report.ready and report.led for _, report in self._reports.followers(self._shard)):
            return ""
        return "no replica that leads it tells of it"

    @property
    def leader_lag(self) -> LeaderLag:
        return LeaderLag(self.led.lag_ms, self.led.least_lag_ms)

    @property
    def leading(self) -> bool:
        return False

    @property
    def stopping(self) -> bool:
        return False

    @property
    def alive(self) -> bool:
        return True


class LookingWaiter:
    """`hascheduler.ports.Waiter` without news of anything: it says at times that there may be some."""

    def __init__(self) -> None:
        self._next_s = _LOOK_FIRST_S

    async def wait(self) -> bool:
        await asyncio.sleep(self._next_s)
        self._next_s = min(self._next_s * _GROWTH, _LOOK_MOST_S)
        return True
