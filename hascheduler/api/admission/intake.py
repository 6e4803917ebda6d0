"""Intake control: keeps submits from crowding out the work that was accepted before them.

Two signs together show that intake takes what dispatch needs: the leader's decisions take long to be carried out
(`ClusterView.leader_lag`), and more jobs wait than leave the queue in `QUEUE_S` seconds. By Little's law the wait of
a job is the length of the queue divided by the rate at which jobs leave it. Both are measured, so nothing has to be
known about the machine. Jobs that begin later, wait for others or have no processor are not in that queue
(`ClusterView.runnable`): they cost dispatch nothing. A long queue alone is no overload: if the leader keeps up,
jobs wait for processors, and any number of them may. Nor is a slow leader alone: without a queue, intake holds
nothing back. If most slots are idle though many jobs wait, the jobs do not wait for processors, and a leader that
is a little late is enough: on a fast machine its decisions come back soon, though intake has taken half of what
jobs need. The leader may then not be late at all: the other sign is that more jobs arrive than were recently ever
done, and fewer are done than before.

::

    free ──── both are seen ───► limited: cut to a part of what is done, at most by half in a tick;
      ▲                          grows by a fifth each second, until both are seen again or, while a queue waits,
      │                          arrivals come close to the highest rate of jobs done
      └── nothing refused for a while ──┘

- The queue never runs dry: while less than `QUEUE_S` seconds of work wait, all submits are admitted.
- Each replica limits its own submits. All cut in proportion to what they have admitted, so their shares stay.
- The limit is shared between tenants: a tenant that submits less than an equal part of it is not refused.
- Most refusals are made before a request is read (``unread_bytes``): reading and checking it first would cost nearly
  as much as a submit, and crowd dispatch out as well.
- Fires are never refused. They count as arrivals, so submits get less if fires take more.
- A leader of an earlier release does not publish the lag of its decisions, so the lag of its stream counts.

Pure: time and observations are arguments. Sources: Little, A Proof for the Queuing Formula L = λW, 1961; Nichols and
Jacobson, Controlling Queue Delay, 2012 (the standing delay is the sign, not the length of the queue); Chiu and Jain,
Analysis of the Increase and Decrease Algorithms, 1989 (cuts in proportion share fairly).
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import ceil, exp

from hascheduler.api.admission.estimates import Observed
from hascheduler.ports import LeaderLag

QUEUE_S = 1.0
"""Seconds of work that may always wait: a client that retries a second later finds the processors still busy."""
QUEUE_JOBS = 50
"""With fewer jobs waiting, nothing is refused."""
_LAG_MS = 150
"""A leader with less lag keeps up."""
_IDLE_LAG_MS = 35
"""The same while most slots are idle: at rest the lag is about 10 ms, and many decisions wait 20 ms for each other."""
_IDLE_BELOW = 0.5
"""The part of the slots that run jobs, below which most count as idle."""
_BEYOND = 1.2
"""The multiple of the arrivals at the highest rate of jobs done, above which arrivals exceed what can be done."""
_CROWDED_OUT_BELOW = 0.85
"""The part of the highest rate of jobs done, below which intake takes what jobs need."""
_TIMES_LEAST_LAG = 3
"""With a slow database a leader always lags: then it is late at this multiple of the least lag of the last minutes."""
RETRY_MIN_S = 1
RETRY_MAX_S = 15
_RETRY_SPREAD_S = 6
_WINDOW_MS = 5_000
_LATELY_MS = 1_000
_OF_DONE = 0.8
_OF_MOST_DONE = 0.3
_FORGET_PER_S = 0.99
_OF_ADMITTED = 0.5
_QUEUED_OF_MOST = (0.8, 0.9)
"""The parts of the highest rate of jobs done between which all replicas together admit while a queue waits."""
_LITTLE = 0.05
"""The part of the highest rate of jobs done, below which the limit of a replica always grows."""
_LEAST_PER_S = 1.0
_GROWTH_PER_S = 1.2
_FREE_AFTER_MS = 5_000
_READS_PER_S = 10.0
"""Requests of callers for all tenants that are read nevertheless, to find those of tenants within their part."""
_READ_BYTES = 1_024
"""A longer request counts once for each of these."""
_TENANT_MEMORY_MS = 5_000
_TENANTS_MAX = 1_000
_SHARE_MEMORY_MS = 10_000.0
_CAME, _DONE, _ADMITTED = range(3)
"""The indexes of the observed counts: jobs that arrived, that left the queue, that this replica admitted."""


@dataclass(frozen=True, slots=True)
class IntakeSight:
    """A replica's observations at a submit.

    ``pending`` jobs wait, ``runnable`` of them only for slots and limits; both include jobs that it has admitted and
    not seen in the stream yet.
    """

    pending: int
    runnable: int
    lag: LeaderLag
    now_ms: int


@dataclass(slots=True)
class _Bucket:
    """Tokens for jobs: those of a second at most."""

    tokens: float
    at_ms: int

    def fill(self, per_s: float, now_ms: int) -> float:
        """Add the tokens due since the last call, and return the seconds since then."""
        elapsed_s = max(now_ms - self.at_ms, 0) / 1_000
        self.tokens, self.at_ms = min(self.tokens + per_s * elapsed_s, max(per_s * QUEUE_S, 1.0)), now_ms
        return elapsed_s

    def take(self, jobs: int, owed_max: float) -> None:
        self.tokens = max(self.tokens - jobs, -owed_max)


class IntakeControl:
    """Owner of the limit on this replica's submits, and of the measurements from which it follows."""

    def __init__(self) -> None:
        self.limit_per_s: float | None = None
        """Jobs a second that are admitted here while work for longer than `QUEUE_S` waits; None if unlimited."""
        self._arrived = self._admitted = 0
        self._faded_arrived = self._faded_own = 0.0
        self._observed = Observed(_WINDOW_MS)
        self._most_done_per_s = self._came_then_per_s = 0.0
        self._refused_at_ms = self._refusals = 0
        self._bucket = _Bucket(0.0, 0)
        self._booked = self._reads = 0.0
        self._parts: OrderedDict[str, _Bucket] = OrderedDict()

    def is_holding_back(self, now_ms: int) -> bool:
        """Return True if submits are refused here, or were a moment ago."""
        return self.limit_per_s is not None and now_ms - self._refused_at_ms < _FREE_AFTER_MS

    def arrived(self, *, own: bool) -> None:
        """Count one more job of the core; ``own`` if this replica admitted it."""
        self._arrived += 1
        self._faded_arrived += 1
        self._faded_own += own

    def forget(self) -> None:
        """Drop the observations: the core may have started over, so its counts can't be compared with earlier ones."""
        self._observed.clear()

    def admitted(self, tenant: str, jobs: int, now_ms: int) -> None:
        """Count ``jobs`` that were admitted."""
        self._admitted += jobs
        if self.limit_per_s is not None:
            self._fill(self.limit_per_s, now_ms)
            # Jobs admitted while the queue is short are owed for a second at most; a batch is owed in full.
            owed_max = max(self.limit_per_s * QUEUE_S, jobs)
            self._part_of(tenant, self.limit_per_s, now_ms).take(jobs, owed_max)
            self._bucket.take(jobs, owed_max)

    def retry_after_s(self, tenant: str | None, jobs: int, sight: IntakeSight, unread_bytes: int = 0) -> int | None:
        """Return in how many seconds the client should retry; None if the jobs may be admitted now.

        ``tenant`` is None for the request of a caller for all tenants, of which only the length is known.
        """
        now_ms = sight.now_ms
        self._observe(sight)
        limit_per_s = self.limit_per_s
        if limit_per_s is None or not self._is_long(sight.runnable) or self._has_room(tenant, limit_per_s, now_ms):
            return None
        if tenant is None and self._reads > 0:
            self._reads -= max(1, unread_bytes / _READ_BYTES)
            return None
        self._refused_at_ms = now_ms
        # The client retries when its turn has come, after all that were refused before it.
        self._booked = min(self._booked + jobs, limit_per_s * RETRY_MAX_S + 1)
        wait_s = ceil((self._booked + max(-self._bucket.tokens, 0.0)) / limit_per_s)
        if wait_s < RETRY_MAX_S:
            return max(wait_s, RETRY_MIN_S)
        # Spread the retries of those refused for the longest time over some seconds.
        self._refusals += 1
        return RETRY_MAX_S - self._refusals % _RETRY_SPREAD_S

    # Measuring

    def _observe(self, sight: IntakeSight) -> None:
        """Measure how much arrives and is done, twice a second, and set the limit by it."""
        now_ms, counts = sight.now_ms, (self._arrived, self._arrived - sight.pending, self._admitted)
        elapsed_ms = self._observed.add(now_ms, counts)
        if elapsed_ms is None:
            return
        faded = exp(-elapsed_ms / _SHARE_MEMORY_MS)  # older counts weigh less
        self._faded_arrived, self._faded_own = self._faded_arrived * faded, self._faded_own * faded
        self._most_done_per_s *= _FORGET_PER_S ** (elapsed_ms / 1_000)
        came_per_s, done_per_s = self._per_s(_CAME), self._per_s(_DONE)
        if done_per_s >= self._most_done_per_s:
            self._most_done_per_s, self._came_then_per_s = done_per_s, max(came_per_s, done_per_s)
        # Without a broker, or with fewer processors, less is done too, but arrivals do not rise.
        is_less_done = done_per_s < _CROWDED_OUT_BELOW * self._most_done_per_s
        is_crowded_out = is_less_done and came_per_s > _BEYOND * self._came_then_per_s and sight.lag.busy < _IDLE_BELOW
        is_long = self._is_long(sight.runnable)
        if is_long and (is_crowded_out or is_late(sight.lag)):
            self._cut(now_ms, done_per_s)
        elif self.limit_per_s is None or now_ms - self._refused_at_ms >= _FREE_AFTER_MS:
            self.limit_per_s = None
        else:
            # While a queue waits, admit a little less in all than can be done, so that the queue drains; a replica that
            # admits next to nothing still gets its share of that.
            growth, came_per_s = _GROWTH_PER_S, self._observed.per_s(_CAME, _LATELY_MS) or 0.0
            least_per_s, most_per_s = (part * self._most_done_per_s for part in _QUEUED_OF_MOST)
            if is_long and came_per_s >= least_per_s and self.limit_per_s >= _LITTLE * self._most_done_per_s:
                growth = 1.0 if came_per_s < most_per_s else 1 / _GROWTH_PER_S
            self.limit_per_s *= growth ** (elapsed_ms / 1_000)

    def _is_long(self, runnable: int) -> bool:
        """Return True if work for longer than `QUEUE_S` waits; False while too little is known of the rate."""
        done_per_s = self._observed.per_s(_DONE)
        return done_per_s is not None and runnable > max(QUEUE_JOBS, QUEUE_S * done_per_s)

    def _per_s(self, count: int) -> float:
        return max(self._observed.per_s(count) or 0.0, 0.0)

    def _cut(self, now_ms: int, done_per_s: float) -> None:
        share = self._faded_own / self._faded_arrived if self._faded_arrived else 1.0
        # While intake crowds dispatch out, little is done, so the earlier rate bounds the cut from below.
        done_per_s = max(_OF_DONE * done_per_s, _OF_MOST_DONE * self._most_done_per_s)
        admitted_per_s = self._observed.per_s(_ADMITTED, _LATELY_MS) or 0.0
        cut_per_s = max(share * done_per_s, _OF_ADMITTED * admitted_per_s, _LEAST_PER_S)
        if self.limit_per_s is None:
            self._bucket, self._booked, self._reads, self._refused_at_ms = _Bucket(0.0, now_ms), 0.0, 0.0, now_ms
            self._parts.clear()
            self.limit_per_s = cut_per_s
        else:
            self.limit_per_s = min(self.limit_per_s, cut_per_s)

    # While limited

    def _has_room(self, tenant: str | None, limit_per_s: float, now_ms: int) -> bool:
        """Return True if there is room for one job: a batch is paid for afterwards, and keeps out the next."""
        self._fill(limit_per_s, now_ms)
        # The part first: a tenant has one from its first request on.
        has_part = tenant is not None and self._part_of(tenant, limit_per_s, now_ms).tokens > 0
        return has_part or self._bucket.tokens > 0

    def _fill(self, limit_per_s: float, now_ms: int) -> None:
        elapsed_s = self._bucket.fill(limit_per_s, now_ms)
        self._booked = max(self._booked - limit_per_s * elapsed_s, 0.0)
        self._reads = min(self._reads + _READS_PER_S * elapsed_s, _READS_PER_S)

    def _part_of(self, tenant: str, limit_per_s: float, now_ms: int) -> _Bucket:
        """Return what the tenant has left of its equal part of the limit."""
        while self._parts and now_ms - next(iter(self._parts.values())).at_ms >= _TENANT_MEMORY_MS:
            self._parts.popitem(last=False)
        part = self._parts.setdefault(tenant, _Bucket(1.0, now_ms))
        self._parts.move_to_end(tenant)
        if len(self._parts) > _TENANTS_MAX:
            self._parts.popitem(last=False)
        part.fill(limit_per_s / len(self._parts), now_ms)
        return part


def is_late(lag: LeaderLag) -> bool:
    """Return True if the leader does not keep up, for this machine, database and processors."""
    late_ms = _IDLE_LAG_MS if lag.busy < _IDLE_BELOW else _LAG_MS
    return lag.now_ms > max(late_ms, _TIMES_LEAST_LAG * lag.least_ms)
