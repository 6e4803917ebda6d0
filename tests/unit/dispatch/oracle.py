"""The slow, obvious planner that the fast one must equal.

At every choice it looks at every waiting job, asks every rule, works out every criterion from scratch, sorts, and takes
the first. It shares nothing with the core but the nouns of the model.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.model.job import JobRef, schedule_of
from hascheduler.model.policy import Criterion, IdleKeyStart
from hascheduler.model.processor import ProcessorRef
from hascheduler.schema.definition import Definition, RateLimit
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.tenant import Tenant

Account = tuple[str, str | None]
"""A tenant and one of its keys; None: the tenant as a whole."""


@dataclass(frozen=True)
class Held:
    """A job with its slot; its resources and its conflict group are those that it had when it took the slot."""

    job: JobRef
    processor: str
    needs: dict[str, int]
    group: str | None
    is_shared: bool


@dataclass
class Rested:
    """A processor that did not take up its last jobs; ``trial``: the job that it was given since its rest was over."""

    count: int
    until_ms: int
    trial: str | None = None


@dataclass
class Bucket:
    limit: RateLimit
    level: int
    at_ms: int


@dataclass
class Oracle:
    policy: PolicyConfig
    now: int = 0
    definitions: dict[str, Definition] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    processors: dict[str, ProcessorRef] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    rests: dict[str, Rested] = field(default_factory=dict)
    pause: StandingPause | None = None
    """Of everything."""
    drained: set[str] = field(default_factory=set)
    """Names of processors."""
    waiting: dict[str, JobRef] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    costs: dict[Account, int] = field(default_factory=dict)
    learned: dict[tuple[str, str], int] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    """Jobs whose last claim came to nothing: the next one is the same attempt, and was paid for."""

    def __post_init__(self) -> None:
        self._live: Counter[Account] = Counter()
        self._idle: dict[Account, int] = {}
        self._learned_at: dict[tuple[str, str], int] = {}
        self._buckets: dict[str, Bucket] = {}
        self._key_buckets: dict[tuple[str, ...], Bucket] = {}

    # What happens

    def advance(self, now: int) -> None:
        self.now = now
        for account, since_ms in list(self._idle.items()):
            if since_ms <= now - self.policy.idle_ttl_ms:
                del self._idle[account]
                self.costs.pop(account, None)
        for pair, at_ms in list(self._learned_at.items()):
            if at_ms <= now - self.policy.idle_ttl_ms:
                del self._learned_at[pair], self.learned[pair]

    def arrive(self, job: JobRef) -> None:
        for account in _accounts(job):
            if not self._live[account]:
                active = [
                    self.costs.get(other, 0) for other in self._live if self._live[other] and _vie(other, account)
                ]
                if self.policy.idle_key_start is IdleKeyStart.MIN and active:
                    self.costs[account] = max(self.costs.get(account, 0), min(active))
                self._idle.pop(account, None)
            self._live[account] += 1
        self.waiting[job.id] = job

    def leave(self, job: JobRef) -> None:
        self.waiting.pop(job.id, None)
        self.held.pop(job.id, None)
        for account in _accounts(job):
            self._live[account] -= 1
            if not self._live[account]:
                self._idle[account] = self.now

    def learn(self, job: JobRef, elapsed_ms: int) -> None:
        pair, alpha = (job.definition, job.target), self.policy.cost_alpha
        if self.policy.learn_cost and job.target != job.id:
            known = self.learned.get(pair)
            self.learned[pair] = (
                elapsed_ms if known is None else (alpha * elapsed_ms + (1_000 - alpha) * known) // 1_000
            )
            self._learned_at[pair] = self.now

    def define(self, name: str, definition: Definition | None) -> None:
        if definition is None:
            self.definitions.pop(name, None)
        else:
            self.definitions[name] = definition
        bucket = self._buckets.get(name)
        if bucket is not None and bucket.limit != self._definition(name).rate_limit:
            del self._buckets[name]
        self._bucket(name)
        for group, known in list(self._key_buckets.items()):
            limit = self._definition(group[0]).key_limit(group[2])
            if limit is None or limit.rate_limit != known.limit:
                del self._key_buckets[group]

    def begin_anew(self) -> None:
        """Forget what can't be read from the facts: how full rate limits are, and by which rules slots were taken."""
        self._buckets.clear()
        self._key_buckets.clear()
        for name in self.definitions:
            self._bucket(name)
        for held in list(self.held.values()):
            self._take(held.job, held.processor)

    # What is decided

    def dispatch(self) -> list[tuple[str, str]]:
        """(job, processor), one after the other, until nothing may run."""
        decided = []
        while order := self.order():
            job, processor_id = order[0], self._slot(order[0])
            assert processor_id is not None
            self.hold(job, processor_id)
            decided.append((job.id, processor_id))
        return decided

    def hold(self, job: JobRef, processor_id: str) -> None:
        """The job takes a slot, whether or not it may: its tenant and its key are charged, and that costs a token."""
        definition, bucket = self._definition(job.definition), self._bucket(job.definition)
        if job.id not in self.paid:
            cost = self.learned.get((job.definition, job.target), definition.default_cost_ms)
            for account in _accounts(job):
                self.costs[account] = self.costs.get(account, 0) + cost
            if bucket is not None:
                bucket.level = max(0, bucket.level - bucket.limit.per_ms)
            for key_bucket in self._buckets_of_keys(job):
                key_bucket.level = max(0, key_bucket.level - key_bucket.limit.per_ms)
        self.paid.discard(job.id)
        self.waiting.pop(job.id, None)
        rest = self.rests.get(processor_id)
        if rest is not None and rest.until_ms <= self.now and not self._has_trial(processor_id):
            rest.trial = job.id
        self._take(job, processor_id)

    def missed(self, processor_id: str) -> None:
        """It did not take up a job: it rests for 5 s, then 10, 20, 40, and from then on for 60 s."""
        processor = self.processors.get(processor_id)
        if processor is None or processor_id in self.lost or self._is_draining(processor):
            return
        rest = self.rests.setdefault(processor_id, Rested(0, 0))
        if rest.until_ms <= self.now:
            rest.until_ms = self.now + min(5_000 * 2**rest.count, 60_000)
            rest.count += 1

    def _has_trial(self, processor_id: str) -> bool:
        held = self.held.get(self.rests[processor_id].trial or "")
        return held is not None and held.processor == processor_id

    def order(self) -> list[JobRef]:
        """The waiting jobs that nothing holds back, the next one first."""
        admissible = [job for job in self.waiting.values() if not any(holds for _, holds in self._rules(job))]
        return sorted(admissible, key=self.worth)

    def blocks(self, job: JobRef) -> set[str]:
        """The rules that hold the job back; ``slot`` where no processor can take it."""
        return {rule for rule, holds in self._rules(job) if holds}

    def _rules(self, job: JobRef) -> Iterator[tuple[str, bool]]:
        """Each rule, and whether it holds the job back; what takes longest to tell is last."""
        definition, running = self._definition(job.definition), [held.job for held in self.held.values()]
        bucket, tenant = self._bucket(job.definition), self.tenants.get(job.tenant)
        quota = tenant.max_running if tenant is not None else None

        def is_full(limit: int | None, count: int) -> bool:
            return limit is not None and count >= limit

        yield "paused", self.pause is not None and not self.pause.schedules_only
        yield "not_before", (job.not_before_ms or 0) > self.now
        yield "max_concurrency", is_full(self.policy.max_concurrency, len(running))
        of_tier = sum(self._definition(each.definition).tier == definition.tier for each in running)
        yield "tier", is_full(definition.tier, of_tier)
        yield (
            "definition",
            is_full(definition.max_concurrency, sum(each.definition == definition.name for each in running)),
        )
        yield "rate_limit", bucket is not None and bucket.level < bucket.limit.per_ms
        yield "tenant", is_full(quota, sum(each.tenant == job.tenant for each in running))
        in_conflict = definition.conflict_group is not None and any(
            held.group == definition.conflict_group
            and held.job.target == job.target
            and (held.is_shared or definition.conflict_scope == "shared" or held.job.tenant == job.tenant)
            for held in self.held.values()
        )
        yield "conflict", in_conflict
        too_many = any(
            limit.max_concurrency is not None
            and sum(_is_alike(job, each, limit.key) for each in running) >= limit.max_concurrency
            for limit in definition.key_limits
            if limit.key in dict(job.limit_keys or ())
        )
        yield "key", too_many or any(each.level < each.limit.per_ms for each in self._buckets_of_keys(job))
        yield "serial", job.serial and any(_are_of_one_schedule(job, each) for each in running)
        yield "slot", self._slot(job) is None

    def could_run(self, job: JobRef) -> bool:
        """Whether some processor could take it, were it idle."""
        return any(self._could_take(each, job.definition, self._needs(job)) for each in self._living())

    # Criteria

    def worth(self, job: JobRef) -> tuple[Any, ...]:
        criteria = self.policy.criteria
        if criteria[0] is not Criterion.LANE or all(lane.criteria is None for lane in self.lanes.values()):
            return tuple(self._value(each, job) for each in criteria)
        own = self._lane(job.lane).criteria or criteria
        inner = [self._value(each, job) for each in own if each is not Criterion.LANE]
        return (self._share(job.lane), job.lane, *inner)

    def _value(self, criterion: Criterion, job: JobRef) -> Any:
        age_ms = self.now - job.submitted_at_ms
        match criterion:
            case Criterion.LANE:
                return self._share(job.lane)
            case Criterion.TIER:
                return -(self._definition(job.definition).tier or 0)
            case Criterion.FAIRNESS:
                return [self.costs.get(account, 0) for account in _accounts(job)]
            case Criterion.DEADLINE:
                return float("inf") if job.expires_at_ms is None else job.expires_at_ms
            case Criterion.AGED_PRIORITY:
                steps = max(age_ms, 0) // self._lane(job.lane).promote_after(job.priority)
                return -min(10, job.priority + steps)
            case Criterion.SCORE:
                return -self._score(job, age_ms)
            case Criterion.ARRIVAL:
                return (job.submitted_at_ms, job.sequence, job.id)

    def _score(self, job: JobRef, age_ms: int) -> int:
        takers = [each for each in self._living() if not self._is_draining(each) and _supports(each, job.definition)]
        free = sum(max(self._left(each)[0], 0) for each in takers)
        score = 1_024_000 * job.priority + 16 * age_ms + (500_000 // free if free else 0)
        if job.mode != "on_demand":
            return score
        bonus, bonus_max = 4_096_000 + 32 * age_ms, self.policy.on_demand_bonus_max
        return score + (bonus if bonus_max is None else min(bonus, bonus_max))

    def _share(self, lane: str) -> Fraction:
        total, used = Counter[str](), Counter[str]()
        for processor in self._living():
            total.update({"slots": processor.slots, **dict(processor.resources)})
        for held in self.held.values():
            if held.job.lane == lane:
                used.update({"slots": 1, **held.needs})
        shares = [Fraction(amount, total[name]) for name, amount in used.items() if total[name] > 0]
        return max(shares, default=Fraction(0)) / self._lane(lane).weight

    # Slots and rules

    def _take(self, job: JobRef, processor_id: str) -> None:
        definition = self._definition(job.definition)
        is_shared = definition.conflict_scope == "shared"
        self.held[job.id] = Held(job, processor_id, self._needs(job), definition.conflict_group, is_shared)

    def _slot(self, job: JobRef) -> str | None:
        """The processor that takes the job: the most specialised, then the least busy, then the smallest id."""
        able, needs = [], self._needs(job)
        for processor in self._living():
            if not self._could_take(processor, job.definition, needs):
                continue
            free, left, busy = self._left(processor)
            if free > 0 and _covers(left, needs):
                breadth = float("inf") if processor.takes_any else len(processor.definitions)
                able.append((breadth, Fraction(busy, processor.slots), processor.id))
        return min(able)[2] if able else None

    def _left(self, processor: ProcessorRef) -> tuple[int, dict[str, int], int]:
        here = [held for held in self.held.values() if held.processor == processor.id]
        left = Counter(dict(processor.resources))
        for held in here:
            left.subtract(held.needs)
        free, rest = processor.slots - len(here), self.rests.get(processor.id)
        if rest is not None:
            free = min(free, 0 if rest.until_ms > self.now or self._has_trial(processor.id) else 1)
        return free, dict(left), len(here)

    def _is_draining(self, processor: ProcessorRef) -> bool:
        return processor.draining or processor.name in self.drained

    def _could_take(self, processor: ProcessorRef, definition: str, needs: dict[str, int]) -> bool:
        has = dict(processor.resources)
        takes_jobs = not self._is_draining(processor)
        return takes_jobs and _supports(processor, definition) and _covers(has, needs)

    def _living(self) -> list[ProcessorRef]:
        return [processor for processor in self.processors.values() if processor.id not in self.lost]

    def _needs(self, job: JobRef) -> dict[str, int]:
        return dict(self._definition(job.definition).resources if job.resources is None else job.resources)

    def _definition(self, name: str) -> Definition:
        return self.definitions.get(name) or _default(name)

    def _lane(self, name: str) -> Lane:
        return self.lanes.get(name) or Lane(name=name)

    def _bucket(self, name: str) -> Bucket | None:
        """Full when it is first looked at, and refilled by ``count`` for each ``per_ms``."""
        limit = self._definition(name).rate_limit
        if limit is None:
            return None
        return self._refilled(self._buckets.setdefault(name, Bucket(limit, limit.count * limit.per_ms, self.now)))

    def _buckets_of_keys(self, job: JobRef) -> list[Bucket]:
        values, buckets = dict(job.limit_keys or ()), []
        for each in self._definition(job.definition).key_limits:
            limit = each.rate_limit
            if limit is not None and each.key in values:
                group = (job.definition, job.tenant, each.key, values[each.key])
                full = Bucket(limit, limit.count * limit.per_ms, self.now)
                buckets.append(self._refilled(self._key_buckets.setdefault(group, full)))
        return buckets

    def _refilled(self, bucket: Bucket) -> Bucket:
        limit = bucket.limit
        bucket.level = min(limit.count * limit.per_ms, bucket.level + (self.now - bucket.at_ms) * limit.count)
        bucket.at_ms = self.now
        return bucket


@cache
def _default(name: str) -> Definition:
    return Definition(name=name)


def _accounts(job: JobRef) -> tuple[Account, Account]:
    return (job.tenant, None), (job.tenant, job.fairness_key)


def _vie(one: Account, other: Account) -> bool:
    """Whether both are tenants, or both keys of one tenant."""
    return one[1] is None if other[1] is None else one[1] is not None and one[0] == other[0]


def _is_alike(one: JobRef, other: JobRef, key: str) -> bool:
    """Whether a limit on that key counts both together."""
    values = [dict(each.limit_keys or ()).get(key) for each in (one, other)]
    return (one.definition, one.tenant) == (other.definition, other.tenant) and values[0] == values[1]


def _are_of_one_schedule(one: JobRef, other: JobRef) -> bool:
    """Of that name and of that creation; where one of the jobs does not say it, of that name and tenant."""
    if schedule_of(one.id) is None or schedule_of(one.id) != schedule_of(other.id):
        return False
    if one.schedule_created_at_ms and other.schedule_created_at_ms:
        return one.schedule_created_at_ms == other.schedule_created_at_ms
    return one.tenant == other.tenant


def _supports(processor: ProcessorRef, definition: str) -> bool:
    return processor.takes_any or definition in processor.definitions


def _covers(has: dict[str, int], needs: dict[str, int]) -> bool:
    return all(has.get(name, 0) >= amount for name, amount in needs.items())
