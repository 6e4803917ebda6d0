"""Which jobs may run now: caps in total, by tier and by definition, quotas, rate limits, and free slots.

Jobs that share their definition, demand for resources, and tenant with a quota form one *scheduling class*. Except for
the locks on its target, a job may run now if its class may. So each class is one bit, and each limit a mask of the
classes that it holds back. A count that changes moves only its own bits: what may run now takes a few operations on
integers, however many jobs wait, and no job that can't run is ever checked.
"""

from collections import Counter
from collections.abc import Iterator

from hascheduler.dispatch.capacity.rate_limits import RateLimits
from hascheduler.dispatch.capacity.slot_pool import ProcessorProfile, SlotPool
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.partition import ALL_JOBS, definition_key, definition_of_key, tier_key, tier_of_key
from hascheduler.model.resources import Resources
from hascheduler.schema.definition import Definition


class SchedulingClass:
    """Jobs that the limits treat alike.

    ``needs`` are the resources that its jobs take besides a slot; ``tenant`` is None without a quota.
    """

    __slots__ = ("bit", "definition", "needs", "own", "tenant")

    def __init__(self, bit: int, definition: Definition, own: Resources | None, tenant: str | None) -> None:
        self.bit = bit
        self.definition = definition
        self.own = own
        self.needs = definition.needs(own)
        self.tenant = tenant


class SchedulingClasses:
    """Owner of the classes. ``changes`` grows when one is added or forgotten, or its definition changes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._classes: dict[tuple[str, Resources | None, str | None], SchedulingClass] = {}
        self.of_definition: dict[str, int] = {}
        """The bits of each definition's classes."""
        self.of_tenant: dict[str, int] = {}
        """The bits of the classes of each tenant with a quota."""
        self.changes = 0

    def __len__(self) -> int:
        return len(self._classes)

    def __iter__(self) -> Iterator[SchedulingClass]:
        return iter(self._classes.values())

    def of(self, job: JobRef) -> SchedulingClass:
        tenant = job.tenant if self._rules.tenants and self._rules.quota(job.tenant) is not None else None
        key = (job.definition, job.resources, tenant)
        known = self._classes.get(key)
        if known is None:
            known = SchedulingClass(len(self._classes), self._rules.definition(job.definition), job.resources, tenant)
            self._classes[key] = known
            bit = 1 << known.bit
            self.of_definition[job.definition] = self.of_definition.get(job.definition, 0) | bit
            if tenant is not None:
                self.of_tenant[tenant] = self.of_tenant.get(tenant, 0) | bit
            self.changes += 1
        return known

    def redefined(self, name: str) -> list[SchedulingClass]:
        """Update the classes of a changed definition, and return them."""
        definition = self._rules.definition(name)
        found = [job_class for job_class in self._classes.values() if job_class.definition.name == name]
        for job_class in found:
            job_class.definition = definition
            job_class.needs = definition.needs(job_class.own)
        self.changes += 1
        return found

    def forget(self) -> None:
        """Forget all classes; each comes back with its next job."""
        for table in (self._classes, self.of_definition, self.of_tenant):
            table.clear()
        self.changes += 1


_PROFILES_KEPT_MAX = 1_024


class AdmissionLimits:
    """Owner of the counts of running jobs: in total, by definition, by tenant. Those of tiers follow from them.

    ``cap`` limits all jobs of the deployment together; None if they are not limited.
    """

    def __init__(self, rules: Rules, classes: SchedulingClasses, pool: SlotPool, cap: int | None) -> None:
        self._rules = rules
        self._classes = classes
        self._pool = pool
        self._rates = RateLimits(lambda name: rules.definition(name).rate_limit)
        self.cap = cap
        self.max_concurrency: int | None = None
        self.running = 0
        self.of_definition: Counter[str] = Counter()
        self.of_tenant: Counter[str] = Counter()
        self.of_tier: Counter[int] = Counter()
        # The classes that each limit holds back, by its cause (definition, tier or tenant).
        self._full: dict[tuple[BlockReason, str | int], int] = {}
        self._dry_until_ms: dict[str, int] = {}
        self._of_tier: dict[int, int] = {}
        self._closed = 0
        self._classes_seen = -1
        self._profiles: dict[ProcessorProfile, int] = {}
        self._slots = 0
        self._pool_seen = -1
        self._divide_cap()

    # What runs

    def take(self, definition: str, tenant: str) -> None:
        self._count(definition, tenant, 1)

    def give_back(self, definition: str, tenant: str) -> None:
        self._count(definition, tenant, -1)

    def spend(self, definition: str, now: int) -> None:
        """Take a token of the definition's rate limit for a dispatched job."""
        if self._rules.definition(definition).rate_limit is not None:
            self._rates.take(definition, now)
            self._check_rate(definition, now)

    def rules_changed(self, now: int) -> None:
        """Recompute what depends on definitions, tenants and holds."""
        self._divide_cap()
        self.of_tier.clear()
        for name, count in self.of_definition.items():
            tier = self._rules.definition(name).tier
            if tier is not None:
                self.of_tier[tier] += count
        self._rates.rules_changed()
        self._dry_until_ms.clear()
        for name, definition in self._rules.definitions.items():
            if definition.rate_limit is not None:
                self._check_rate(name, now)
        self._classes_seen = -1

    def in_use(self, key: str) -> int:
        """Return how many of the jobs that the cap of that key limits are dispatched or running here."""
        if key == ALL_JOBS:
            return self.running
        tier = tier_of_key(key)
        return self.of_definition[definition_of_key(key) or ""] if tier is None else self.of_tier[tier]

    def _divide_cap(self) -> None:
        self.max_concurrency = None if self.cap is None else self._rules.part_of(ALL_JOBS, self.cap)

    def _count(self, definition: str, tenant: str, more: int) -> None:
        self.running += more
        rules = self._rules.definition(definition)
        self.of_definition[definition] += more
        if rules.max_concurrency is not None:
            self._recount(BlockReason.DEFINITION, definition)
        if rules.tier is not None:
            self.of_tier[rules.tier] += more
            self._recount(BlockReason.TIER, rules.tier)
        self.of_tenant[tenant] += more
        if self._rules.tenants:
            self._recount(BlockReason.TENANT, tenant)
        if not self.of_definition[definition]:
            del self.of_definition[definition]
        if not self.of_tenant[tenant]:
            del self.of_tenant[tenant]

    # What may run

    def open(self, now: int) -> int:
        """Return a bit for each class that may run now; for a class that needs resources, only slots are checked."""
        self._refill(now)
        if self.max_concurrency is not None and self.running >= self.max_concurrency:
            return 0
        if self._classes_seen != self._classes.changes:
            self._rebuild()
        if self._pool_seen != self._pool.changes:
            self._pool_seen = self._pool.changes
            self._slots = 0
            if len(self._profiles) > _PROFILES_KEPT_MAX:
                self._profiles.clear()  # most of them are gone
            for profile in self._pool.open():
                self._slots |= self._of_profile(profile)
        return self._slots & ~self._closed

    def next_at(self) -> int | None:
        """Return the instant at which a rate limit lifts for a class that it holds back now."""
        return min(self._dry_until_ms.values(), default=None)

    def dry_until(self, definition: str) -> int | None:
        return self._dry_until_ms.get(definition)

    def fits(self, job_class: SchedulingClass) -> bool:
        """Return True if a processor has a free slot and the resources for a job of that class."""
        return self._pool.choose(job_class.definition.name, job_class.needs) is not None

    def closing(self, job_class: SchedulingClass, now: int) -> list[BlockReason]:
        """Return every limit that holds back jobs of that class now, except slots and resources."""
        self._refill(now)
        definition, tier, tenant = job_class.definition.name, job_class.definition.tier, job_class.tenant
        asked = (
            (BlockReason.TOTAL, self.max_concurrency is not None and self.running >= self.max_concurrency),
            (BlockReason.TIER, tier is not None and self._is_full(BlockReason.TIER, tier)),
            (BlockReason.DEFINITION, self._is_full(BlockReason.DEFINITION, definition)),
            (BlockReason.RATE, definition in self._dry_until_ms),
            (BlockReason.TENANT, tenant is not None and self._is_full(BlockReason.TENANT, tenant)),
        )
        return [rule for rule, is_closed in asked if is_closed]

    def short_of(self, job_class: SchedulingClass, now: int) -> list[str]:
        """Return the keys of the caps with turns that hold back jobs of that class; none if anything else does too."""
        name, tier = job_class.definition.name, job_class.definition.tier
        whole = self._rules.whole_definitions.get(name)
        caps = {
            BlockReason.TOTAL: (ALL_JOBS, self.cap),
            BlockReason.TIER: (tier_key(tier or 0), tier),
            BlockReason.DEFINITION: (definition_key(name), None if whole is None else whole.max_concurrency),
        }
        turns = {rule: key for rule, (key, cap) in caps.items() if cap is not None and self._rules.has_turns(cap)}
        closing = self.closing(job_class, now)
        return [turns[rule] for rule in closing] if turns.keys() >= set(closing) and self.fits(job_class) else []

    def _is_full(self, rule: BlockReason, cause: str | int) -> bool:
        match rule, cause:
            case BlockReason.DEFINITION, str():
                limit, count = self._rules.definition(cause).max_concurrency, self.of_definition[cause]
            case BlockReason.TENANT, str():
                limit, count = self._rules.quota(cause), self.of_tenant[cause]
            case _:
                tier = int(cause)
                limit, count = self._rules.part_of(tier_key(tier), tier), self.of_tier[tier]
        return limit is not None and count >= limit

    def _refill(self, now: int) -> None:
        for name, until_ms in list(self._dry_until_ms.items()) if self._dry_until_ms else ():
            if until_ms <= now:
                self._check_rate(name, now)

    def _recount(self, rule: BlockReason, cause: str | int) -> None:
        self._close(rule, cause, is_full=self._is_full(rule, cause))

    def _close(self, rule: BlockReason, cause: str | int, *, is_full: bool) -> None:
        """Apply that limit, or lift it."""
        if is_full != ((rule, cause) in self._full):
            if is_full:
                self._full[rule, cause] = self._bits(rule, cause)
            else:
                del self._full[rule, cause]
            self._combine()

    def _check_rate(self, definition: str, now: int) -> None:
        at_ms = self._rates.next_at(definition, now)
        is_dry = at_ms is not None and at_ms > now
        if is_dry:
            self._dry_until_ms[definition] = at_ms or 0
        else:
            self._dry_until_ms.pop(definition, None)
        self._close(BlockReason.RATE, definition, is_full=is_dry)

    def _bits(self, rule: BlockReason, cause: str | int) -> int:
        match rule, cause:
            case ((BlockReason.DEFINITION | BlockReason.RATE), str()):
                return self._classes.of_definition.get(cause, 0)
            case BlockReason.TENANT, str():
                return self._classes.of_tenant.get(cause, 0)
            case _:
                return self._of_tier.get(int(cause), 0)

    def _combine(self) -> None:
        self._closed = 0
        for bits in self._full.values():
            self._closed |= bits

    def _rebuild(self) -> None:
        """Recompute all masks after a change of classes or rules."""
        self._classes_seen = self._classes.changes
        self._profiles.clear()
        self._pool_seen = -1
        self._of_tier.clear()
        for job_class in self._classes:
            tier = job_class.definition.tier
            if tier is not None:
                self._of_tier[tier] = self._of_tier.get(tier, 0) | 1 << job_class.bit
        causes: list[tuple[BlockReason, str | int]] = [
            # Also causes without running jobs: this shard's part of a cap may be 0.
            *((BlockReason.DEFINITION, name) for name in {*self.of_definition, *self._classes.of_definition}),
            *((BlockReason.TIER, tier) for tier in {*self.of_tier, *self._of_tier}),
            *((BlockReason.TENANT, tenant) for tenant in {*self.of_tenant, *self._classes.of_tenant}),
        ]
        self._full = {cause: self._bits(*cause) for cause in causes if self._is_full(*cause)}
        self._full |= {(BlockReason.RATE, name): self._bits(BlockReason.RATE, name) for name in self._dry_until_ms}
        self._combine()

    def _of_profile(self, profile: ProcessorProfile) -> int:
        known = self._profiles.get(profile)
        if known is None:
            known = sum(
                1 << job_class.bit for job_class in self._classes if profile.supports(job_class.definition.name)
            )
            self._profiles[profile] = known
        return known
