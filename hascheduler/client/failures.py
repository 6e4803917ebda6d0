"""What can go wrong for who submits: refused, unanswered, or answered with a job that did not succeed."""

from collections.abc import Mapping
from typing import Any

from hascheduler.client.results import Job, Problem
from hascheduler.errors import CallerError, HaschedulerError, WorldError


class Refused(CallerError):
    """The replica refuses the request; nothing of it was written. After a 429 ``retry_after_s`` says when it may go.

    Of many jobs, those of earlier requests are there: under ``idempotency_key`` none of them comes twice. ``replica``
    is the address that it was refused at.
    """

    def __init__(
        self,
        status: int,
        problem: Problem,
        retry_after_s: float | None = None,
        idempotency_key: str | None = None,
        replica: str = "",
    ) -> None:
        self.replica = replica
        self.status = status
        self.problem = problem
        self.retry_after_s = retry_after_s
        self.idempotency_key = idempotency_key
        super().__init__(f"{status}: {problem}")


class RefusedNotFound(Refused):
    """Nothing goes by that name or id: 404."""


class RefusedConflict(Refused):
    """The name is taken, or the state or the revision is not the one that was meant: 409, 412."""


REFUSED: Mapping[int, type[Refused]] = {404: RefusedNotFound, 409: RefusedConflict, 412: RefusedConflict}
"""What a status is raised as; `Refused` if it is not here."""


class Unavailable(WorldError):
    """No replica has answered, or none as a replica does; whether the request was carried out is unknown: where
    ``problem`` has an ``id``, ask by that.

    A submit that is repeated under ``idempotency_key`` makes no job twice; None where there is no submit. Of the last
    try: the address of the ``replica``, the ``status`` and ``problem`` of its answer, and as ``cause`` why that can't
    be read, or why there is none.
    """

    def __init__(
        self,
        reason: str,
        idempotency_key: str | None = None,
        *,
        replica: str = "",
        status: int | None = None,
        problem: Problem | None = None,
        cause: Exception | None = None,
    ) -> None:
        self.idempotency_key = idempotency_key
        self.replica = replica
        self.status = status
        self.problem = problem
        self.cause = cause
        super().__init__(reason)


class _Unsuccessful(HaschedulerError):
    def __init__(self, job: Job, what: str) -> None:
        self.job = job
        super().__init__(f"{job.id} {what}" + (f": {job.error}" if job.error else ""))


class JobFailed(_Unsuccessful):
    """It has failed for good: its tries or its time are used up, or it can't succeed."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, "has failed")


class JobCancelled(_Unsuccessful):
    """The job was cancelled."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, "was cancelled")


class StillRunning(_Unsuccessful):
    """It has not ended in time, and goes on."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, f"has not ended yet, it is {job.state}")


class Retryable(Exception):
    """The exchange may be repeated, ``after_s`` at the earliest; ``failure`` is what to raise if it is not.

    ``look``, a `Request`, is to be asked before: whether it was carried out is unknown."""

    def __init__(self, failure: Refused | Unavailable, after_s: float | None = None, look: Any = None) -> None:
        self.failure = failure
        self.after_s = after_s
        self.look = look
        super().__init__(str(failure))
