"""A replica's heartbeat: its state, written once a retry period and mirrored by all other replicas.

The write has a second use: the writer waits for it in its own stream. Its return measures the stream's lag, and its
absence shows that the mirror is stale, even if nothing else is ever written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hascheduler.model.schema_version import UNSTATED_VERSION
from hascheduler.model.values.instants import WallMs

NAMES_MAX = 200
"""Definitions, calendars, caps, slots or ids that one report names of each kind."""
LANES_MAX = 50
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LedShard:
    """The whole shard as its leader sees it. ``definitions`` and ``lanes`` have their live jobs by state; under the
    name "" are those of all that are cut off."""

    term: int
    since_ms: WallMs
    journal_seq: int
    stream_lag_ms: int | None = None
    lag_ms: int = 0
    least_lag_ms: int = 0
    jobs: Counts = field(default_factory=dict)
    runnable: int = 0
    """Pending jobs that wait for slots and limits alone."""
    dependencies: int = 0
    """How many jobs and batches all jobs together have yet to wait for."""
    schedules: Counts = field(default_factory=dict)
    processors: Counts = field(default_factory=dict)
    slots: Counts = field(default_factory=dict)
    definitions: Mapping[str, Counts] = field(default_factory=dict)
    lanes: Mapping[str, Counts] = field(default_factory=dict)
    unschedulable: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()
    """Those that schedules use."""
    short_of: tuple[str, ...] = ()
    kept_aside: Counts = field(default_factory=dict)
    """By the key of the slot."""
    quarantined: int = 0
    events_per_s: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What a replica that follows a shard tells of it to those that do not, in its heartbeat in the home.

    Where each replica follows all shards there is none. What tells of the whole shard, ``led``, is in the report of its
    leader alone, and what could grow without end is cut off: the largest first. ``ready``: the mirror is complete and
    fresh. ``leaving``: the replica is about to follow the shard no more, and is not to be counted on.
    """

    ready: bool
    leaving: bool = False
    led: LedShard | None = None


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
    decisions take to be carried out (None: it makes none, or is of 0.2.0). ``followed`` are the shards that it follows
    besides the home, in its heartbeat there, and ``shards`` how many it knows; None: it follows all that it knows.
    ``zone_data`` is the release of its time-zone data (None: it is of 0.2.0).
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
    followed: Mapping[str, ShardReport] | None = field(default=None, hash=False)
    shards: int | None = None
    zone_data: str | None = None
