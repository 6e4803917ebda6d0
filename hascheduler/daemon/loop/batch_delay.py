"""How far apart exchanges should be: the higher the load, the further, so that each carries more.

An exchange costs the same whatever it carries, so a busy system that takes each event by itself spends its time on
exchanges; an idle one gains nothing by waiting. In between the wait grows with the rate: at ``per_event_ms`` for each
event a second, that many events share an exchange (rate² × per_event_ms / 1000), and none waits longer than that. This
saves CPU at the price of latency: the operator sets the longest wait, and 0 is none.

Neighbours that do the same on the same servers each wait as if the others were as busy. So a load that is spread over
them takes as few exchanges as in one.
"""

from math import exp

from hascheduler.model.values.instants import MonoMs

PER_CHANGE_MS = 0.0125
"""At 200 jobs a second, of four changes each, a leader reads its stream every 10 ms."""
PER_DECISION_MS = 0.05
"""At 200 decisions a second 10 ms: decisions closer together go into the journal together."""
_MEMORY_MS = 500.0
"""The rate is an exponential mean over about this time: longer than a burst, short for people."""

_LEAST_MS = 1.0
"""The event loop's timers can't tell shorter ones apart: one event a second would wait a whole one."""


class BatchDelay:
    """Owner of one rate; each event a second, here and at ``neighbours``, adds ``per_event_ms``, up to ``max_ms``."""

    def __init__(self, per_event_ms: float, max_ms: float, neighbours: int = 0) -> None:
        self._per_event_ms = per_event_ms * (1 + neighbours)
        self._max_ms = max_ms
        self._per_s = 0.0
        self._last_ms: MonoMs | None = None

    def passed(self, events: int, now: MonoMs) -> None:
        """Count the ``events`` of the exchange that has just ended."""
        ago_ms = 0 if self._last_ms is None else max(now - self._last_ms, 0)
        self._last_ms = now
        self._per_s = self._per_s * exp(-ago_ms / _MEMORY_MS) + events * 1_000 / _MEMORY_MS

    def spacing_ms(self, now: MonoMs) -> float:
        """Return how long after the last exchange the next should begin."""
        if self._last_ms is None:
            return 0.0
        per_s = self._per_s * exp(-max(now - self._last_ms, 0) / _MEMORY_MS)
        return min(per_s * self._per_event_ms, self._max_ms)

    def wait_s(self, now: MonoMs) -> float:
        """Return how long to wait now."""
        if self._last_ms is None:
            return 0.0
        wait_ms = self.spacing_ms(now) - max(now - self._last_ms, 0)
        return wait_ms / 1_000 if wait_ms >= _LEAST_MS else 0.0
