"""Named instants, in order: a heap whose outdated entries are skipped, and swept out before they outnumber the live.

Setting, clearing and taking are O(log n); idle names cost nothing while they wait.
"""

import heapq
from collections.abc import Iterator

_SWEEP_MIN = 1_024


class Timers:
    """At most one instant per name."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, name: str, at_ms: int) -> None:
        """Move ``name`` to ``at_ms``."""
        if self._at.get(name) == at_ms:
            return
        self._at[name] = at_ms
        heapq.heappush(self._heap, (at_ms, name))
        if len(self._heap) > _SWEEP_MIN and len(self._heap) > 2 * len(self._at):
            self._heap = [(at, known) for known, at in self._at.items()]
            heapq.heapify(self._heap)

    def clear(self, name: str) -> None:
        self._at.pop(name, None)

    def next_at(self) -> int | None:
        """The earliest instant, or None when there is none."""
        while self._heap:
            at_ms, name = self._heap[0]
            if self._at.get(name) == at_ms:
                return at_ms
            heapq.heappop(self._heap)
        return None

    def take_due(self, now: int, limit: int) -> Iterator[tuple[str, int]]:
        """Remove and give the names that are due, earliest first and then by name, at most ``limit``."""
        for _ in range(limit):
            at_ms = self.next_at()
            if at_ms is None or at_ms > now:
                return
            _, name = heapq.heappop(self._heap)
            del self._at[name]
            yield name, at_ms
