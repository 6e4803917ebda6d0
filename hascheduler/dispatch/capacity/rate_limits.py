"""Rate limits: a token bucket for each definition or tenant that has one, and for each value at a limited key.

A bucket's level is counted in ``1 / per_ms`` of a token: every millisecond adds ``count`` of them, and a dispatch or a
fire takes ``per_ms``. A bucket starts full, with each leader too. A clock that goes back adds nothing.

For keys, a full bucket is the same as none, so only buckets that are not full again are kept, and at most `BUCKETS_MAX`
of them; beyond that the least recently used counts as full.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.schema.definition import RateLimit


@dataclass(slots=True)
class TokenBucket:
    limit: RateLimit
    level: int
    at_ms: int

    @classmethod
    def full(cls, limit: RateLimit, now: int) -> "TokenBucket":
        return cls(limit, limit.count * limit.per_ms, now)

    def take(self) -> None:
        """Take a token; an empty bucket stays empty."""
        self.level = max(0, self.level - self.limit.per_ms)

    def refill(self, now: int) -> None:
        if now > self.at_ms:
            full = self.limit.count * self.limit.per_ms
            self.level = min(full, self.level + (now - self.at_ms) * self.limit.count)
            self.at_ms = now

    @property
    def is_full(self) -> bool:
        return self.level >= self.limit.count * self.limit.per_ms

    @property
    def tokens(self) -> int:
        return self.level // self.limit.per_ms

    @property
    def wait_ms(self) -> int:
        """Return the time until the bucket holds a token."""
        return max(0, -((self.level - self.limit.per_ms) // self.limit.count))


class RateLimits:
    """Owner of the buckets of definitions, or of tenants; ``limit_of`` gives the limit of one."""

    def __init__(self, limit_of: Callable[[str], RateLimit | None]) -> None:
        self._limit_of = limit_of
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, name: str, now: int) -> None:
        """Take a token for a dispatch, or a fire; the bucket may be empty if another replica decided it."""
        bucket = self._bucket(name, now)
        if bucket is not None:
            bucket.take()

    def tokens(self, name: str, now: int) -> int | None:
        """Return how many tokens there are now; None without a limit."""
        bucket = self._bucket(name, now)
        return None if bucket is None else bucket.tokens

    def next_at(self, name: str, now: int) -> int | None:
        """Return the instant of the next token, ``now`` or later; None without a limit."""
        bucket = self._bucket(name, now)
        return None if bucket is None else now + bucket.wait_ms

    def rules_changed(self) -> None:
        """Forget the buckets whose limit is gone or has changed."""
        for name, bucket in list(self._buckets.items()):
            if self._limit_of(name) != bucket.limit:
                del self._buckets[name]

    def _bucket(self, name: str, now: int) -> TokenBucket | None:
        limit = self._limit_of(name)
        if limit is None:
            self._buckets.pop(name, None)
            return None
        bucket = self._buckets.get(name)
        if bucket is None or bucket.limit != limit:
            bucket = self._buckets[name] = TokenBucket.full(limit, now)
        bucket.refill(now)
        return bucket


KeyGroup = tuple[str, ...]
"""``("key", definition, tenant, key, value)``: the jobs that one limit per key counts together."""
BUCKETS_MAX = 100_000
_SWEPT_MIN = 1_024


def groups_of(job: JobRef) -> Iterator[KeyGroup]:
    """Yield the groups in which the job counts, even if they have no limits now."""
    for key, value in job.limit_keys or ():
        yield ("key", job.definition, job.tenant, key, value)


class KeyRates:
    """Owner of the buckets of groups, and of when each dry one holds a token again."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._buckets: dict[KeyGroup, TokenBucket] = {}
        self._dry_until_ms: dict[KeyGroup, int] = {}
        self._refills: list[tuple[int, KeyGroup]] = []
        """A heap; an entry that differs from `_dry_until_ms` is outdated."""
        self._lifted: list[KeyGroup] = []
        self._swept_at = _SWEPT_MIN

    def spend(self, job: JobRef, now: int) -> None:
        """Take a token in each group of a dispatched job; a bucket may be empty if another replica decided it."""
        for group in groups_of(job):
            limit = self._rules.definition(job.definition).key_limit(group[3])
            if limit is None or limit.rate_limit is None:
                continue
            bucket = self._buckets.pop(group, None) or TokenBucket.full(limit.rate_limit, now)
            bucket.refill(now)
            bucket.take()
            self._buckets[group] = bucket  # to the end, as the most recently used
            if bucket.wait_ms:
                self._dry_until_ms[group] = now + bucket.wait_ms
                heapq.heappush(self._refills, (now + bucket.wait_ms, group))
            if len(self._buckets) > self._swept_at:
                self._sweep(now)

    def dry_until(self, group: KeyGroup) -> int | None:
        """Return when the group's bucket holds a token again; None if it does now, or has no limit."""
        return self._dry_until_ms.get(group)

    def advance(self, now: int) -> list[KeyGroup]:
        """Let time pass; return the groups whose jobs may go again."""
        lifted, self._lifted = self._lifted, []
        while self._refills and self._refills[0][0] <= now:
            at_ms, group = heapq.heappop(self._refills)
            if self._dry_until_ms.get(group) == at_ms:
                del self._dry_until_ms[group]
                lifted.append(group)
        return lifted

    def next_at(self) -> int | None:
        """Return the instant of the next token for a group that is dry now."""
        while self._refills and self._dry_until_ms.get(self._refills[0][1]) != self._refills[0][0]:
            heapq.heappop(self._refills)
        return self._refills[0][0] if self._refills else None

    def redefined(self, name: str) -> None:
        """Forget the buckets of that definition whose limit is gone or has changed."""
        for group, bucket in list(self._buckets.items()):
            if group[1] == name:
                limit = self._rules.definition(name).key_limit(group[3])
                if limit is None or limit.rate_limit != bucket.limit:
                    self._forget(group)

    def _sweep(self, now: int) -> None:
        for group, bucket in list(self._buckets.items()):
            bucket.refill(now)
            if bucket.is_full:
                self._forget(group)
        while len(self._buckets) > BUCKETS_MAX:
            self._forget(next(iter(self._buckets)))
        self._swept_at = min(max(_SWEPT_MIN, 2 * len(self._buckets)), BUCKETS_MAX + _SWEPT_MIN)
        self._refills = [(at_ms, group) for group, at_ms in self._dry_until_ms.items()]
        heapq.heapify(self._refills)

    def _forget(self, group: KeyGroup) -> None:
        del self._buckets[group]
        if self._dry_until_ms.pop(group, None) is not None:
            self._lifted.append(group)
