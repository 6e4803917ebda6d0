"""Where the messages of dispatched jobs get their traces from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hascheduler.model.trace import TraceContext


@dataclass(frozen=True, slots=True)
class TracedJob:
    """What the span of a job's message says of the job, and where it belongs."""

    definition: str
    schedule: str | None
    trace: TraceContext | None


class JobTraces(Protocol):
    """Read when a batch is published, by a leader that traces; never otherwise.

    A mirror does not have them: of a million jobs that wait it would carry a million, for the few that go out now, and
    the job of a fire goes out before its echo comes in.
    """

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        """Those that are there, as this process wrote them; answers soon or not at all."""
        ...
