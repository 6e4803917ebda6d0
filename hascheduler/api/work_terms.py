"""The terms for processors that speak HTTP: heartbeats, deadline, and how many there may be."""

from dataclasses import dataclass

PROCESSORS_OF_TOKEN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """A processor works for ``shard``, sends a heartbeat each interval, and stops its work when the heartbeats go
    unanswered until the deadline. ``processors_max`` may be registered with one token.
    """

    shard: str
    heartbeat_interval_ms: int
    heartbeat_deadline_ms: int
    processors_max: int = PROCESSORS_OF_TOKEN_MAX
