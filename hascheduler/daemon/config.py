"""What one replica is told at its start."""

from dataclasses import dataclass, field

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.model.instants import WallMs


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """``replica_id`` is unique per process start and is the candidate id; ``name`` is for people.

    ``liveness_endpoint`` is the ``host:port`` at which the others can watch this process.
    """

    shard: str
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
    dispatch: DispatchConfig = field(default_factory=DispatchConfig)

    @property
    def stale_after_ms(self) -> int:
        """A stream that has been silent for so long is stale: each replica writes once a retry period."""
        return 3 * self.retry_period_ms
