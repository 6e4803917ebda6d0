"""The jobs that wait: one queue per definition, each in the policy's order.

Whether a job can be placed now depends on its definition alone, so only the heads of the queues compete, and a queue
that can't be placed is passed over whole: it never blocks another. Leaving is O(1): the entry stays as a tombstone and
is dropped when it comes to the head, or swept out before the tombstones outnumber the living.
"""

import heapq
from collections.abc import Callable

from hascheduler.dispatch.policy import Key, Policy
from hascheduler.model.job import JobRef

_SWEEP_MIN = 1_024


class Waiting:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._queues: dict[str, list[tuple[Key, str]]] = {}
        self._entries: dict[str, tuple[str, Key]] = {}
        self._queued = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entries

    def add(self, job: JobRef) -> None:
        """Queue the job, or move it if its place has changed."""
        entry = (job.definition, self._policy.key(job))
        if self._entries.get(job.id) == entry:
            return
        self._entries[job.id] = entry
        heapq.heappush(self._queues.setdefault(job.definition, []), (entry[1], job.id))
        self._queued += 1
        if self._queued > _SWEEP_MIN and self._queued > 2 * len(self._entries):
            self._sweep()

    def remove(self, job_id: str) -> None:
        self._entries.pop(job_id, None)

    def first(self, placeable: Callable[[str], bool]) -> str | None:
        """The id of the first job whose definition is ``placeable``, or None; it stays queued."""
        best: tuple[Key, str] | None = None
        for definition in list(self._queues):
            head = self._head(definition)
            if head is not None and (best is None or head < best) and placeable(definition):
                best = head
        return best[1] if best else None

    def _head(self, definition: str) -> tuple[Key, str] | None:
        queue = self._queues[definition]
        while queue:
            key, job_id = queue[0]
            if self._entries.get(job_id) == (definition, key):
                return queue[0]
            heapq.heappop(queue)
            self._queued -= 1
        del self._queues[definition]
        return None

    def _sweep(self) -> None:
        self._queues = {}
        for job_id, (definition, key) in self._entries.items():
            self._queues.setdefault(definition, []).append((key, job_id))
        for queue in self._queues.values():
            heapq.heapify(queue)
        self._queued = len(self._entries)
