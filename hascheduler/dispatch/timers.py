"""Named instants, in order: a heap of those that come soon, and unsorted bins of those that come later.

Most names wait for long, so a bin holds only the name. When the heap has run out, the earliest bin is sorted into it;
the span of a bin is short, so that little is sorted at once. Outdated entries are skipped, and swept out before they
outnumber the live ones. Setting, clearing and taking are O(log n); idle names cost nothing while they wait. After
Varghese and Lauck, Hashed and Hierarchical Timing Wheels, SOSP 1987 (their scheme 7, with two levels).
"""

import heapq
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

_SWEEP_MIN = 1_024
_LOOKED_MAX = 100_000
_BIN_MS = 5 * 60_000


class Timers:
    """At most one instant per name."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._soon: list[tuple[int, str]] = []
        """A heap of all that come before `_sorted_until_ms`."""
        self._sorted_until_ms = 0
        self._later: dict[int, list[str]] = {}
        self._bins: list[int] = []
        """A heap of the numbers of the bins."""
        self._binned = 0

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, name: str, at_ms: Any) -> None:
        """Move ``name`` to the instant ``at_ms``.

        `Any`, as compiled code makes a new object of a known integer: many schedules share one cron expression and wait
        for the same instant.
        """
        if self._at.get(name) == at_ms:
            return
        self._at[name] = at_ms
        self._enter(name, at_ms)
        entries = len(self._soon) + self._binned
        if entries > _SWEEP_MIN and entries > 2 * len(self._at):
            self._sweep()

    def clear(self, name: str) -> None:
        self._at.pop(name, None)

    def next_at(self) -> int | None:
        """Return the earliest instant, or None if there is none."""
        while self._soon or self._bins:
            if not self._soon:
                self._sort_a_bin()
                continue
            at_ms, name = self._soon[0]
            if self._at.get(name) == at_ms:
                return at_ms
            heapq.heappop(self._soon)
        return None

    def before(self, at_ms: int) -> Iterator[str]:
        """Yield names that come before that instant, in no order, and perhaps more than once; remove none.

        Look at `_LOOKED_MAX` entries at most: if there are more, some are left out.
        """
        self.next_at()  # nearly always this ends the search, as it drops the outdated entries before the first live one
        names = chain(self._soon_before(at_ms), *(self._later[bin] for bin in self._bins if bin * _BIN_MS < at_ms))
        for name in islice(names, _LOOKED_MAX):
            if self._at.get(name, at_ms) < at_ms:
                yield name

    def _soon_before(self, at_ms: int) -> Iterator[str]:
        places = [0]
        while places:
            place = places.pop()
            if place < len(self._soon) and self._soon[place][0] < at_ms:  # else nothing below it comes before either
                places += (2 * place + 1, 2 * place + 2)
                yield self._soon[place][1]

    def take_due(self, now: int, limit: int) -> Iterator[tuple[str, int]]:
        """Remove and yield the names that are due, earliest first and then by name, at most ``limit``."""
        for _ in range(limit):
            at_ms = self.next_at()
            if at_ms is None or at_ms > now:
                return
            _, name = heapq.heappop(self._soon)
            del self._at[name]
            yield name, at_ms

    def _enter(self, name: str, at_ms: int) -> None:
        if at_ms < self._sorted_until_ms:
            heapq.heappush(self._soon, (at_ms, name))
            return
        number = at_ms // _BIN_MS
        names = self._later.get(number)
        if names is None:
            names = self._later[number] = []
            heapq.heappush(self._bins, number)
        names.append(name)
        self._binned += 1

    def _sort_a_bin(self) -> None:
        number = heapq.heappop(self._bins)
        names = self._later.pop(number)
        self._binned -= len(names)
        self._sorted_until_ms = (number + 1) * _BIN_MS
        # A moved name is in several bins, or several times in one.
        self._soon = [
            (at_ms, name)
            for name in dict.fromkeys(names)
            if (at_ms := self._at.get(name)) is not None and at_ms < self._sorted_until_ms
        ]
        heapq.heapify(self._soon)

    def _sweep(self) -> None:
        self._soon.clear()
        self._sorted_until_ms = 0
        self._later.clear()
        self._bins.clear()
        self._binned = 0
        for name, at_ms in self._at.items():
            self._enter(name, at_ms)
