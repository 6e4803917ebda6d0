"""Which job first: an order over pending jobs. Smaller keys go first, and every key ends in the id."""

from typing import Protocol

from hascheduler.model.job import JobRef

Key = tuple[int | str, ...]


class Policy(Protocol):
    def key(self, job: JobRef) -> Key:
        """The job's place; jobs of one definition are compared by it, and so are the heads of all definitions."""
        ...


class PriorityThenArrival:
    """The most urgent first (10 is the highest priority), equals in order of submission."""

    def key(self, job: JobRef) -> Key:
        return (-job.priority, job.submitted_at_ms, job.sequence, job.id)
