"""Why a job waits, derived from what decides: the same limits, locks, slots and criteria, read but never changed.

Each reason has its numbers: the holders of the lock, what each processor lacks, how many jobs run and how many may.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits, SchedulingClass, SchedulingClasses
from hascheduler.dispatch.capacity.locks import LockTable
from hascheduler.dispatch.capacity.rate_limits import KeyGroup, KeyRates
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.explanation import (
    Block,
    BlockReason,
    CriterionValue,
    Explanation,
    Figure,
    Overdue,
    QueuePosition,
)
from hascheduler.dispatch.live_jobs.table import LiveJobs
from hascheduler.dispatch.queue.criteria import Measures
from hascheduler.dispatch.queue.pending_queue import PendingQueue
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef, JobState, is_batch
from hascheduler.model.partition import tier_key
from hascheduler.model.policy import Criterion
from hascheduler.model.processor import NOT_CONSUMING, ProcessorRef
from hascheduler.model.values.instants import LATEST_MS, WallMs, format_instant
from hascheduler.schema.pause import StandingPause, drain_id

COMPARED_MAX = 5_000
"""The most waiting jobs compared with the job in question; more would delay decisions."""
UNSCHEDULABLE_MAX = 10_000
_NAMED_MAX = 5
NOT_NAMED = "a job of another tenant"
_CAPACITY = frozenset({BlockReason.NO_SLOT, BlockReason.PAUSED, BlockReason.TOTAL})
"""The reasons that hold back all jobs alike."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """A reader of the parts of one dispatcher."""

    _rules: Rules
    _jobs: LiveJobs
    _queue: PendingQueue
    _classes: SchedulingClasses
    _limits: AdmissionLimits
    _pool: SlotPool
    _locks: LockTable
    _key_rates: KeyRates
    _measures: Measures

    def explain(self, job_id: str, now: WallMs, *, is_silent: bool, only: str | None = None) -> Explanation | None:
        """Return the explanation, or None if no such job is known.

        ``is_silent`` if the broker accepts no messages at the moment. With ``only``, jobs of other tenants are not
        named.
        """
        job = self._jobs.get(job_id)
        if job is None:
            return None
        processor_id = self._pool.processor_of(job_id)
        if processor_id is not None:
            state = "running" if job.state is JobState.RUNNING else "dispatched"
            overdue = Overdue(job.attempt, job.overdue_since_ms) if job.is_overdue else None
            return Explanation(job_id, state, processor_id, overdue=overdue)
        blocks = self._own_blocks(job, now, only)
        if is_silent:
            blocks.insert(
                0, Block(BlockReason.TRANSPORT, "the broker accepts no messages", "when it accepts messages again")
            )
        pause = self._rules.dispatch_pause
        if pause is not None:
            blocks.insert(0, _paused(pause))
        blocks += self._blocks(job, self._classes.of(job), now, only)
        position = None
        if job_id in self._queue and {block.rule for block in blocks} <= _CAPACITY:
            position = self._position(job, now, only, is_admissible=not blocks)
        return Explanation(job_id, "waiting", None, tuple(blocks), position)

    def _named(self, ids: Sequence[str], only: str | None) -> list[str]:
        return [id if only is None or self._tenant_of(id) == only else NOT_NAMED for id in ids]

    def _tenant_of(self, job_id: str) -> str | None:
        job = self._jobs.get(job_id)
        return None if job is None else job.tenant

    def unschedulable(self) -> list[str]:
        """Return the ids of waiting jobs that no registered processor could ever run, in order; at most 10,000."""
        stuck = {
            job_class
            for job_class in self._classes
            if not self._pool.could_run(job_class.definition.name, job_class.needs)
        }
        return sorted({job.id for job in islice(self._queue.jobs_of(stuck), UNSCHEDULABLE_MAX)}) if stuck else []

    # Blocks

    def _own_blocks(self, job: JobRef, now: WallMs, only: str | None) -> list[Block]:
        """Return the blocks of this job alone."""
        blocks = []
        if self._jobs.is_in_doubt(job.id):
            because = "its document was not as expected, so it is being read again"
            blocks.append(Block(BlockReason.IN_DOUBT, because, "when it has been read, in about a second"))
        if job.cancel_requested_at_ms is not None or self._jobs.is_replaced(job.id):
            because = "its cancellation was requested"
            blocks.append(Block(BlockReason.CANCELLING, because, "never: it is about to be cancelled"))
        if self._jobs.dependencies.holds(job.id):
            blocks.append(self._dependency(job, only))
        if job.limit_keys is None:
            because = "it is new, and its values for the limit keys of its definition have not been read yet"
            blocks.append(Block(BlockReason.KEY, because, "when they have been read"))
        elif self._jobs.is_out_of_reach(job.id):
            because = "it is new, and has not been read yet"
            blocks.append(Block(BlockReason.IN_DOUBT, because, "when it has been read"))
        for rule, at_ms, why in (
            (BlockReason.NOT_BEFORE, job.not_before_ms, "it may not run before"),
            (BlockReason.BACKOFF, job.retry_at_ms, f"{_ended(job)}; the next one starts at"),
        ):
            if at_ms is not None and at_ms > now:
                because = f"{why} {format_instant(min(at_ms, LATEST_MS))}"
                blocks.append(Block(rule, because, "when that time has come", until_ms=at_ms))
        return blocks

    def _dependency(self, job: JobRef, only: str | None) -> Block:
        dependencies = self._jobs.dependencies
        unmet = dependencies.unmet(job)
        jobs = self._named([id for id in unmet if not is_batch(id)], only)
        live = {batch: dependencies.live_of(batch) for batch in unmet if is_batch(batch)}
        count = len(jobs) + sum(live.values())
        numbers: dict[str, Figure] = {"jobs": jobs[:_NAMED_MAX], "count": count}
        if live:
            numbers["batches"] = list(live)[:_NAMED_MAX]
        if not count:
            because = f"all jobs of {_listed(list(live))} have ended, and their outcome is being read"
            return Block(BlockReason.DEPENDENCY, because, "when it has been read", numbers)
        waits = [f"{number} job{'' if number == 1 else 's'} of {batch!r}" for batch, number in live.items() if number]
        waits = [*([_listed(jobs)] if jobs else []), *_shortened(waits)]
        how = "end" if job.ignores_failures else "succeed"
        because = f"{' and '.join(waits)} {'has' if count == 1 else 'have'} yet to {how}"
        return Block(BlockReason.DEPENDENCY, because, f"when all of them {how}", numbers)

    def _blocks(self, job: JobRef, job_class: SchedulingClass, now: int, only: str | None) -> list[Block]:
        blocks = [self._closed(rule, job_class) for rule in self._limits.closing(job_class, now)]
        for lock in self._locks.wanted(job):
            if lock[0] == "key":
                blocks += self._key_blocks(lock, now, only)
                continue
            holders = self._named(self._locks.holders(lock), only)
            if not holders:
                continue
            shown = _listed(holders)
            if lock[0] == "keys unread":
                because = f"{shown} holds a slot, and its limit keys of {lock[1]!r} have not been read yet"
                blocks.append(
                    Block(BlockReason.KEY, because, "when they have been read", {"holders": holders[:_NAMED_MAX]})
                )
            elif lock[0] == "serial":
                because = f"{shown} of the schedule {lock[1]!r} has not ended, and this schedule runs one job at a time"
                blocks.append(Block(BlockReason.SERIAL, because, "when it ends", {"holders": holders[:_NAMED_MAX]}))
            else:
                because = f"{shown} holds the target {lock[2]!r} in the conflict group {lock[1]!r}"
                numbers: dict[str, Figure] = {"group": lock[1], "target": lock[2], "holders": holders[:_NAMED_MAX]}
                blocks.append(Block(BlockReason.CONFLICT, because, "when it ends", numbers))
        if not self._limits.fits(job_class):
            blocks.append(self._unfit(job_class, now))
        return blocks

    def _key_blocks(self, group: KeyGroup, now: int, only: str | None) -> list[Block]:
        """Return the blocks by the limit on the group."""
        _, definition, _, key, value = group
        limit = self._rules.definition(definition).key_limit(key)
        if limit is None:
            return []
        blocks = []
        shown = f"{key}={value!r}" if value else f"no value for {key}"
        numbers: dict[str, Figure] = {"key": key, "value": value}
        if limit.max_concurrency is not None and self._locks.is_full(group):
            holders = self._named(self._locks.holders(group), only)
            running_of = f"{len(holders)} of {limit.max_concurrency} jobs running ({_listed(holders)})"
            because = f"the limit of {definition!r} with {shown} is reached: {running_of}"
            running: dict[str, Figure] = {
                "running": len(holders), "cap": limit.max_concurrency, "holders": holders[:_NAMED_MAX]
            }  # fmt: skip
            blocks.append(Block(BlockReason.KEY, because, "when one of them ends", {**numbers, **running}))
        until_ms = self._key_rates.dry_until(group)
        if limit.rate_limit is not None and until_ms is not None and until_ms > now:
            count, per_ms = limit.rate_limit.count, limit.rate_limit.per_ms
            because = f"{definition!r} with {shown} is limited to {count} per {per_ms / 1_000:g} s"
            rate: dict[str, Figure] = {"count": count, "per_ms": per_ms}
            next_ms = WallMs(until_ms)
            blocks.append(Block(BlockReason.KEY, because, "when the next one may start", {**numbers, **rate}, next_ms))
        return blocks

    def _closed(self, rule: BlockReason, job_class: SchedulingClass) -> Block:
        limits, definition = self._limits, job_class.definition
        known = self._rules.whole_definitions.get(definition.name, definition)
        whole: int | None
        match rule:
            case BlockReason.TOTAL:
                running, cap, what = limits.running, limits.max_concurrency or 0, "the total limit"
                whole = limits.cap
            case BlockReason.TIER:
                tier = definition.tier or 0
                running, cap, whole = limits.of_tier[tier], self._rules.part_of(tier_key(tier), tier), tier
                what = "the limit of its tier"
            case BlockReason.TENANT:
                tenant = job_class.tenant or ""
                running, cap, whole = limits.of_tenant[tenant], self._rules.quota(tenant) or 0, None
                what = f"the limit of the tenant {tenant!r}"
            case BlockReason.RATE if definition.rate_limit is not None:
                limit, until_ms = definition.rate_limit, limits.dry_until(definition.name)
                note = self._rules.part_note(limit.count, None if known.rate_limit is None else known.rate_limit.count)
                because = f"{definition.name!r} is limited to {limit.count} per {limit.per_ms / 1_000:g} s{note}"
                numbers = {"count": limit.count, "per_ms": limit.per_ms}
                at_ms = None if until_ms is None else WallMs(until_ms)
                return Block(rule, because, "when the next one may start", numbers, at_ms)
            case _:
                running, cap = limits.of_definition[definition.name], definition.max_concurrency or 0
                what, whole = f"the limit of {definition.name!r}", known.max_concurrency
        because = f"{what} is reached: {running} of {cap} jobs running{self._rules.part_note(cap, whole)}"
        ending = "when its turn comes" if whole and not cap else "when one of them ends"
        return Block(rule, because, ending, {"running": running, "cap": cap})

    def _unfit(self, job_class: SchedulingClass, now: int) -> Block:
        definition, live = job_class.definition.name, self._pool.live()
        could = self._pool.could_run(definition, job_class.needs)
        lacks = [lack for lack in (self._lack(processor, job_class, now, idle=not could) for processor in live) if lack]
        shown = "; ".join(lacks[:_NAMED_MAX]) + ("; …" if len(lacks) > _NAMED_MAX else "")
        if could:
            because = f"no slot is free: {shown}"
            ending = "when a job there ends, or a processor joins"
            if any(processor.id in self._pool.rests for processor in live):
                ending += ", or a resting one is tried again"
            return Block(BlockReason.NO_SLOT, because, ending, {"processors": lacks})
        because = f"no processor could run it: {shown}" if lacks else "there is no processor"
        wanted = f"a processor for {definition!r}" + "".join(f", {name} {amount}" for name, amount in job_class.needs)
        ending = f"when {wanted} joins"
        if any(processor.supports(definition) and self._drain(processor) for processor in live):
            ending += ", or a drained one is undrained"
        return Block(BlockReason.UNSCHEDULABLE, because, ending, {"processors": lacks})

    def _lack(self, processor: ProcessorRef, job_class: SchedulingClass, now: int, *, idle: bool) -> str:
        """Return what the processor lacks to run such a job, now or if it were ``idle``; "" if it lacks nothing."""
        name = processor.name
        if not processor.supports(job_class.definition.name):
            return f"{name} does not run {job_class.definition.name!r}" if idle else ""
        if self._pool.is_draining(processor):
            drain = self._drain(processor)
            if drain is not None:
                return f"{name} is drained {_since(drain)}"
            return f"{name} is draining" if processor.consuming else f"{name} gets no jobs: {NOT_CONSUMING}"
        rest = self._pool.rests.get(processor.id)
        if rest is not None and not idle:
            missed = f"{name} did not start {'1 job' if rest.missed == 1 else f'{rest.missed} jobs in a row'}"
            if rest.trial is not None:
                return f"{missed}, and gets no more until it starts its last one"
            if rest.until_ms > now:
                return f"{missed}, and rests until {_instant(rest.until_ms)}"
        slots, left = (1, processor.resources) if idle else self._pool.left(processor)
        if slots <= 0 and processor.slots == 0:
            return f"{name} offers no slots now"
        if slots <= 0:
            return f"{name} has {processor.slots} of {processor.slots} slots in use"
        has = dict(left)
        short = [
            f"{has.get(each, 0)} of {amount} {each}" for each, amount in job_class.needs if has.get(each, 0) < amount
        ]
        return f"{name} has {', '.join(short)}" if short else ""

    def _drain(self, processor: ProcessorRef) -> StandingPause | None:
        return self._rules.pauses.get(drain_id(processor.name))

    # Position

    def _position(self, job: JobRef, now: int, only: str | None, *, is_admissible: bool) -> QueuePosition:
        own = self._rank_key(job, now)
        first, first_rank, ahead = job, own, 0
        for other in self._competitors(now, is_admissible=is_admissible):
            rank = self._rank_key(other, now)
            if rank < own:
                ahead += 1
                if rank < first_rank:
                    first, first_rank = other, rank
        criteria = self._queue.order_of(job.lane).criteria
        names = only is None or first.tenant == only
        values = [
            CriterionValue(
                each, self._measures[each].shown(job, now), self._measures[each].shown(first, now, names=names)
            )
            for each in criteria
        ]
        return QueuePosition(
            ahead=ahead,
            exact=len(self._queue) <= COMPARED_MAX,
            first=self._named([first.id], only)[0],
            deciding=None if first is job else self._deciding(criteria, job, first, now),
            criteria=tuple(values),
        )

    def _competitors(self, now: int, *, is_admissible: bool) -> Iterable[JobRef]:
        """Yield the waiting jobs that nothing holds back.

        If not ``is_admissible``, yield also those held back only by what holds back all jobs.
        """
        may_go: dict[SchedulingClass, bool] = {}
        for job in islice(self._queue.jobs(), COMPARED_MAX):
            job_class = self._classes.of(job)
            if job_class not in may_go:
                closing = set(self._limits.closing(job_class, now))
                may_go[job_class] = (
                    not closing and self._limits.fits(job_class)
                    if is_admissible
                    else closing <= _CAPACITY and self._pool.could_run(job_class.definition.name, job_class.needs)
                )
            if may_go[job_class] and self._locks.held_of(job) is None:
                yield job

    def _rank_key(self, job: JobRef, now: int) -> tuple[Any, ...]:
        """Return the rank of the job; the smallest goes first."""
        criteria = self._queue.order_of(job.lane).criteria
        values = [self._measures[each].value(job, now) for each in criteria]
        if self._queue.has_own_orders():
            return (values[0], job.lane, *values[1:])
        return tuple(values)

    def _deciding(self, criteria: Iterable[Criterion], job: JobRef, first: JobRef, now: int) -> Criterion | None:
        for each in criteria:
            if self._measures[each].value(job, now) != self._measures[each].value(first, now):
                return each
        return None


def _paused(pause: StandingPause) -> Block:
    numbers: dict[str, Figure] = {"since": _instant(pause.since_ms), "by": pause.by}
    if pause.because is not None:
        numbers["reason"] = pause.because
    return Block(BlockReason.PAUSED, f"everything is paused {_since(pause)}", "hascheduler resume --all", numbers)


def _since(pause: StandingPause) -> str:
    reason = "" if pause.because is None else f": {pause.because}"
    return f"since {_instant(pause.since_ms)} by {pause.by}{reason}"


def _instant(at_ms: int) -> str:
    return format_instant(min(at_ms, LATEST_MS))


def _ended(job: JobRef) -> str:
    failed = f"{'its attempt' if job.failures == 1 else f'{job.failures} attempts'} failed"
    if not job.losses:
        return failed
    lost = (
        "one attempt was lost with its processor"
        if job.losses == 1
        else f"{job.losses} attempts were lost with their processors"
    )
    return f"{failed} and {lost}" if job.failures else lost


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _NAMED_MAX} more" if len(ids) > _NAMED_MAX else ""
    return ", ".join(repr(id) for id in ids[:_NAMED_MAX]) + more


def _shortened(texts: list[str]) -> list[str]:
    """Return the first few, and how many more there are."""
    left = len(texts) - _NAMED_MAX
    return [*texts[:_NAMED_MAX], *([f"{left} more batches" if left > 1 else "one more batch"] if left > 0 else [])]
