"""Who waits for whom: jobs that are held back until others have succeeded, and those that never can run.

Every replica follows the ends of jobs from the same stream, so a job goes on in the very step that is told of the last
one it waited for. A job whose dependency is not known here as live may wait for one that has ended before: a leader has
that one read (`take_unknown`), and is told how it ended as if it had ended now.

One that is not there any more counts as succeeded: had it failed, a leader would have failed those that waited for it
long before it was deleted, as finished jobs are kept for ten minutes at least. It was there once: who submits a job has
seen its dependencies, and they come first in the stream.
"""

from collections.abc import Callable, Sequence

from hascheduler.model.job import JobRef, JobState


class Dependencies:
    """Owner of what has yet to be met, by job, and of the jobs whose dependencies failed."""

    def __init__(self) -> None:
        self._unmet: dict[str, dict[str, None]] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._ignoring: dict[str, None] = {}
        self._unasked: dict[str, None] = {}
        self._doomed: dict[str, str] = {}

    def seen(self, job: JobRef) -> None:
        """A live job; later versions of it wait for nothing new."""
        if not job.waits_for or job.id in self._unmet:
            return
        self._unmet[job.id] = dict.fromkeys(job.waits_for)
        if job.ignores_failures:
            self._ignoring[job.id] = None
        for id in self._unmet[job.id]:
            self._dependents.setdefault(id, {})[job.id] = None
            self._unasked[id] = None

    def gone(self, job_id: str, state: JobState | None) -> list[str]:
        """The job ended so (None: it is not there, or can't be read); those that wait for nothing more now."""
        self._unasked.pop(job_id, None)
        freed = []
        for waiting in self._dependents.pop(job_id, ()):
            if state in (JobState.FAILED, JobState.CANCELLED) and waiting not in self._ignoring:
                said = "was cancelled" if state is JobState.CANCELLED else "failed"
                self._doomed.setdefault(waiting, f"its dependency {job_id} {said}")
                continue
            unmet = self._unmet[waiting]
            unmet.pop(job_id, None)
            if not unmet:
                freed.append(waiting)
        return freed

    def forget(self, job_id: str) -> None:
        """The job waits for nothing any more: it has ended itself."""
        if job_id not in self._unmet:
            return
        for id in self._unmet.pop(job_id):
            others = self._dependents.get(id)
            if others is not None:
                others.pop(job_id, None)
                if not others:
                    del self._dependents[id]
                    self._unasked.pop(id, None)
        self._ignoring.pop(job_id, None)
        self._doomed.pop(job_id, None)

    def unmet(self, job_id: str) -> Sequence[str]:
        """What the job waits for."""
        return list(self._unmet.get(job_id, ()))

    def holds(self, job_id: str) -> bool:
        return bool(self._unmet.get(job_id))

    def doomed(self) -> list[tuple[str, str]]:
        """The jobs that can't run any more, and why, in the order in which that became known."""
        return list(self._doomed.items())

    def take_unknown(self, is_live: Callable[[str], bool]) -> list[str]:
        """What somebody waits for and that does not live as far as is known here: to be read. Each once."""
        unknown = [id for id in self._unasked if not is_live(id)]
        self._unasked.clear()
        return unknown
