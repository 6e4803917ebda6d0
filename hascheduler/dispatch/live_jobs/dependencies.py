"""Which jobs are held back until others have succeeded, and which never can run.

Every replica follows the ends of jobs in the same stream, so a job goes on in the very step in which its last
dependency ends. A dependency that is not live here may have ended before: the leader has it read (`take_unknown`), and
its end then arrives as if it had ended now.

A dependency that does not exist any more counts as succeeded: had it failed, a leader would have failed its dependents
long before it was deleted, as finished jobs are kept for ten minutes at least. It did exist: a submit checks its
dependencies, and they come first in the stream.
"""

from collections.abc import Callable, Sequence

from hascheduler.model.job import JobRef, JobState, dependency_error


class Dependencies:
    """Owner of the unmet dependencies by job, and of the jobs whose dependencies failed."""

    def __init__(self) -> None:
        self._unmet: dict[str, dict[str, None]] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._ignoring: dict[str, None] = {}
        self._unread: dict[str, None] = {}
        self._dependency_failed: dict[str, str] = {}

    @property
    def are_unmet(self) -> bool:
        """Whether there is a live job with dependencies."""
        return bool(self._unmet)

    def seen(self, job: JobRef) -> None:
        """A live job; its later versions have no new dependencies."""
        if not job.waits_for or job.id in self._unmet:
            return
        self._unmet[job.id] = dict.fromkeys(job.waits_for)
        if job.ignores_failures:
            self._ignoring[job.id] = None
        for id in self._unmet[job.id]:
            self._dependents.setdefault(id, {})[job.id] = None
            self._unread[id] = None

    def gone(self, job_id: str, state: JobState | None) -> list[str]:
        """The job ended in ``state`` (None: it does not exist, or can't be read); the jobs that may go on now."""
        self._unread.pop(job_id, None)
        freed = []
        for waiting in self._dependents.pop(job_id, ()):
            if state in (JobState.FAILED, JobState.CANCELLED) and waiting not in self._ignoring:
                self._dependency_failed.setdefault(waiting, dependency_error(job_id, state))
                continue
            unmet = self._unmet[waiting]
            unmet.pop(job_id, None)
            if not unmet:
                freed.append(waiting)
        return freed

    def forget(self, job_id: str) -> None:
        """The job has ended: it depends on nothing any more."""
        if job_id not in self._unmet:
            return
        for id in self._unmet.pop(job_id):
            others = self._dependents.get(id)
            if others is not None:
                others.pop(job_id, None)
                if not others:
                    del self._dependents[id]
                    self._unread.pop(id, None)
        self._ignoring.pop(job_id, None)
        self._dependency_failed.pop(job_id, None)

    def unmet(self, job_id: str) -> Sequence[str]:
        """The dependencies that have not ended."""
        return list(self._unmet.get(job_id, ()))

    def holds(self, job_id: str) -> bool:
        return bool(self._unmet.get(job_id))

    def dependency_failed(self) -> list[tuple[str, str]]:
        """The jobs whose dependencies failed, and why, in the order in which that became known."""
        return list(self._dependency_failed.items())

    def take_unknown(self, is_live: Callable[[str], bool]) -> list[str]:
        """Remove and give the dependencies that are not live here: to be read. Each is given once."""
        unknown = [id for id in self._unread if not is_live(id)]
        self._unread.clear()
        return unknown
