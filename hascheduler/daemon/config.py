"""The arguments of one replica: its settings (`ReplicaConfig`), and its side of the world (`ReplicaPorts`)."""

from dataclasses import dataclass, field

from hascheduler.daemon.leadership.liveness import (
    GreetsInTime,
    Silencing,
    WaitForDeath,
    greets_in_time,
    wait_for_death_by_connection,
)
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.election.elector import ElectionConfig
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    AccountStore,
    ChangeSource,
    ClaimStore,
    Clock,
    EventExchange,
    FailoverStore,
    JobStore,
    JobTraces,
    Journal,
    LeaseStore,
    ReplicaBoard,
    Transport,
)
from hascheduler.ports.invariant_scan import InvariantScan
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.tracing import NO_TRACING, Tracer


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """The settings of one replica. ``scheduler`` is the name of the lease, the journal and the accounts.

    ``replica_id`` is unique per process start and is the candidate id; ``name`` is for people. The others can watch
    this process at ``liveness_endpoint``, a ``host:port``. The leader checks the database's invariants every
    ``audit_interval_ms``, never if None. Others take over from a leader that is silent for ``standstill_after_ms``
    before its lease expires, never if 0. A busy leader waits at most ``batch_delay_max_ms``, so that its exchanges
    carry more.
    """

    scheduler: str
    replica_id: str
    name: str
    started_at_ms: WallMs
    liveness_endpoint: str
    lease_duration_ms: int
    renew_deadline_ms: int
    retry_period_ms: int
    heartbeat_timeout_ms: int
    journal_retention_ms: int
    clock_skew_max_ms: int = 5_000
    audit_interval_ms: int | None = None
    standstill_after_ms: int = 0
    batch_delay_max_ms: int = 20
    dispatch: DispatchConfig = field(default_factory=DispatchConfig)

    @property
    def election(self) -> ElectionConfig:
        return ElectionConfig(
            name=self.scheduler,
            candidate_id=self.replica_id,
            endpoint=self.liveness_endpoint,
            lease_duration_ms=self.lease_duration_ms,
            renew_deadline_ms=self.renew_deadline_ms,
            retry_period_ms=self.retry_period_ms,
        )

    @property
    def stale_after_ms(self) -> int:
        """Return how long a stream may be silent before it is stale: each replica writes once a retry period."""
        return 3 * self.retry_period_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPorts:
    """Everything of the world that a replica uses. Ports with a default are optional.

    ``liveness`` is bound already. This replica watches the processes of the leader and the processors by
    ``wait_for_death``, and asks a silent leader by ``greets_in_time``. With ``exchange`` the leader publishes the
    events of jobs on the broker. Without ``jobs`` failed jobs are not reported; without ``failovers`` changes of
    leadership are only logged; without ``scan`` nothing checks the invariants; without ``traces`` messages carry no
    trace. ``leases_streamed``: the change stream shows every write to ``leases``.
    """

    source: ChangeSource
    leases: LeaseStore
    journal: Journal
    claims: ClaimStore
    accounts: AccountStore
    board: ReplicaBoard
    transport: Transport
    liveness: Silencing
    clock: Clock
    leases_streamed: bool = True
    fallback: Transport | None = None
    wait_for_death: WaitForDeath = wait_for_death_by_connection
    greets_in_time: GreetsInTime = greets_in_time
    exchange: EventExchange | None = None
    jobs: JobStore | None = None
    failovers: FailoverStore | None = None
    scan: InvariantScan | None = None
    tracer: Tracer = NO_TRACING
    traces: JobTraces | None = None
    metrics: ReplicaMetrics = field(default_factory=ReplicaMetrics)
