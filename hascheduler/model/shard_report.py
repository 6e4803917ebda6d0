"""What a replica that follows a shard tells of it to those that do not, in its heartbeat in the home.

Where each replica follows all shards there is none. What tells of the whole shard is in the report of its leader alone,
and what could grow without end is cut off: the largest first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hascheduler.model.values.instants import WallMs

NAMES_MAX = 200
"""Definitions, calendars, caps, rates, slots or ids that one report names of each kind."""
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
    tokens_taken: Counts = field(default_factory=dict)
    """By the definition whose rate limit they are of."""
    kept_aside: Counts = field(default_factory=dict)
    """By the key of the slot."""
    quarantined: int = 0
    events_per_s: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShardReport:
    """``ready``: the mirror is complete and fresh. ``leaving``: the replica is about to follow the shard no more, and
    is not to be counted on."""

    ready: bool
    leaving: bool = False
    led: LedShard | None = None
