"""What a processor that speaks HTTP has to keep to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """It works for ``shard``, shows life each interval, and stops its work after a deadline without an answer."""

    shard: str
    heartbeat_interval_ms: int
    heartbeat_deadline_ms: int
