"""A replica's heartbeat: its state, written once a retry period and mirrored by all other replicas.

The write has a second use: the writer waits for it in its own stream. Its return measures the stream's lag, and its
absence shows that the mirror is stale, even if nothing else is ever written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hascheduler.model.schema_version import UNSTATED_VERSION
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class LastCheck:
    """When this replica last checked the invariants as the leader, and the number of findings of each kind."""

    at_ms: WallMs
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """``id`` is unique per process start, ``name`` is for people. ``digest`` is the mirror's at ``position``.

    ``version`` is the software's (None before 0.2.0), ``reads`` the newest form of documents that it reads. ``marks``
    are its digests at points of the stream that all replicas pass, the newest last. ``decision_lag_ms`` is how long its
    decisions take to be carried out (None: it makes none, or is of 0.2.0). ``zone_data`` is the release of its
    time-zone data (None: it is of 0.2.0).
    """

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
    version: str | None = None
    reads: int = UNSTATED_VERSION
    marks: tuple[tuple[str, str], ...] = ()
    last_check: LastCheck | None = None
    decision_lag_ms: int | None = None
    zone_data: str | None = None
