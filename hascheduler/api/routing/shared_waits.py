"""Who waits at this replica for which job, and whether a disconnect means that nobody wants it any more.

Requests under one idempotency key share a job, and each caller that knows a job's id may wait for it. So a disconnect
cancels only if it is that of the last request that waits, if the one that made the job was among them, and if all that
shared it meanwhile asked for that. A request that was answered before the job's end may ask again: it did not ask for
that.

A replica does not see who waits at another one. There no request made the job, so none of them ever cancels it; but the
one that made it may.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class _Share:
    waiting: int = 0
    is_made_here: bool = False
    all_cancel: bool = True


class SharedWaits:
    """Owner of the shares, by the id of the job; each is there while a request waits for its job."""

    def __init__(self) -> None:
        self._by_job: dict[str, _Share] = {}

    def join(self, job_id: str, *, made: bool, cancels: bool) -> None:
        """A request begins to wait; `leave` has to follow. It ``made`` the job, it ``cancels`` if it disconnects."""
        share = self._by_job.setdefault(job_id, _Share())
        share.waiting += 1
        share.is_made_here |= made
        share.all_cancel &= cancels

    def keep(self, job_id: str) -> None:
        """A request shares the job and does not wait for it."""
        if job_id in self._by_job:
            self._by_job[job_id].all_cancel = False

    def leave(self, job_id: str, *, disconnected: bool) -> bool:
        """A request waits no longer; whether the job is to be cancelled."""
        share = self._by_job[job_id]
        share.waiting -= 1
        share.all_cancel &= disconnected
        if share.waiting:
            return False
        del self._by_job[job_id]
        return share.is_made_here and share.all_cancel
