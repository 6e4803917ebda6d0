"""Rate limits: one token bucket per definition or tenant that has one, exact in whole numbers. (Those of groups of jobs
are in `key_rates`.)

A bucket's level is counted in ``1 / per_ms`` of a token: every millisecond adds ``count`` of them, a dispatch or a fire
takes ``per_ms``. It begins full, and does so with each leader. A clock that goes back adds nothing.

Of a definition's limit over several shards each has a bucket of its share. One whose share moves keeps its level, as
far as it still fits: it never begins full for that (`hascheduler.model.share` says what this keeps).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hascheduler.dispatch.rules import Rules
from hascheduler.model.definition import RateLimit
from hascheduler.model.values.instants import LATEST_MS


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

    def resize(self, limit: RateLimit, now: int) -> None:
        """It is of another share from ``now`` on: what is above the new full level is dropped, and none is added."""
        self.refill(now)
        self.limit = limit
        self.level = min(self.level, limit.count * limit.per_ms)

    @property
    def is_full(self) -> bool:
        return self.level >= self.limit.count * self.limit.per_ms

    @property
    def tokens(self) -> int:
        return self.level // self.limit.per_ms

    @property
    def wait_ms(self) -> int:
        """The time until the bucket holds a token."""
        return max(0, -((self.level - self.limit.per_ms) // self.limit.count))


@dataclass(slots=True)
class TokensTaken:
    """How many tokens were taken within the last ``per_ms``, from the counts of this period and the one before.

    It is what is used of a share, and does not depend on how large the share is: the tokens that are missing from a
    bucket become fewer when its share is lowered, and are few where jobs come evenly, however fast.
    """

    limit: RateLimit
    period: int = 0
    in_period: int = 0
    in_period_before: int = 0

    def take(self, now: int) -> None:
        self._advance(now)
        self.in_period += 1

    def lately(self, now: int) -> int:
        """As if those of the period before had been taken evenly; rounded up."""
        self._advance(now)
        per_ms = self.limit.per_ms
        return self.in_period - self.in_period_before * (now % per_ms - per_ms) // per_ms

    def _advance(self, now: int) -> None:
        gone = now // self.limit.per_ms - self.period
        if gone > 0:
            self.in_period_before = self.in_period if gone == 1 else 0
            self.in_period = 0
            self.period += gone


class DispatchRates:
    """Owner of the buckets of definitions, and of how much was taken from them lately."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._buckets: dict[str, TokenBucket] = {}
        self._taken: dict[str, TokensTaken] = {}
        """With the limits over all shards."""

    def take(self, definition: str, now: int) -> None:
        """A job of it was dispatched; the bucket may be empty where another replica decided that."""
        bucket = self._bucket(definition, now)
        if bucket is not None:
            bucket.take()
            self._taken[definition].take(now)

    def next_at(self, definition: str, now: int) -> int | None:
        """The instant of the next token: ``now`` or later, `LATEST_MS` where this shard has nothing of the rate; None:
        no limit."""
        bucket = self._bucket(definition, now)
        if bucket is None:
            return None
        return now + bucket.wait_ms if bucket.limit.count else LATEST_MS

    def taken_lately(self, now: int) -> Mapping[str, int]:
        """By definition: the tokens that were taken within the time in which its bucket fills; those without are left
        out."""
        return {name: count for name, taken in self._taken.items() if (count := taken.lately(now))}

    def rules_changed(self, now: int) -> None:
        """Forget the buckets of definitions that have no limit any more, or another; give others their new shares."""
        for name, bucket in list(self._buckets.items()):
            limit = self._rules.definition(name).rate_limit
            if limit is None or self._rules.whole_rate(name) != self._taken[name].limit:
                del self._buckets[name], self._taken[name]
            elif limit != bucket.limit:
                bucket.resize(limit, now)

    def _bucket(self, definition: str, now: int) -> TokenBucket | None:
        limit = self._rules.definition(definition).rate_limit
        bucket = self._buckets.get(definition)
        if limit is None:
            return None
        if bucket is None:
            bucket = self._buckets[definition] = TokenBucket.full(limit, now)
            self._taken[definition] = TokensTaken(self._rules.whole_rate(definition) or limit)
        bucket.refill(now)
        return bucket


class FireRates:
    """Owner of the buckets of tenants: how fast their schedules fire."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._buckets: dict[str, TokenBucket] = {}

    def tokens(self, tenant: str, now: int) -> int | None:
        """The number of fires that are allowed now; None: no limit."""
        bucket = self._bucket(tenant, now)
        return None if bucket is None else bucket.tokens

    def take(self, tenant: str, now: int) -> None:
        """A schedule of the tenant fired."""
        bucket = self._bucket(tenant, now)
        if bucket is not None:
            bucket.take()

    def _bucket(self, tenant: str, now: int) -> TokenBucket | None:
        known = self._rules.tenants.get(tenant)
        limit = known.fire_rate if known is not None else None
        if limit is None:
            self._buckets.pop(tenant, None)
            return None
        bucket = self._buckets.get(tenant)
        if bucket is None or bucket.limit != limit:
            bucket = self._buckets[tenant] = TokenBucket.full(limit, now)
        bucket.refill(now)
        return bucket
