"""Rate limits: one token bucket per definition or tenant that has one, exact in whole numbers. (Those of groups of jobs
are in `key_rates`.)

A bucket's level is counted in ``1 / per_ms`` of a token: every millisecond adds ``count`` of them, a dispatch or a fire
takes ``per_ms``. It begins full, and does so with each leader. A clock that goes back adds nothing.
"""

from dataclasses import dataclass

from hascheduler.dispatch.rules import Rules
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
        """The time until the bucket holds a token."""
        return max(0, -((self.level - self.limit.per_ms) // self.limit.count))


class DispatchRates:
    """Owner of the buckets of definitions."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, definition: str, now: int) -> None:
        """A job of it was dispatched; the bucket may be empty where another replica decided that."""
        bucket = self._bucket(definition, now)
        if bucket is not None:
            bucket.take()

    def next_at(self, definition: str, now: int) -> int | None:
        """Return the instant of the next token, ``now`` or later; None: no limit."""
        bucket = self._bucket(definition, now)
        return None if bucket is None else now + bucket.wait_ms

    def rules_changed(self) -> None:
        """Forget the buckets of definitions that have no limit any more, or another."""
        for name, bucket in list(self._buckets.items()):
            if self._rules.definition(name).rate_limit != bucket.limit:
                del self._buckets[name]

    def _bucket(self, definition: str, now: int) -> TokenBucket | None:
        limit = self._rules.definition(definition).rate_limit
        bucket = self._buckets.get(definition)
        if limit is None:
            return None
        if bucket is None:
            bucket = self._buckets[definition] = TokenBucket.full(limit, now)
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
