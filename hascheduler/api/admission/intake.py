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
- Most refusals are made before a request is read (`turned_away_s`): reading and checking it first would cost nearly
  what a submit costs, and crowd dispatch out as well.
- Fires are never refused. They count as arrivals, so submits get less where they take more.
- A leader of an earlier release does not tell the lag of its decisions; then that of its stream counts.

Pure: time and what is seen are handed in. Sources: Little, A Proof for the Queuing Formula L = λW, 1961; Nichols and
Jacobson, Controlling Queue Delay, 2012 (the delay that stands is the sign, not the length of the queue); Chiu and Jain,
Analysis of the Increase and Decrease Algorithms, 1989 (cuts in proportion share fairly).
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp

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
_TICK_MS = 500
_WINDOW_MS = 5_000
_ENOUGH_MS = 1_000
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
_SHARE_MEMORY_MS = 10_000.0
_TENANT_MEMORY_MS = 5_000
_TENANTS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class IntakeSight:
    """What a replica sees when a submit comes. ``pending`` jobs wait, ``runnable`` of them for slots and limits alone;
    both count also what it has let in and not seen yet."""

    pending: int
    runnable: int
    lag: LeaderLag
    now_ms: int


@dataclass(frozen=True, slots=True)
class _Observation:
    at_ms: int
    arrived: int
    left: int
    """How many jobs had come, and left the queue, by then."""
    admitted: int
    """How many had been let in here."""


@dataclass(slots=True)
class _TenantPart:
    tokens: float
    at_ms: int


class IntakeControl:
    """Owner of the limit on this replica's submits, and of the measurements from which it follows."""

    def __init__(self) -> None:
        self._limit_per_s: float | None = None
        self._arrived = 0
        self._admitted = 0
        self._observed: deque[_Observation] = deque()
        self._arrivals = _Decaying()
        self._own_arrivals = _Decaying()
        self._most_done_per_s = 0.0
        self._came_then_per_s = 0.0
        self._refused_at_ms = 0
        self._refusals = 0
        self._filled_at_ms = 0
        self._tokens = 0.0
        self._booked = 0.0
        self._looks = 0.0
        self._parts: OrderedDict[str, _TenantPart] = OrderedDict()

    @property
    def limit_per_s(self) -> float | None:
        """Jobs a second that are let in here while work for longer than `QUEUE_S` waits; None: no limit."""
        return self._limit_per_s

    def is_holding_back(self, now_ms: int) -> bool:
        """Whether submits are refused here, or were a moment ago."""
        return self._limit_per_s is not None and now_ms - self._refused_at_ms < _FREE_AFTER_MS

    def arrived(self, *, own: bool, now_ms: int) -> None:
        """The core counts one more job; ``own``: this replica let it in."""
        self._arrived += 1
        self._arrivals.add(1, now_ms)
        if own:
            self._own_arrivals.add(1, now_ms)

    def forget(self) -> None:
        """Drop the observations: the core may have started over, so its counts can't be compared with earlier ones."""
        self._observed.clear()

    def admitted(self, tenant: str, jobs: int, now_ms: int) -> None:
        """Count ``jobs`` that were let in."""
        self._admitted += jobs
        if self._limit_per_s is not None:
            self._fill(self._limit_per_s, now_ms)
            # What is let in while the queue is short is owed for a second at most; a batch, wholly.
            owed_max = max(self._limit_per_s * QUEUE_S, jobs)
            part = self._part_of(tenant, self._limit_per_s, now_ms)
            self._tokens = max(self._tokens - jobs, -owed_max)
            part.tokens = max(part.tokens - jobs, -owed_max)

    def turned_away_s(self, tenant: str | None, length: int, sight: IntakeSight) -> int | None:
        """As `retry_after_s`, for a request of which only the caller and the length in bytes are known; ``tenant``
        None: a caller for all tenants."""
        limit_per_s = self._limit_at(sight)
        if limit_per_s is None or self._has_room(tenant, limit_per_s, sight.now_ms):
            return None
        if tenant is None and self._looks > 0:
            self._looks -= max(1, length / _LOOK_BYTES)
            return None
        return self._booked_s(1, limit_per_s, sight.now_ms)

    def retry_after_s(self, tenant: str, jobs: int, sight: IntakeSight) -> int | None:
        """In how many seconds the client should come again; None: the jobs may be let in now."""
        limit_per_s = self._limit_at(sight)
        if limit_per_s is None or self._has_room(tenant, limit_per_s, sight.now_ms):
            return None
        return self._booked_s(jobs, limit_per_s, sight.now_ms)

    # Measuring

    def _limit_at(self, sight: IntakeSight) -> float | None:
        """The limit that holds now."""
        last_ms = self._observed[-1].at_ms if self._observed else None
        if last_ms is None or sight.now_ms - last_ms >= _TICK_MS:
            self._observe(sight, 0 if last_ms is None else sight.now_ms - last_ms)
        return self._limit_per_s if self._is_long(sight.runnable) else None

    def _observe(self, sight: IntakeSight, elapsed_ms: int) -> None:
        self._observed.append(_Observation(sight.now_ms, self._arrived, self._arrived - sight.pending, self._admitted))
        while sight.now_ms - self._observed[0].at_ms > _WINDOW_MS:
            self._observed.popleft()
        forgotten = _FORGET_PER_S ** (elapsed_ms / 1_000)
        self._most_done_per_s *= forgotten
        done_per_s = self._done_per_s() or 0.0
        if done_per_s >= self._most_done_per_s:
            self._most_done_per_s, self._came_then_per_s = done_per_s, max(self._came_per_s(), done_per_s)
        is_behind = is_late(sight.lag) or self._is_crowded_out(sight.lag.busy)
        if is_behind and self._is_long(sight.runnable):
            self._cut(sight.now_ms)
        elif self._limit_per_s is not None and sight.now_ms - self._refused_at_ms >= _FREE_AFTER_MS:
            self._limit_per_s = None
        elif self._limit_per_s is not None:
            self._limit_per_s *= self._growth_per_s(sight.runnable, self._limit_per_s) ** (elapsed_ms / 1_000)

    def _is_long(self, runnable: int) -> bool:
        """Whether work for longer than `QUEUE_S` waits; not while too little is known of the rate."""
        done_per_s = self._done_per_s()
        return done_per_s is not None and runnable > max(QUEUE_JOBS, QUEUE_S * done_per_s)

    def _is_crowded_out(self, busy: float) -> bool:
        """Whether intake takes what jobs need, though the leader keeps up. Without a broker, or with fewer processors,
        less is done too, but no more comes than before."""
        done_per_s = self._done_per_s()
        is_less_done = done_per_s is not None and done_per_s < _CROWDED_OUT_BELOW * self._most_done_per_s
        return busy < _IDLE_BELOW and is_less_done and self._came_per_s() > _BEYOND * self._came_then_per_s

    def _growth_per_s(self, runnable: int, limit_per_s: float) -> float:
        """While a queue waits, a little less comes in all than can be done, so that it is worked off; a replica that
        lets in next to nothing gets its share of that all the same."""
        least_per_s, most_per_s = (part * self._most_done_per_s for part in _QUEUED_OF_MOST)
        came_per_s = self._lately_per_s(lambda seen: seen.arrived)
        if not self._is_long(runnable) or came_per_s < least_per_s or limit_per_s < _LITTLE * self._most_done_per_s:
            return _GROWTH_PER_S
        return 1.0 if came_per_s < most_per_s else 1 / _GROWTH_PER_S

    def _done_per_s(self) -> float | None:
        """How many jobs left the queue each second; unknown before a second of observations."""
        return self._per_s(lambda seen: seen.left)

    def _came_per_s(self) -> float:
        return self._per_s(lambda seen: seen.arrived) or 0.0

    def _per_s(self, count: Callable[[_Observation], int]) -> float | None:
        if not self._observed:
            return None
        first, last = self._observed[0], self._observed[-1]
        span_ms = last.at_ms - first.at_ms
        return None if span_ms < _ENOUGH_MS else max(count(last) - count(first), 0) * 1_000 / span_ms

    def _lately_per_s(self, count: Callable[[_Observation], int]) -> float:
        """Over the last second, or a little more."""
        last = self._observed[-1]
        since = next((each for each in reversed(self._observed) if last.at_ms - each.at_ms >= _ENOUGH_MS), last)
        span_ms = last.at_ms - since.at_ms
        return (count(last) - count(since)) * 1_000 / span_ms if span_ms else 0.0

    def _cut(self, now_ms: int) -> None:
        arrivals = self._arrivals.value(now_ms)
        share = self._own_arrivals.value(now_ms) / arrivals if arrivals else 1.0
        # While intake crowds it out, little is done; so what was done before bounds the cut from below.
        done_per_s = max(_OF_DONE * (self._done_per_s() or 0), _OF_MOST_DONE * self._most_done_per_s)
        cut_per_s = max(share * done_per_s, _OF_ADMITTED * self._lately_per_s(lambda seen: seen.admitted), _LEAST_PER_S)
        if self._limit_per_s is None:
            self._tokens, self._booked, self._looks, self._filled_at_ms = 0.0, 0.0, 0.0, now_ms
            self._parts.clear()
            self._refused_at_ms = now_ms
            self._limit_per_s = cut_per_s
        else:
            self._limit_per_s = min(self._limit_per_s, cut_per_s)

    # While limited

    def _has_room(self, tenant: str | None, limit_per_s: float, now_ms: int) -> bool:
        """A batch is paid for afterwards: where there is room for one job it is let in, and keeps out the next."""
        self._fill(limit_per_s, now_ms)
        if tenant is None:
            return self._tokens > 0
        # The part first: from its first request on, a tenant has one.
        return self._part_of(tenant, limit_per_s, now_ms).tokens > 0 or self._tokens > 0

    def _fill(self, limit_per_s: float, now_ms: int) -> None:
        elapsed_s = max(now_ms - self._filled_at_ms, 0) / 1_000
        self._filled_at_ms = now_ms
        came = limit_per_s * elapsed_s
        self._tokens = min(self._tokens + came, max(limit_per_s * QUEUE_S, 1.0))
        self._booked = max(self._booked - came, 0.0)
        self._looks = min(self._looks + _LOOKS_PER_S * elapsed_s, _LOOKS_PER_S)

    def _part_of(self, tenant: str, limit_per_s: float, now_ms: int) -> _TenantPart:
        """What the tenant has left of its equal part of the limit."""
        while self._parts and now_ms - next(iter(self._parts.values())).at_ms >= _TENANT_MEMORY_MS:
            self._parts.popitem(last=False)
        part = self._parts.setdefault(tenant, _TenantPart(1.0, now_ms))
        self._parts.move_to_end(tenant)
        if len(self._parts) > _TENANTS_MAX:
            self._parts.popitem(last=False)
        part_per_s = limit_per_s / len(self._parts)
        came = part_per_s * max(now_ms - part.at_ms, 0) / 1_000
        part.tokens, part.at_ms = min(part.tokens + came, max(part_per_s * QUEUE_S, 1.0)), now_ms
        return part

    def _booked_s(self, jobs: int, limit_per_s: float, now_ms: int) -> int:
        """When these will have had their turn, after all that were sent away before them."""
        self._refused_at_ms = now_ms
        self._booked = min(self._booked + jobs, limit_per_s * RETRY_MAX_S + 1)
        wait_s = ceil((self._booked + max(-self._tokens, 0.0)) / limit_per_s)
        if wait_s < RETRY_MAX_S:
            return max(wait_s, RETRY_MIN_S)
        # Those that are sent away for the longest come back spread over some seconds.
        self._refusals += 1
        return RETRY_MAX_S - self._refusals % _RETRY_SPREAD_S


def is_late(lag: LeaderLag) -> bool:
    """Whether the leader does not keep up, for a machine, a database and processors as these."""
    late_ms = _IDLE_LAG_MS if lag.busy < _IDLE_BELOW else _LAG_MS
    return lag.now_ms > max(late_ms, _TIMES_LEAST_LAG * lag.least_ms)


class _Decaying:
    """A sum in which what is older counts less."""

    __slots__ = ("_at_ms", "_sum")

    def __init__(self) -> None:
        self._sum = 0.0
        self._at_ms = 0

    def add(self, count: int, now_ms: int) -> None:
        self._sum = self.value(now_ms) + count
        self._at_ms = now_ms

    def value(self, now_ms: int) -> float:
        return self._sum * exp(-max(now_ms - self._at_ms, 0) / _SHARE_MEMORY_MS)
