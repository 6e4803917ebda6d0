"""The last hour of one view of the jobs in points of 30 s, how many ran in the last day, and the events of a minute."""

from collections import Counter, deque
from collections.abc import Mapping

from hascheduler.model.event import EventType
from hascheduler.model.values.instants import MonoMs

EVERY_MS = 30_000
POINTS_MAX = 120
DAY_EVERY_MS = 600_000
DAY_POINTS_MAX = 144
COUNTED = {
    EventType.SUBMITTED: "submitted",
    EventType.STARTED: "started",
    EventType.SUCCEEDED: "succeeded",
    EventType.FAILED: "failed",
    EventType.CANCELLED: "cancelled",
    EventType.RETURNED: "returned",
    EventType.SCHEDULE_MISSED: "missed",
}
"""The counted types of events, with the names of their counts."""
_LEVELS = ("pending", "running", "slots")
_COUNTS = ("succeeded", "failed", "submitted", "missed")
_MINUTE_MS = 60_000
_SAMPLE_MS = 500


class JobHistory:
    """Owner of the points of the last hour, of those of the last day, and of the totals of the last minute."""

    def __init__(self, now: MonoMs, totals: Mapping[EventType, int]) -> None:
        self._points: deque[Mapping[str, int]] = deque(maxlen=POINTS_MAX)
        self._day: deque[int] = deque(maxlen=DAY_POINTS_MAX)
        self._most = 0
        self._points_of_most = 0
        self.until_ms: int = now
        """When the newest point was taken."""
        self._at_point = Counter(totals)
        self._minute: deque[tuple[MonoMs, Counter[EventType]]] = deque([(now, Counter(totals))])

    def sample(self, now: MonoMs, totals: Mapping[EventType, int], levels: Mapping[str, int]) -> None:
        """Take the totals of all events until now, and the present levels; call this about once a second."""
        if now - self._minute[-1][0] >= _SAMPLE_MS:
            self._minute.append((now, Counter(totals)))
        while len(self._minute) > 2 and self._minute[1][0] <= now - _MINUTE_MS:
            self._minute.popleft()
        while now - self.until_ms >= EVERY_MS:  # more than once if this process stood still
            more = {name: totals.get(type, 0) - self._at_point[type] for type, name in COUNTED.items()}
            self._points.append({**levels, **more})
            self.until_ms = max(self.until_ms + EVERY_MS, now - (POINTS_MAX - 1) * EVERY_MS)
            self._at_point = Counter(totals)
            self._most = max(self._most, levels["running"])
            self._points_of_most += 1
            if self._points_of_most * EVERY_MS == DAY_EVERY_MS:
                self._day.append(self._most)
                self._most = self._points_of_most = 0

    def most_running(self) -> list[int]:
        """Return how many jobs ran at most in each ten minutes of the last day, oldest first."""
        return [*self._day]

    def per_minute(self) -> dict[str, int]:
        """Return the counts of the last minute, or since the beginning."""
        (_, before), (_, last) = self._minute[0], self._minute[-1]
        return {name: last[type] - before[type] for type, name in COUNTED.items()}

    def series(self) -> dict[str, list[int]]:
        """Return the points, oldest first."""
        return {name: [point[name] for point in self._points] for name in (*_LEVELS, *_COUNTS)}

    def most(self, level: str) -> int:
        """Return the largest value that a level kept from one point to the next; 0 if there are no two points."""
        values = [point[level] for point in self._points]
        return max(map(min, values, values[1:]), default=0)
