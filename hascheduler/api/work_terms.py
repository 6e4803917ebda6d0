"""What a processor that speaks HTTP has to keep to."""

from dataclasses import dataclass

PROCESSORS_OF_TOKEN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """It works for ``shard``, shows life each interval, and stops its work after a deadline without an answer.

    ``processors_max`` of them may be registered with one token.
    """

    shard: str
    heartbeat_interval_ms: int
    heartbeat_deadline_ms: int
    processors_max: int = PROCESSORS_OF_TOKEN_MAX
