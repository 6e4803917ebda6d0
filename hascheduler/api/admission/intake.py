"""Intake control: refuse a fraction of the submits while they keep the leader from what was accepted before them.

Two things together show that: the leader's decisions take long to be carried out (`LeaderLag`), and the queue of jobs
that could run now (`ClusterView.runnable`) grows. While the leader keeps up, any number of jobs may wait for
processors. Jobs that begin later, wait for others or have no processor are not in that queue.

Each replica judges by itself; all see the same, so all refuse alike. Pure: the time is handed in.
"""

from collections import Counter

from hascheduler.ports import ClusterView, LeaderLag

QUEUE_JOBS = 150
"""While no more jobs wait, ever more is let in."""
RETRY_MAX_S = 15
_LOOK_EVERY_S = 0.5
_LAG_MS = 150
_IDLE_LAG_MS = 35
_IDLE_BELOW = 0.5
_TIMES_LEAST_LAG = 3
_CUT_PER_S = 0.5
_GROWTH_PER_S = 1.2
_LEAST = 0.02


class IntakeControl:
    """Owner of the fraction of the submits that is let in here."""

    def __init__(self) -> None:
        self.fraction = 1.0
        self._looked_at_ms = 0
        self._queue = 0
        self._owed = 0.0
        self._refusals = 0
        self._passed = 0
        self._let_in = Counter[str]()
        self._let_in_before = Counter[str]()

    def look(self, view: ClusterView, now_ms: int) -> None:
        """Adjust the fraction, twice a second."""
        elapsed_s = (now_ms - self._looked_at_ms) / 1_000
        if elapsed_s < _LOOK_EVERY_S:
            return
        lag, runnable = view.leader_lag, view.runnable()
        if runnable <= QUEUE_JOBS or not is_late(lag):
            self.fraction = min(self.fraction * _GROWTH_PER_S ** min(elapsed_s, 60) + _LEAST * elapsed_s, 1.0)
        elif runnable > self._queue:
            self.fraction = max(self.fraction * _CUT_PER_S ** min(elapsed_s, 1), _LEAST)
        self._looked_at_ms, self._queue, self._passed = now_ms, runnable, 0
        self._let_in, self._let_in_before = Counter(), self._let_in

    def refused_s(self, tenant: str | None, *, is_read: bool) -> int | None:
        """Return in how many seconds the client should come again; None: the submit may be let in. One that passes
        unread is not judged again once it is read. ``tenant`` None: its caller may submit for all tenants."""
        if is_read and self._passed:
            self._passed -= 1
            return None
        retry_after_s = self._judge(tenant)
        self._passed += not is_read and retry_after_s is None
        return retry_after_s

    def let_in(self, tenant: str, jobs: int) -> None:
        self._let_in[tenant] += jobs

    def _judge(self, tenant: str | None) -> int | None:
        if self.fraction == 1 or self._is_within_its_part(tenant):
            return None
        self._owed += self.fraction
        if self._owed >= 1:
            self._owed -= 1
            return None
        self._refusals += 1
        # The more are refused, the later they come back, spread over the second half of that time.
        half_s = round(RETRY_MAX_S / 2 * min(2 * (1 - self.fraction), 1))
        return max(half_s, 1) + self._refusals % max(half_s, 1)

    def _is_within_its_part(self, tenant: str | None) -> bool:
        """Return True for a tenant that got less than half of an equal part: it is not the one that floods."""
        before = self._let_in_before
        return tenant is not None and 2 * len(before) * self._let_in[tenant] < before.total()


def is_late(lag: LeaderLag) -> bool:
    """Return True if the leader does not keep up: its decisions take longer than usual, as a slow database always does,
    and longer than 150 ms, or than 35 while most slots run no job; at rest they take 10."""
    late_ms = _IDLE_LAG_MS if lag.busy < _IDLE_BELOW else _LAG_MS
    return lag.now_ms > max(late_ms, _TIMES_LEAST_LAG * lag.least_ms)
