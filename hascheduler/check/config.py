"""The settings of the deployment that rules depend on, and how long each kind of motion may take."""

from dataclasses import dataclass

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """The settings must be those of the replicas. Graces come on top of them.

    ``motion_ms`` covers what a leader does at once and the difference of clocks; ``patience_ms`` what may take a
    failover, a restart or an outage of the broker; ``expiry_ms`` how late the database may delete what has expired.
    """

    job_retention_ms: int
    journal_retention_ms: int
    heartbeat_timeout_ms: int
    start_timeout_ms: int
    motion_ms: int = MINUTE_MS
    patience_ms: int = 10 * MINUTE_MS
    expiry_ms: int = 60 * MINUTE_MS
