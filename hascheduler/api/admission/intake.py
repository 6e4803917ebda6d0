"""Intake control: refuse a fraction of the submits while they keep the leader from what was accepted before them.

Two things together show that: the leader's decisions take long to be carried out (`LeaderLag`), and the queue of jobs
that could run now (`ClusterView.runnable`) grows. A long queue alone is no overload: while the leader keeps up, jobs
wait for processors, and any number of them may. Nor is a slow leader alone. Jobs that begin later, wait for others or
have no processor are not in that queue. Each replica judges by itself, and all see the same, so all refuse alike.

Pure: time and what is seen are handed in.
"""

from collections import Counter

from hascheduler.ports import LeaderLag

QUEUE_JOBS = 50
"""While no more jobs wait, nothing is refused, so that the queue never runs dry."""
RETRY_MAX_S = 15
_LOOK_EVERY_MS = 500
_LAG_MS = 150
"""A leader that is less behind keeps up."""
_IDLE_LAG_MS = 35
"""So does one that is less behind while most slots run no job: at rest it is about 10 ms behind, and decisions that are
many wait for each other for 20 ms."""
_IDLE_BELOW = 0.5
"""The part of the slots that run jobs."""
_TIMES_LEAST_LAG = 3
"""If the database is slow a leader is always behind: then it must be so many times the least of the last minutes."""
_CUT_PER_S = 0.5
_GROWTH_PER_S = 1.2
_LEAST = 0.02


class Intake:
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

    def is_due(self, now_ms: int) -> bool:
        return now_ms - self._looked_at_ms >= _LOOK_EVERY_MS

    def look(self, runnable: int, lag: LeaderLag, now_ms: int) -> None:
        """Adjust the fraction; to be called when it `is_due`."""
        elapsed_s = (now_ms - self._looked_at_ms) / 1_000
        if runnable <= QUEUE_JOBS or not is_late(lag):
            self.fraction = min(self.fraction * _GROWTH_PER_S ** min(elapsed_s, 60), 1.0)
        elif runnable > self._queue:
            self.fraction = max(self.fraction * _CUT_PER_S ** min(elapsed_s, 1), _LEAST)
        self._looked_at_ms, self._queue, self._passed = now_ms, runnable, 0
        self._let_in, self._let_in_before = Counter(), self._let_in

    def refused_unread_s(self, tenant: str | None) -> int | None:
        """As `refused_s`, of a request that is not read yet; ``tenant`` None: its caller may submit for all tenants.
        One that passes is not judged again."""
        retry_after_s = self._judge(tenant)
        self._passed += retry_after_s is None
        return retry_after_s

    def refused_s(self, tenant: str) -> int | None:
        """Return in how many seconds the client should come again; None: the submit may be let in."""
        if self._passed:
            self._passed -= 1
            return None
        return self._judge(tenant)

    def let_in(self, tenant: str, jobs: int) -> None:
        self._let_in[tenant] += jobs

    def _judge(self, tenant: str | None) -> int | None:
        if self.fraction == 1 or self._queue + self._let_in.total() <= QUEUE_JOBS or self._is_within_its_part(tenant):
            return None
        self._owed += self.fraction
        if self._owed >= 1:
            self._owed -= 1
            return None
        self._refusals += 1
        # The more are refused, the later they come back, spread over all seconds until then.
        return 1 + self._refusals % (1 + round((RETRY_MAX_S - 1) * (1 - self.fraction)))

    def _is_within_its_part(self, tenant: str | None) -> bool:
        """Return True for a tenant that got less than half of an equal part: it is not the one that floods."""
        before = self._let_in_before
        return tenant is not None and 2 * len(before) * self._let_in[tenant] < before.total()


def is_late(lag: LeaderLag) -> bool:
    """Return True if the leader does not keep up, for a machine, a database and processors as these."""
    late_ms = _IDLE_LAG_MS if lag.busy < _IDLE_BELOW else _LAG_MS
    return lag.now_ms > max(late_ms, _TIMES_LEAST_LAG * lag.least_ms)
