"""Intake control: keeps submits from crowding out the work that was accepted before them.

Two things together show that intake takes what dispatch needs: the leader's decisions take long to be carried out
(`ClusterView.leader_lag`), and more jobs wait than leave the queue in `QUEUE_S` seconds. By Little's law the wait of
a job is the length of the queue through the rate at which jobs leave it; both are measured, so nothing has to be known
about the machine. Jobs that begin later, wait for others or have no processor are not in that queue
(`ClusterView.runnable`): dispatch has nothing to do for them. A long queue alone is no overload: where the leader keeps
up, jobs wait for processors, and any number of them may. Nor is a slow leader alone: without a queue, intake holds
nothing back. Where most slots run no job though many wait, it is not the processors that they wait for, and a leader
that is a little late is enough: on a fast machine its decisions come back soon, though intake has taken half of what
jobs need. There the leader may not be late at all: that more comes than was ever done of late, and less is done
than was, is the other sign.

::

    free ──── both are seen ───► limited: cut to a part of what is done, at most by half in a tick;
      ▲                          grows by a fifth each second, until both are seen again or, while a queue waits,
      │                          nearly as much comes as was done at most
      └── nothing refused for a while ──┘

- The queue never runs dry: while less than `QUEUE_S` seconds of work wait, all submits are let in.
- Each replica limits its own submits. All cut in proportion to what they have let in, so their shares stay.
- The limit is shared between tenants: one that submits less than an equal part of it is not refused.
- Most refusals are made before a request is read (``unread_bytes``): reading and checking it first would cost nearly
  what a submit costs, and crowd dispatch out as well.
- Fires are never refused. They count as arrivals, so submits get less where they take more.
- A leader of an earlier release does not tell the lag of its decisions; then that of its stream counts.

Pure: time and what is seen are handed in. Sources: Little, A Proof for the Queuing Formula L = λW, 1961; Nichols and
Jacobson, Controlling Queue Delay, 2012 (the delay that stands is the sign, not the length of the queue); Chiu and Jain,
Analysis of the Increase and Decrease Algorithms, 1989 (cuts in proportion share fairly).
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import ceil, exp

from hascheduler.api.admission.estimates import Observed
from hascheduler.ports import LeaderLag

QUEUE_S = 1.0
"""Work for so long may always wait: a client that asks again a second later finds the processors still busy."""
QUEUE_JOBS = 50
"""Where fewer wait, nothing is refused."""
_LAG_MS = 150
"""A leader that is less behind keeps up."""
_IDLE_LAG_MS = 35
"""So does one that is less behind while most slots run no job: at rest it is about 10 ms behind, and decisions that are
many wait for each other for 20 ms."""
_IDLE_BELOW = 0.5
"""The part of the slots that run jobs."""
_BEYOND = 1.2
"""So many times what came, or was done, when most was done is more than can be done."""
_CROWDED_OUT_BELOW = 0.85
"""The part of what was done at most: below it, intake takes what jobs need."""
_TIMES_LEAST_LAG = 3
"""Where the database is slow a leader is always behind: then it must be so many times the least of the last minutes."""
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
"""While a queue waits, all replicas together let in so much of what was done at most."""
_LITTLE = 0.05
"""The part of what was done at most that one replica may always let in more than."""
_LEAST_PER_S = 1.0
_GROWTH_PER_S = 1.2
_FREE_AFTER_MS = 5_000
_LOOKS_PER_S = 10.0
"""Requests of callers for all tenants that are read all the same, to find those of tenants within their part."""
_LOOK_BYTES = 1_024
"""A longer one counts for as many as it has of these."""
_TENANT_MEMORY_MS = 5_000
_TENANTS_MAX = 1_000
_SHARE_MEMORY_MS = 10_000.0
_CAME, _DONE, _ADMITTED = range(3)
"""What is observed: jobs that came, that left the queue, that this replica let in."""


@dataclass(frozen=True, slots=True)
class IntakeSight:
    """What a replica sees when a submit comes. ``pending`` jobs wait, ``runnable`` of them for slots and limits alone;
    both count also what it has let in and not seen yet."""

    pending: int
    runnable: int
    lag: LeaderLag
    now_ms: int


class _Bucket:
    """Tokens for jobs: those of a second at most."""

    __slots__ = ("at_ms", "tokens")

    def __init__(self, tokens: float, at_ms: int) -> None:
        self.tokens, self.at_ms = tokens, at_ms

    def fill(self, per_s: float, now_ms: int) -> float:
        """Return for how many seconds tokens have come."""
        elapsed_s = max(now_ms - self.at_ms, 0) / 1_000
        self.tokens, self.at_ms = min(self.tokens + per_s * elapsed_s, max(per_s * QUEUE_S, 1.0)), now_ms
        return elapsed_s

    def take(self, jobs: int, owed_max: float) -> None:
        self.tokens = max(self.tokens - jobs, -owed_max)


class IntakeControl:
    """Owner of the limit on this replica's submits, and of the measurements from which it follows."""

    def __init__(self) -> None:
        self.limit_per_s: float | None = None
        """Jobs a second that are let in here while work for longer than `QUEUE_S` waits; None: no limit."""
        self._arrived = self._admitted = 0
        self._faded_arrived = self._faded_own = 0.0
        self._observed = Observed(_WINDOW_MS)
        self._most_done_per_s = self._came_then_per_s = 0.0
        self._refused_at_ms = self._refusals = 0
        self._bucket = _Bucket(0.0, 0)
        self._booked = self._looks = 0.0
        self._parts: OrderedDict[str, _Bucket] = OrderedDict()

    def is_holding_back(self, now_ms: int) -> bool:
        """Whether submits are refused here, or were a moment ago."""
        return self.limit_per_s is not None and now_ms - self._refused_at_ms < _FREE_AFTER_MS

    def arrived(self, *, own: bool) -> None:
        """The core counts one more job; ``own``: this replica let it in."""
        self._arrived += 1
        self._faded_arrived += 1
        self._faded_own += own

    def forget(self) -> None:
        """Drop the observations: the core may have started over, so its counts can't be compared with earlier ones."""
        self._observed.clear()

    def admitted(self, tenant: str, jobs: int, now_ms: int) -> None:
        """Count ``jobs`` that were let in."""
        self._admitted += jobs
        if self.limit_per_s is not None:
            self._fill(self.limit_per_s, now_ms)
            # What is let in while the queue is short is owed for a second at most; a batch, wholly.
            owed_max = max(self.limit_per_s * QUEUE_S, jobs)
            self._part_of(tenant, self.limit_per_s, now_ms).take(jobs, owed_max)
            self._bucket.take(jobs, owed_max)

    def retry_after_s(self, tenant: str | None, jobs: int, sight: IntakeSight, unread_bytes: int = 0) -> int | None:
        """Return in how many seconds the client should come again; None: the jobs may be let in now.

        ``tenant`` None: the request of a caller for all tenants, of which only the length is known.
        """
        now_ms = sight.now_ms
        self._observe(sight)
        limit_per_s = self.limit_per_s
        if limit_per_s is None or not self._is_long(sight.runnable) or self._has_room(tenant, limit_per_s, now_ms):
            return None
        if tenant is None and self._looks > 0:
            self._looks -= max(1, unread_bytes / _LOOK_BYTES)
            return None
        self._refused_at_ms = now_ms
        # It comes again when it will have had its turn, after all that were sent away before it.
        self._booked = min(self._booked + jobs, limit_per_s * RETRY_MAX_S + 1)
        wait_s = ceil((self._booked + max(-self._bucket.tokens, 0.0)) / limit_per_s)
        if wait_s < RETRY_MAX_S:
            return max(wait_s, RETRY_MIN_S)
        # Those that are sent away for the longest come back spread over some seconds.
        self._refusals += 1
        return RETRY_MAX_S - self._refusals % _RETRY_SPREAD_S

    # Measuring

    def _observe(self, sight: IntakeSight) -> None:
        """Look at how much comes and is done, and set the limit by it; twice a second."""
        now_ms, counts = sight.now_ms, (self._arrived, self._arrived - sight.pending, self._admitted)
        elapsed_ms = self._observed.add(now_ms, counts)
        if elapsed_ms is None:
            return
        faded = exp(-elapsed_ms / _SHARE_MEMORY_MS)  # what is older counts less
        self._faded_arrived, self._faded_own = self._faded_arrived * faded, self._faded_own * faded
        self._most_done_per_s *= _FORGET_PER_S ** (elapsed_ms / 1_000)
        came_per_s, done_per_s = self._per_s(_CAME), self._per_s(_DONE)
        if done_per_s >= self._most_done_per_s:
            self._most_done_per_s, self._came_then_per_s = done_per_s, max(came_per_s, done_per_s)
        # Without a broker, or with fewer processors, less is done too, but no more comes than before.
        is_less_done = done_per_s < _CROWDED_OUT_BELOW * self._most_done_per_s
        is_crowded_out = is_less_done and came_per_s > _BEYOND * self._came_then_per_s and sight.lag.busy < _IDLE_BELOW
        is_long = self._is_long(sight.runnable)
        if is_long and (is_crowded_out or is_late(sight.lag)):
            self._cut(now_ms, done_per_s)
        elif self.limit_per_s is None or now_ms - self._refused_at_ms >= _FREE_AFTER_MS:
            self.limit_per_s = None
        else:
            # While a queue waits, a little less comes in all than can be done, so that it is worked off; a replica that
            # lets in next to nothing gets its share of that all the same.
            growth, came_per_s = _GROWTH_PER_S, self._observed.per_s(_CAME, _LATELY_MS) or 0.0
            least_per_s, most_per_s = (part * self._most_done_per_s for part in _QUEUED_OF_MOST)
            if is_long and came_per_s >= least_per_s and self.limit_per_s >= _LITTLE * self._most_done_per_s:
                growth = 1.0 if came_per_s < most_per_s else 1 / _GROWTH_PER_S
            self.limit_per_s *= growth ** (elapsed_ms / 1_000)

    def _is_long(self, runnable: int) -> bool:
        """Whether work for longer than `QUEUE_S` waits; not while too little is known of the rate."""
        done_per_s = self._observed.per_s(_DONE)
        return done_per_s is not None and runnable > max(QUEUE_JOBS, QUEUE_S * done_per_s)

    def _per_s(self, count: int) -> float:
        return max(self._observed.per_s(count) or 0.0, 0.0)

    def _cut(self, now_ms: int, done_per_s: float) -> None:
        share = self._faded_own / self._faded_arrived if self._faded_arrived else 1.0
        # While intake crowds it out, little is done; so what was done before bounds the cut from below.
        done_per_s = max(_OF_DONE * done_per_s, _OF_MOST_DONE * self._most_done_per_s)
        admitted_per_s = self._observed.per_s(_ADMITTED, _LATELY_MS) or 0.0
        cut_per_s = max(share * done_per_s, _OF_ADMITTED * admitted_per_s, _LEAST_PER_S)
        if self.limit_per_s is None:
            self._bucket, self._booked, self._looks, self._refused_at_ms = _Bucket(0.0, now_ms), 0.0, 0.0, now_ms
            self._parts.clear()
            self.limit_per_s = cut_per_s
        else:
            self.limit_per_s = min(self.limit_per_s, cut_per_s)

    # While limited

    def _has_room(self, tenant: str | None, limit_per_s: float, now_ms: int) -> bool:
        """A batch is paid for afterwards: where there is room for one job it is let in, and keeps out the next."""
        self._fill(limit_per_s, now_ms)
        # The part first: from its first request on, a tenant has one.
        has_part = tenant is not None and self._part_of(tenant, limit_per_s, now_ms).tokens > 0
        return has_part or self._bucket.tokens > 0

    def _fill(self, limit_per_s: float, now_ms: int) -> None:
        elapsed_s = self._bucket.fill(limit_per_s, now_ms)
        self._booked = max(self._booked - limit_per_s * elapsed_s, 0.0)
        self._looks = min(self._looks + _LOOKS_PER_S * elapsed_s, _LOOKS_PER_S)

    def _part_of(self, tenant: str, limit_per_s: float, now_ms: int) -> _Bucket:
        """What the tenant has left of its equal part of the limit."""
        while self._parts and now_ms - next(iter(self._parts.values())).at_ms >= _TENANT_MEMORY_MS:
            self._parts.popitem(last=False)
        part = self._parts.setdefault(tenant, _Bucket(1.0, now_ms))
        self._parts.move_to_end(tenant)
        if len(self._parts) > _TENANTS_MAX:
            self._parts.popitem(last=False)
        part.fill(limit_per_s / len(self._parts), now_ms)
        return part


def is_late(lag: LeaderLag) -> bool:
    """Whether the leader does not keep up, for a machine, a database and processors as these."""
    late_ms = _IDLE_LAG_MS if lag.busy < _IDLE_BELOW else _LAG_MS
    return lag.now_ms > max(late_ms, _TIMES_LEAST_LAG * lag.least_ms)
