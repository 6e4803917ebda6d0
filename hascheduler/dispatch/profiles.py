"""Processors that support the same definitions, and which of them should take the next job.

The least busy first, then the smaller id. The order is kept in a heap of (busy / slots, id), to which every change
pushes; an entry that is not its processor's newest is skipped. Ratios are floats, and still exact: equal fractions
divide to the same float, and those of up to 10,000 slots are further apart than two floats.
"""

import heapq

from hascheduler.model.processor import ANY_DEFINITION, supports

_SWEEP_MIN = 64


class Profile:
    """Owner of the order among its members. ``free`` is how many slots they have left together."""

    __slots__ = ("_heap", "_ratios", "breadth", "definitions", "free", "takes_any")

    def __init__(self, definitions: frozenset[str]) -> None:
        self.definitions = definitions
        self.takes_any = ANY_DEFINITION in definitions
        self.breadth = float("inf") if self.takes_any else float(len(definitions))
        self.free = 0
        self._ratios: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def supports(self, definition: str) -> bool:
        return supports(self.definitions, definition)

    def offer(self, processor_id: str, busy: int, slots: int) -> None:
        """It can take a job."""
        ratio = busy / slots
        if self._ratios.get(processor_id) != ratio:
            self._ratios[processor_id] = ratio
            heapq.heappush(self._heap, (ratio, processor_id))
            if len(self._heap) > _SWEEP_MIN and len(self._heap) > 2 * len(self._ratios):
                self._heap = [(ratio, id) for id, ratio in self._ratios.items()]
                heapq.heapify(self._heap)

    def withdraw(self, processor_id: str) -> None:
        """It can take none."""
        self._ratios.pop(processor_id, None)

    def first(self) -> tuple[float, str] | None:
        """The one that should take the next job."""
        heap = self._heap
        while heap:
            ratio, processor_id = heap[0]
            if self._ratios.get(processor_id) == ratio:
                return heap[0]
            heapq.heappop(heap)
        return None

    def in_order(self) -> list[tuple[float, str]]:
        return sorted((ratio, id) for id, ratio in self._ratios.items())
