"""Remembers the times of attempts that this process started, so that their ends need no pipeline.

The record of an attempt is made of fields that its end clears, which in general takes a pipeline; that costs the server
twice as much as a plain update. The process that started the attempt has read those fields. They are part of the
filter, so with wrong times the write matches nothing, and the pipeline is used after all.

`StartedAttempts` owns the times of at most `STARTED_ATTEMPTS_MAX` attempts, the newest; a forgotten one costs a
pipeline.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hascheduler.model.values.instants import from_datetime
from hascheduler.mongo.state_updates import AttemptTimes

STARTED_ATTEMPTS_MAX = 20_000


class StartedAttempts:
    """Attempts of jobs that are deleted ``job_retention_ms`` after their ends; a job that a key keeps for longer is not
    remembered.
    """

    def __init__(self, job_retention_ms: int) -> None:
        self._job_retention_ms = job_retention_ms
        self._times: dict[tuple[str, int], AttemptTimes] = {}

    def remember(self, job: Mapping[str, Any], started_at_ms: int) -> None:
        """``job`` as it was read when its attempt was started."""
        dispatched_at_ms, kept_until = job.get("dispatched_at_ms"), job.get("kept_until")
        expires_at_ms = started_at_ms + self._job_retention_ms
        is_kept_longer = kept_until is not None and (
            not isinstance(kept_until, datetime) or from_datetime(kept_until) > expires_at_ms
        )
        if isinstance(dispatched_at_ms, int) and not is_kept_longer:
            self._times[(job["_id"], job["attempt"])] = AttemptTimes(dispatched_at_ms, started_at_ms)
            if len(self._times) > STARTED_ATTEMPTS_MAX:
                del self._times[next(iter(self._times))]

    def take(self, job_id: str, attempt: int) -> AttemptTimes | None:
        return self._times.pop((job_id, attempt), None)
