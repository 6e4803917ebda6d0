"""Which kinds of jobs may run now: caps in total, by tier and by definition, quotas, rate limits, and free slots.

Each gate is a mask with a bit for every kind that it holds back. A count that changes moves its own bits, so what may
run now is a few operations on whole numbers, however many jobs wait.
"""

from collections import Counter

from hascheduler.dispatch.explanation import Rule
from hascheduler.dispatch.kinds import Kind, Kinds
from hascheduler.dispatch.pool import SlotPool
from hascheduler.dispatch.profiles import Profile
from hascheduler.dispatch.rates import Rates
from hascheduler.dispatch.rules import Rules

_PROFILES_KEPT_MAX = 1_024


class Gates:
    """Owner of the counts of what runs: in total, by definition, by tenant. Those of tiers follow from them."""

    def __init__(self, rules: Rules, kinds: Kinds, pool: SlotPool, max_concurrency: int | None) -> None:
        self._rules = rules
        self._kinds = kinds
        self._pool = pool
        self._rates = Rates(rules)
        self.max_concurrency = max_concurrency
        self.running = 0
        self.of_definition: Counter[str] = Counter()
        self.of_tenant: Counter[str] = Counter()
        self.of_tier: Counter[int] = Counter()
        # What each gate holds back, by its cause: the definition, the tier, the tenant, and the definition again.
        self._full: dict[tuple[Rule, str | int], int] = {}
        self._dry_until_ms: dict[str, int] = {}
        self._of_tier: dict[int, int] = {}
        self._closed = 0
        self._kinds_seen = -1
        self._profiles: dict[Profile, int] = {}
        self._slots = 0
        self._pool_seen = -1

    # What runs

    def take(self, definition: str, tenant: str) -> None:
        self._count(definition, tenant, 1)

    def give_back(self, definition: str, tenant: str) -> None:
        self._count(definition, tenant, -1)

    def spend(self, definition: str, now: int) -> None:
        """A job of that definition was dispatched: it took one of its tokens."""
        if self._rules.definition(definition).rate_limit is not None:
            self._rates.take(definition, now)
            self._look_at_rate(definition, now)

    def rules_changed(self, now: int) -> None:
        """A definition or a tenant is another now."""
        self.of_tier.clear()
        for name, count in self.of_definition.items():
            tier = self._rules.definition(name).tier
            if tier is not None:
                self.of_tier[tier] += count
        self._rates.rules_changed()
        self._dry_until_ms.clear()
        for name, definition in self._rules.definitions.items():
            if definition.rate_limit is not None:
                self._look_at_rate(name, now)
        self._kinds_seen = -1

    def _count(self, definition: str, tenant: str, more: int) -> None:
        self.running += more
        rules = self._rules.definition(definition)
        self.of_definition[definition] += more
        if rules.max_concurrency is not None:
            self._recount(Rule.DEFINITION, definition)
        if rules.tier is not None:
            self.of_tier[rules.tier] += more
            self._recount(Rule.TIER, rules.tier)
        self.of_tenant[tenant] += more
        if self._rules.tenants:
            self._recount(Rule.TENANT, tenant)
        if not self.of_definition[definition]:
            del self.of_definition[definition]
        if not self.of_tenant[tenant]:
            del self.of_tenant[tenant]

    # What may run

    def open(self, now: int) -> int:
        """A bit for each kind that may run now; of one that needs resources it says only that there are slots."""
        self._refill(now)
        if self.max_concurrency is not None and self.running >= self.max_concurrency:
            return 0
        if self._kinds_seen != self._kinds.changes:
            self._rebuild()
        if self._pool_seen != self._pool.changes:
            self._pool_seen = self._pool.changes
            self._slots = 0
            if len(self._profiles) > _PROFILES_KEPT_MAX:
                self._profiles.clear()  # most have gone
            for profile in self._pool.open():
                self._slots |= self._of_profile(profile)
        return self._slots & ~self._closed

    def next_at(self) -> int | None:
        """When a rate limit lets some kind go again that it holds back now."""
        return min(self._dry_until_ms.values(), default=None)

    def dry_until(self, definition: str) -> int | None:
        return self._dry_until_ms.get(definition)

    def fits(self, kind: Kind) -> bool:
        """Whether a processor has a slot and the resources for it."""
        return self._pool.choose(kind.definition.name, kind.needs) is not None

    def closing(self, kind: Kind, now: int) -> list[Rule]:
        """Every gate that holds jobs of that kind back now, slots and resources aside."""
        self._refill(now)
        definition, tier, tenant = kind.definition.name, kind.definition.tier, kind.tenant
        asked = (
            (Rule.TOTAL, self.max_concurrency is not None and self.running >= self.max_concurrency),
            (Rule.TIER, tier is not None and self._is_full(Rule.TIER, tier)),
            (Rule.DEFINITION, self._is_full(Rule.DEFINITION, definition)),
            (Rule.RATE, definition in self._dry_until_ms),
            (Rule.TENANT, tenant is not None and self._is_full(Rule.TENANT, tenant)),
        )
        return [rule for rule, is_closed in asked if is_closed]

    def _is_full(self, rule: Rule, cause: str | int) -> bool:
        match rule, cause:
            case Rule.DEFINITION, str():
                limit, count = self._rules.definition(cause).max_concurrency, self.of_definition[cause]
            case Rule.TENANT, str():
                limit, count = self._rules.quota(cause), self.of_tenant[cause]
            case _:
                limit, count = int(cause), self.of_tier[int(cause)]
        return limit is not None and count >= limit

    def _refill(self, now: int) -> None:
        for name, until_ms in list(self._dry_until_ms.items()) if self._dry_until_ms else ():
            if until_ms <= now:
                self._look_at_rate(name, now)

    def _recount(self, rule: Rule, cause: str | int) -> None:
        self._close(rule, cause, is_full=self._is_full(rule, cause))

    def _close(self, rule: Rule, cause: str | int, *, is_full: bool) -> None:
        """Close that gate, or open it again."""
        if is_full != ((rule, cause) in self._full):
            if is_full:
                self._full[rule, cause] = self._bits(rule, cause)
            else:
                del self._full[rule, cause]
            self._combine()

    def _look_at_rate(self, definition: str, now: int) -> None:
        at_ms = self._rates.next_at(definition, now)
        is_dry = at_ms is not None and at_ms > now
        if is_dry:
            self._dry_until_ms[definition] = at_ms or 0
        else:
            self._dry_until_ms.pop(definition, None)
        self._close(Rule.RATE, definition, is_full=is_dry)

    def _bits(self, rule: Rule, cause: str | int) -> int:
        match rule, cause:
            case ((Rule.DEFINITION | Rule.RATE), str()):
                return self._kinds.of_definition.get(cause, 0)
            case Rule.TENANT, str():
                return self._kinds.of_tenant.get(cause, 0)
            case _:
                return self._of_tier.get(int(cause), 0)

    def _combine(self) -> None:
        self._closed = 0
        for bits in self._full.values():
            self._closed |= bits

    def _rebuild(self) -> None:
        """There are other kinds now, or other rules."""
        self._kinds_seen = self._kinds.changes
        self._profiles.clear()
        self._pool_seen = -1
        self._of_tier.clear()
        for kind in self._kinds:
            tier = kind.definition.tier
            if tier is not None:
                self._of_tier[tier] = self._of_tier.get(tier, 0) | 1 << kind.bit
        causes: list[tuple[Rule, str | int]] = [
            *((Rule.DEFINITION, name) for name in self.of_definition),
            *((Rule.TIER, tier) for tier in self.of_tier),
            *((Rule.TENANT, tenant) for tenant in {*self.of_tenant, *self._kinds.of_tenant}),
        ]
        self._full = {cause: self._bits(*cause) for cause in causes if self._is_full(*cause)}
        self._full |= {(Rule.RATE, name): self._bits(Rule.RATE, name) for name in self._dry_until_ms}
        self._combine()

    def _of_profile(self, profile: Profile) -> int:
        known = self._profiles.get(profile)
        if known is None:
            known = sum(1 << kind.bit for kind in self._kinds if profile.supports(kind.definition.name))
            self._profiles[profile] = known
        return known
