"""What can go wrong for who asks: refused, unanswered, or answered with a job that did not succeed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hascheduler.client.results import Job, Problem
from hascheduler.errors import CallerError, HaschedulerError, WorldError


@dataclass(eq=False, repr=False)
class Refused(CallerError):
    """The ``replica`` refuses the request; nothing of it was written. After a 429 ``retry_after_s`` says when it may
    go. Of many jobs, those of earlier requests are there: under ``idempotency_key`` none of them comes twice."""

    status: int
    problem: Problem
    retry_after_s: float | None = None
    idempotency_key: str | None = None
    replica: str = ""

    def __post_init__(self) -> None:
        super().__init__(f"{self.status}: {self.problem}")


class RefusedNotFound(Refused):
    """Nothing goes by that name or id: 404."""


class RefusedConflict(Refused):
    """The name is taken, or the state or the revision is not the one that was meant: 409, 412."""


REFUSED: Mapping[int, type[Refused]] = {404: RefusedNotFound, 409: RefusedConflict, 412: RefusedConflict}
"""What a status is raised as; `Refused` if it is not here."""


@dataclass(eq=False, repr=False)
class Unavailable(WorldError):
    """No replica has answered, or none as a replica does; whether the request was carried out is unknown: if
    ``problem`` has an ``id``, ask by that. A submit that is repeated under ``idempotency_key`` makes no job twice.

    Of the last try: its ``replica``, the ``status`` and ``problem`` of the answer, and as ``cause`` why that can't be
    read, or why there is none."""

    reason: str
    idempotency_key: str | None = None
    replica: str = ""
    status: int | None = None
    problem: Problem | None = None
    cause: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(self.reason)


class _Unsuccessful(HaschedulerError):
    _what = ""

    def __init__(self, job: Job) -> None:
        self.job = job
        super().__init__(f"{job.id} {self._what.format(job.state)}" + (f": {job.error}" if job.error else ""))


class JobFailed(_Unsuccessful):
    """It has failed for good: its tries or its time are used up, or it can't succeed."""

    _what = "has failed"


class JobCancelled(_Unsuccessful):
    """The job was cancelled."""

    _what = "was cancelled"


class StillRunning(_Unsuccessful):
    """It has not ended in time, and goes on."""

    _what = "has not ended yet, it is {}"


@dataclass(eq=False)
class Retryable(Exception):
    """The exchange may be repeated, ``after_s`` at the earliest; ``failure`` is what to raise if it is not.

    ``look``, a `Request`, is to be asked before: whether it was carried out is unknown."""

    failure: Refused | Unavailable
    after_s: float | None = None
    look: Any = None
