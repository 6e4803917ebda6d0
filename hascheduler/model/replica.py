"""A replica's own account of itself, written once a retry period and mirrored by all the others.

The write has a second use: the writer waits for it in its own stream. Its return measures the stream's lag, and its
absence shows that the mirror is stale, even where nothing else is ever written.
"""

from dataclasses import dataclass

from hascheduler.model.instants import WallMs


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """``id`` is unique per process start, ``name`` is for people. ``digest`` is the mirror's at ``position``."""

    id: str
    name: str
    beat: int
    started_at_ms: WallMs
    http_endpoint: str
    liveness_endpoint: str
    ready: bool
    stream_lag_ms: int | None
    position: str
    digest: str
    quarantined: int
