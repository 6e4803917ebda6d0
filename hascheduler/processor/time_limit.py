"""How long one attempt may run, and what it means when it has run so long."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hascheduler.model.durations import format_duration
from hascheduler.model.instants import WallMs
from hascheduler.ports import StartedJob
from hascheduler.processor.attempts import Attempt, Ending
from hascheduler.processor.failures import Failure

LET_GO_S = 5.0
"""A handler that does not heed the end of its time is let go after so long: before the leader gives the job to others,
which is `DispatchConfig.timeout_grace_ms` after that end."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """``span_ms`` None: no limit. ``failure`` is what the attempt ends with when the time is over."""

    span_ms: int | None
    at_ms: WallMs | None
    failure: Failure

    @classmethod
    def of(cls, started: StartedJob, now: WallMs) -> "TimeLimit":
        """The nearer one of the attempt's own timeout and the end of the total one."""
        rules = started.rules
        span_ms, failure = rules.timeout_ms, Failure("timed out")
        if span_ms is not None:
            failure = Failure(f"timed out after {format_duration(span_ms)}")
        end_ms = rules.end_of(started.first_started_at_ms)
        if end_ms is not None and (span_ms is None or end_ms - now < span_ms):
            total = format_duration(rules.total_timeout_ms or 0)
            span_ms, failure = max(end_ms - now, 0), Failure(f"timed out after {total} in all", final=True)
        return cls(span_ms, None if span_ms is None else WallMs(now + span_ms), failure)

    @contextmanager
    def watched(self, attempt: Attempt) -> Iterator[None]:
        """Stop ``attempt`` when the time is over, and let go of its handler if it does not heed."""
        if self.span_ms is None:
            yield
            return
        loop = asyncio.get_running_loop()
        ending = loop.call_later(self.span_ms / 1000, attempt.stop, Ending.TIMED_OUT)
        letting_go = loop.call_later(self.span_ms / 1000 + LET_GO_S, attempt.let_go)
        try:
            yield
        finally:
            ending.cancel()
            letting_go.cancel()
