"""The errors of the SDK: refused, unanswered, or answered with a job that did not succeed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hascheduler.client.results import Job, Problem
from hascheduler.errors import CallerError, HaschedulerError, WorldError


@dataclass(eq=False, repr=False)
class Refused(CallerError):
    """A request that the ``replica`` refused without writing anything.

    After a 429, ``retry_after_s`` is how long to wait. Of many jobs, those of earlier requests exist: under
    ``idempotency_key`` none of them is made twice.
    """

    status: int
    problem: Problem
    retry_after_s: float | None = None
    idempotency_key: str | None = None
    replica: str = ""

    def __post_init__(self) -> None:
        super().__init__(f"{self.status}: {self.problem}")


class RefusedNotFound(Refused):
    """A refusal because nothing has that name or id: 404."""


class RefusedConflict(Refused):
    """A refusal because the name is taken, or the state or the revision is not the intended one: 409, 412."""


REFUSED: Mapping[int, type[Refused]] = {404: RefusedNotFound, 409: RefusedConflict, 412: RefusedConflict}
"""The class to raise for a status; `Refused` for all others."""


@dataclass(eq=False, repr=False)
class Unavailable(WorldError):
    """A request that no replica answered, or none as a replica does; whether it was carried out is unknown.

    If ``problem`` has an ``id``, ask by that. A submit that is repeated under ``idempotency_key`` makes no job twice.
    The other fields are of the last try: its ``replica``, the ``status`` and ``problem`` of the answer, and as
    ``cause`` why that can't be read, or why there is none.
    """

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
    """A job that failed for good: its tries or its time are used up, or it can't succeed."""

    _what = "has failed"


class JobCancelled(_Unsuccessful):
    """A job that was cancelled."""

    _what = "was cancelled"


class StillRunning(_Unsuccessful):
    """A job that has not ended in time, and goes on."""

    _what = "has not ended yet, it is {}"


@dataclass(eq=False)
class Retryable(Exception):
    """An exchange that may be repeated, ``after_s`` at the earliest; ``failure`` is what to raise if it is not.

    If ``probe``, a `Request`, is given, whether the exchange was carried out is unknown: ask it first.
    """

    failure: Refused | Unavailable
    after_s: float | None = None
    probe: Any = None
