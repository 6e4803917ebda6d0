"""The jobs that are held back until others have succeeded, and the jobs that never can run.

Every replica follows the ends of jobs in the same stream, so a job goes on in the very step in which its last
dependency ends. A dependency that is not live here may have ended before: the leader has it read (`take_unread`), and
its end then arrives as if it had ended now.

A dependency that does not exist any more counts as succeeded: if it had failed, a leader would have failed its
dependents long before it was deleted, as finished jobs are kept for at least ten minutes. It did exist: a submit checks
its dependencies, and they come first in the stream.

A batch is one dependency, however many jobs it has: its live jobs are counted once. Jobs that ended before a dependent
came, or before this replica began, are in no mirror. So the leader has the batch read when a job begins to wait for it,
and again when none of its jobs is live any more. Only that second answer frees the dependents, so they run by what the
database holds about all jobs of the batch. A job that fails later fails them in that very step.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from hascheduler.mirror.changes import BatchSeen
from hascheduler.model.job import JobRef, JobState, dependency_error, is_batch

_OVER_READ_MAX = 1_000
_BATCHES_READ_MAX = 100
"""The most batches read in one step: the stream pauses while they are read."""


class Dependencies:
    """Owner of the unmet dependencies, of the live jobs by batch, and of the jobs whose dependencies failed."""

    def __init__(self) -> None:
        self._unmet: dict[str, int] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._ignoring: dict[str, None] = {}
        self._unread: dict[str, None] = {}
        self._dependency_failed: dict[str, str] = {}
        self._live: Counter[str] = Counter()
        """The number of live jobs by batch."""
        self._over: dict[str, None] = {}
        """The batches with dependents and without live jobs."""
        self._unread_over: dict[str, None] = {}
        """Those of them that have yet to be read."""
        self._unread_batches: dict[str, None] = {}
        """The other batches that have yet to be read."""
        self.count = 0
        """The number of unmet dependencies of all live jobs together."""

    @property
    def are_unmet(self) -> bool:
        """Return True if a live job has dependencies."""
        return bool(self._unmet)

    def seen(self, job: JobRef) -> None:
        """Add a live job; its later versions have no new dependencies."""
        if not job.waits_for or job.id in self._unmet:
            return
        waits_for = dict.fromkeys(job.waits_for)
        self._unmet[job.id] = len(waits_for)
        self.count += len(waits_for)
        if job.ignores_failures:
            self._ignoring[job.id] = None
        for id in waits_for:
            self._dependents.setdefault(id, {})[job.id] = None
            if not is_batch(id):
                self._unread[id] = None
            elif self._live[id]:
                self._unread_batches[id] = None
            else:
                self._over[id] = self._unread_over[id] = None

    def joined(self, batch: str) -> None:
        """Count one more live job of the batch."""
        self._live[batch] += 1
        if batch in self._over:
            self._forget_over(batch)
            self._unread_batches[batch] = None

    def left(self, batch: str) -> None:
        """Count one less live job of the batch."""
        self._live[batch] -= 1
        if not self._live[batch]:
            del self._live[batch]
            if batch in self._dependents:
                self._unread_batches.pop(batch, None)
                self._over[batch] = self._unread_over[batch] = None

    def live_of(self, batch: str) -> int:
        """Return how many jobs of the batch are live."""
        return self._live[batch]

    def gone(self, job_id: str, state: JobState | None, job: JobRef | None) -> list[str]:
        """Record that the job ended in ``state``, and return the jobs that may go on now.

        ``state`` is None if the job does not exist or can't be read; ``job`` is how it was known, None if it was not.
        """
        self._unread.pop(job_id, None)
        if job is None:
            # It may belong to a batch that was read while only the database had it as live.
            self._unread_over |= self._over
        if state is JobState.FAILED or state is JobState.CANCELLED:
            self._fail(job_id, job_id, state)
            if job is not None and job.batch is not None:
                self._fail(job.batch, job_id, state)
        return self._met(job_id)

    def batch_seen(self, seen: BatchSeen) -> list[str]:
        """Take what the database holds about a batch, and return the jobs that may go on now."""
        if seen.failed is not None:
            self._fail(seen.batch, seen.failed[0], seen.failed[1])
        return [] if seen.is_live or self._live[seen.batch] else self._met(seen.batch)

    def _fail(self, id: str, job_id: str, state: JobState) -> None:
        """Mark the jobs that wait for ``id`` as never able to run, as ``job_id`` ended in ``state``."""
        for waiting in self._dependents.get(id, ()):
            if waiting in self._unmet and waiting not in self._ignoring:
                self._dependency_failed.setdefault(waiting, dependency_error(job_id, state))

    def _met(self, id: str) -> list[str]:
        """Return the jobs that waited for ``id`` as their last dependency; jobs that never can run stay as they are."""
        self._forget_over(id)
        freed = []
        for waiting in self._dependents.pop(id, ()):
            self.count -= 1
            if waiting in self._dependency_failed or waiting not in self._unmet:  # the latter after an edit by hand
                continue
            self._unmet[waiting] -= 1
            if not self._unmet[waiting]:
                freed.append(waiting)
        return freed

    def forget(self, job: JobRef) -> None:
        """Forget an ended job: it depends on nothing any more."""
        if self._unmet.pop(job.id, None) is None:
            return
        for id in job.waits_for:
            others = self._dependents.get(id)
            if others is not None and job.id in others:
                del others[job.id]
                self.count -= 1
                if not others:
                    del self._dependents[id]
                    self._unread.pop(id, None)
                    self._unread_batches.pop(id, None)
                    self._forget_over(id)
        self._ignoring.pop(job.id, None)
        self._dependency_failed.pop(job.id, None)

    def unmet(self, job: JobRef) -> Sequence[str]:
        """Return the dependencies that are not met; all of them if one failed."""
        if job.id in self._dependency_failed:
            return job.waits_for
        return [id for id in dict.fromkeys(job.waits_for) if job.id in self._dependents.get(id, ())]

    def holds(self, job_id: str) -> bool:
        return bool(self._unmet.get(job_id))

    def dependency_failed(self) -> list[tuple[str, str]]:
        """Return the jobs whose dependencies failed, and why, in the order in which that became known."""
        return list(self._dependency_failed.items())

    def take_unread(self, is_live: Callable[[str], bool]) -> list[str]:
        """Remove and return what the leader has to read, each once.

        These are jobs that are not live here, and some batches with live jobs, which can only fail their dependents
        sooner.
        """
        unread = [id for id in self._unread if not is_live(id)]
        self._unread.clear()
        return [*unread, *_taken(self._unread_batches, _BATCHES_READ_MAX)]

    def take_over(self) -> list[str]:
        """Remove and return the batches without a live job.

        Every replica has to read them, to know what may run, as the leader does.
        """
        return _taken(self._unread_over, _OVER_READ_MAX)

    def _forget_over(self, batch: str) -> None:
        self._over.pop(batch, None)
        self._unread_over.pop(batch, None)


def _taken(unread: dict[str, None], most: int) -> list[str]:
    """Remove and return the first of them."""
    taken = list(islice(unread, most))
    for id in taken:
        del unread[id]
    return taken
