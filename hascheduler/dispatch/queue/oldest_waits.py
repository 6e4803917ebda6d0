"""Since when the waiting jobs of each lane could have run: to the second, so that a million jobs cost little.

A job is due from its submission, its ``not_before`` or the end of its back-off, whichever comes last; a job that
depended on others is due from the end of the last of those, as this replica saw it.
"""

import heapq
from collections.abc import Mapping

from hascheduler.model.job import JobRef

_SWEEP_MIN = 64


class OldestWaits:
    """Owner of how many jobs of each lane are due since each second."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Seconds] = {}
        self._freed: dict[str, int] = {}

    def freed(self, job_id: str, now: int) -> None:
        """What the job depended on has ended; call it before the job `began` to wait for its turn."""
        self._freed[job_id] = now

    def forget(self, job_id: str) -> None:
        """The job is gone, and has `ended` its wait."""
        self._freed.pop(job_id, None)

    def began(self, job: JobRef) -> None:
        lane = self._lanes.get(job.lane)
        if lane is None:
            lane = self._lanes[job.lane] = _Seconds()
        lane.add(self._since(job) // 1_000)

    def ended(self, job: JobRef) -> None:
        """The job left the queue; as it was when it `began`."""
        lane = self._lanes[job.lane]
        lane.remove(self._since(job) // 1_000)
        if not lane.counts:
            del self._lanes[job.lane]

    def oldest(self) -> Mapping[str, int]:
        """By lane: the instant since which its oldest job waits, in ms, rounded down to a second."""
        return {name: lane.first() * 1_000 for name, lane in self._lanes.items()}

    def _since(self, job: JobRef) -> int:
        return max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0, self._freed.get(job.id, 0))


class _Seconds:
    """A multiset of seconds that knows its least: a heap whose outdated entries are skipped, and swept out."""

    __slots__ = ("_heap", "counts")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self._heap: list[int] = []

    def add(self, second: int) -> None:
        known = self.counts.get(second, 0)
        self.counts[second] = known + 1
        if not known:
            heapq.heappush(self._heap, second)
            if len(self._heap) > _SWEEP_MIN and len(self._heap) > 2 * len(self.counts):
                self._heap = sorted(self.counts)

    def remove(self, second: int) -> None:
        left = self.counts[second] - 1
        if left:
            self.counts[second] = left
        else:
            del self.counts[second]

    def first(self) -> int:
        while self._heap[0] not in self.counts:
            heapq.heappop(self._heap)
        return self._heap[0]
