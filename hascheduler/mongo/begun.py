"""What is known of attempts that were started here, so that their ends need no pipeline.

The record of an attempt is made of fields that its end clears, which in general takes a pipeline; that costs the server
twice what a plain update does. Whoever started the attempt has read those fields. They are part of the filter, so a
memory that is wrong makes a write that matches nothing, and the pipeline has its turn.

`Begun` owns at most `BEGUN_MAX` memories, the newest; a forgotten one costs a pipeline.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BEGUN_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Times:
    """Of a running attempt, in ms since the epoch."""

    dispatched_at_ms: int
    started_at_ms: int

    def filter(self) -> dict[str, Any]:
        """What a job must be, beside the attempt's own, to be ended without a pipeline.

        One with an idempotency key says itself how long it is kept at least, which a plain update can't compare with.
        """
        return {
            "dispatched_at_ms": self.dispatched_at_ms,
            "started_at_ms": self.started_at_ms,
            "attempts": {"$type": "array"},
            "kept_until": None,
        }


class Begun:
    def __init__(self) -> None:
        self._times: dict[tuple[str, int], Times] = {}

    def remember(self, job: Mapping[str, Any], started_at_ms: int) -> None:
        """``job`` was read when its attempt was started."""
        dispatched_at_ms = job.get("dispatched_at_ms")
        if isinstance(dispatched_at_ms, int) and job.get("kept_until") is None:
            self._times[(job["_id"], job["attempt"])] = Times(dispatched_at_ms, started_at_ms)
            if len(self._times) > BEGUN_MAX:
                del self._times[next(iter(self._times))]

    def take(self, job_id: str, attempt: int) -> Times | None:
        return self._times.pop((job_id, attempt), None)
