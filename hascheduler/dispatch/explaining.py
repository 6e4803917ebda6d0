"""Why a job waits, worked out from what decides: the same gates, locks, slots and measures, read and not changed.

Rules that can be broken down say so: who holds the lock, which processor lacks what, how many of how many run.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from hascheduler.dispatch.criteria import Measures
from hascheduler.dispatch.explanation import Block, Explanation, Number, Rule, Standing, Worth
from hascheduler.dispatch.gates import Gates
from hascheduler.dispatch.jobs import Jobs
from hascheduler.dispatch.kinds import Kind, Kinds
from hascheduler.dispatch.line import Line
from hascheduler.dispatch.locks import LockTable
from hascheduler.dispatch.pool import SlotPool
from hascheduler.dispatch.rules import Rules
from hascheduler.model.instants import LATEST_MS, WallMs, format_instant
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import Criterion
from hascheduler.model.processor import ProcessorRef

LOOKED_AT_MAX = 5_000
"""Waiting jobs that are compared with the one in question: an answer must not hold up decisions."""
UNSCHEDULABLE_MAX = 10_000
_NAMED_MAX = 5
NOT_NAMED = "a job of another tenant"
_CAPACITY = frozenset({Rule.NO_SLOT, Rule.TOTAL})
"""What holds everybody back alike."""


class Explainer:
    """Reads the parts of one dispatcher."""

    def __init__(
        self,
        *,
        rules: Rules,
        jobs: Jobs,
        line: Line,
        kinds: Kinds,
        gates: Gates,
        pool: SlotPool,
        locks: LockTable,
        measures: Measures,
    ) -> None:
        self._rules = rules
        self._jobs = jobs
        self._line = line
        self._kinds = kinds
        self._gates = gates
        self._pool = pool
        self._locks = locks
        self._measures = measures

    def explain(self, job_id: str, now: WallMs, *, is_silent: bool, only: str | None = None) -> Explanation | None:
        """``is_silent``: nobody can be told of a dispatch at the moment. None: no such job is known.

        With ``only``, jobs of other tenants are not named.
        """
        job = self._jobs.get(job_id)
        if job is None:
            return None
        processor_id = self._pool.processor_of(job_id)
        if processor_id is not None:
            state = "running" if job.state is JobState.RUNNING else "dispatched"
            return Explanation(job_id, state, processor_id)
        blocks = self._own_blocks(job, now, only)
        if is_silent:
            blocks.insert(0, Block(Rule.TRANSPORT, "the broker takes no messages", "when it accepts messages again"))
        blocks += self._blocks(job, self._kinds.of(job), now, only)
        standing = None
        if job_id in self._line and {block.rule for block in blocks} <= _CAPACITY:
            standing = self._standing(job, now, only, is_admissible=not blocks)
        return Explanation(job_id, "waiting", None, tuple(blocks), standing)

    def _named(self, ids: Sequence[str], only: str | None) -> list[str]:
        return [id if only is None or self._tenant_of(id) == only else NOT_NAMED for id in ids]

    def _tenant_of(self, job_id: str) -> str | None:
        job = self._jobs.get(job_id)
        return None if job is None else job.tenant

    def unschedulable(self) -> list[str]:
        """The ids of waiting jobs that no processor that is there could ever run, in order; not all where many."""
        stuck = {kind for kind in self._kinds if not self._pool.could_run(kind.definition.name, kind.needs)}
        return sorted({job.id for job in islice(self._line.jobs_of(stuck), UNSCHEDULABLE_MAX)}) if stuck else []

    # What holds it back

    def _own_blocks(self, job: JobRef, now: WallMs, only: str | None) -> list[Block]:
        """What concerns this job alone."""
        blocks = []
        if self._jobs.is_in_doubt(job.id):
            because = "the database did not show the job as expected, so it is being read again"
            blocks.append(Block(Rule.IN_DOUBT, because, "when it has been read, within a second or so"))
        if job.cancel_requested_at_ms is not None or self._jobs.is_replaced(job.id):
            because = "it was asked to stop, and will not run again"
            blocks.append(Block(Rule.CANCELLING, because, "nothing: it is about to be cancelled"))
        unmet = self._named(self._jobs.dependencies.unmet(job.id), only)
        if unmet:
            how = "end" if job.ignores_failures else "succeed"
            because = f"{_listed(unmet)} {'has' if len(unmet) == 1 else 'have'} yet to {how}"
            numbers: dict[str, Number] = {"jobs": unmet[:_NAMED_MAX], "count": len(unmet)}
            blocks.append(Block(Rule.DEPENDENCY, because, "when the last of them has done so", numbers))
        for rule, at_ms, why in (
            (Rule.NOT_BEFORE, job.not_before_ms, "it is not to run before"),
            (Rule.BACKOFF, job.retry_at_ms, f"{_tries(job.failures)} failed, and the next comes at"),
        ):
            if at_ms is not None and at_ms > now:
                because = f"{why} {format_instant(min(at_ms, LATEST_MS))}"
                blocks.append(Block(rule, because, "when that time has come", until_ms=at_ms))
        return blocks

    def _blocks(self, job: JobRef, kind: Kind, now: int, only: str | None) -> list[Block]:
        blocks = [self._closed(rule, kind) for rule in self._gates.closing(kind, now)]
        for lock in self._locks.wanted(job):
            holders = self._named(self._locks.holders(lock), only)
            if not holders:
                continue
            shown = _listed(holders)
            if lock[0] == "serial":
                because = f"{shown} of the schedule {lock[1]!r} has not ended, and its jobs run one after the other"
                blocks.append(Block(Rule.SERIAL, because, "when that has ended", {"holders": holders[:_NAMED_MAX]}))
            else:
                because = f"{shown} works on the target {lock[2]!r}, and the conflict group {lock[1]!r} excludes others"
                numbers: dict[str, Number] = {"group": lock[1], "target": lock[2], "holders": holders[:_NAMED_MAX]}
                blocks.append(Block(Rule.CONFLICT, because, "when that has ended", numbers))
        if not self._gates.fits(kind):
            blocks.append(self._unfit(kind))
        return blocks

    def _closed(self, rule: Rule, kind: Kind) -> Block:
        gates, definition = self._gates, kind.definition
        match rule:
            case Rule.TOTAL:
                running, cap, what = gates.running, gates.max_concurrency or 0, "jobs run in all"
            case Rule.TIER:
                running, cap, what = gates.of_tier[definition.tier or 0], definition.tier or 0, "jobs of its tier run"
            case Rule.TENANT:
                tenant = kind.tenant or ""
                running, cap = gates.of_tenant[tenant], self._rules.quota(tenant) or 0
                what = f"jobs of the tenant {tenant!r} run"
            case Rule.RATE if definition.rate_limit is not None:
                limit, until_ms = definition.rate_limit, gates.dry_until(definition.name)
                because = f"{definition.name!r} is limited to {limit.count} in {limit.per_ms / 1_000:g} s"
                numbers = {"count": limit.count, "per_ms": limit.per_ms}
                at_ms = None if until_ms is None else WallMs(until_ms)
                return Block(rule, because, "when the next one may go", numbers, at_ms)
            case _:
                running, cap = gates.of_definition[definition.name], definition.max_concurrency or 0
                what = f"jobs of {definition.name!r} run"
        because = f"{running} of at most {cap} {what}"
        return Block(rule, because, "when one of them ends", {"running": running, "cap": cap})

    def _unfit(self, kind: Kind) -> Block:
        definition, live = kind.definition.name, self._pool.live()
        could = self._pool.could_run(definition, kind.needs)
        lacks = [lack for lack in (self._lack(processor, kind, idle=not could) for processor in live) if lack]
        shown = "; ".join(lacks[:_NAMED_MAX]) + ("; …" if len(lacks) > _NAMED_MAX else "")
        if could:
            because = f"no slot is free: {shown}"
            return Block(Rule.NO_SLOT, because, "when a job there ends, or a processor joins", {"processors": lacks})
        because = f"no processor could run it: {shown}" if lacks else "no processor is there"
        wanted = f"a processor for {definition!r}" + "".join(f", {name} {amount}" for name, amount in kind.needs)
        return Block(Rule.UNSCHEDULABLE, because, f"when {wanted} joins", {"processors": lacks})

    def _lack(self, processor: ProcessorRef, kind: Kind, *, idle: bool) -> str:
        """What that processor lacks to run such a job now, or were it ``idle``; of those that are no help otherwise."""
        name = processor.name
        if not processor.supports(kind.definition.name):
            return f"{name} does not run {kind.definition.name!r}" if idle else ""
        if processor.draining:
            return f"{name} is draining"
        slots, left = (processor.slots, processor.resources) if idle else self._pool.left(processor)
        if slots <= 0:
            return f"{name} has {processor.slots} of {processor.slots} slots taken"
        has = dict(left)
        short = [f"{each} {has.get(each, 0)} of {amount}" for each, amount in kind.needs if has.get(each, 0) < amount]
        return f"{name} has {', '.join(short)}" if short else ""

    # Where it stands

    def _standing(self, job: JobRef, now: int, only: str | None, *, is_admissible: bool) -> Standing:
        own = self._worth(job, now)
        first, first_worth, ahead = job, own, 0
        for other in self._rivals(now, is_admissible=is_admissible):
            worth = self._worth(other, now)
            if worth < own:
                ahead += 1
                if worth < first_worth:
                    first, first_worth = other, worth
        criteria = self._line.order_of(job.lane).criteria
        names = only is None or first.tenant == only
        worths = [
            Worth(each, self._measures[each].shown(job, now), self._measures[each].shown(first, now, names=names))
            for each in criteria
        ]
        return Standing(
            ahead=ahead,
            exact=len(self._line) <= LOOKED_AT_MAX,
            first=self._named([first.id], only)[0],
            deciding=None if first is job else self._deciding(criteria, job, first, now),
            worths=tuple(worths),
        )

    def _rivals(self, now: int, *, is_admissible: bool) -> Iterable[JobRef]:
        """Those who wait and that nothing holds back, or nothing but what holds everybody back."""
        may_go: dict[Kind, bool] = {}
        for job in islice(self._line.jobs(), LOOKED_AT_MAX):
            kind = self._kinds.of(job)
            if kind not in may_go:
                closing = set(self._gates.closing(kind, now))
                may_go[kind] = (
                    not closing and self._gates.fits(kind)
                    if is_admissible
                    else closing <= _CAPACITY and self._pool.could_run(kind.definition.name, kind.needs)
                )
            if may_go[kind] and self._locks.held_of(job) is None:
                yield job

    def _worth(self, job: JobRef, now: int) -> tuple[Any, ...]:
        """Smaller goes first."""
        criteria = self._line.order_of(job.lane).criteria
        values = [self._measures[each].value(job, now) for each in criteria]
        if self._line.has_own_orders():
            return (values[0], job.lane, *values[1:])
        return tuple(values)

    def _deciding(self, criteria: Iterable[Criterion], job: JobRef, first: JobRef, now: int) -> Criterion | None:
        for each in criteria:
            if self._measures[each].value(job, now) != self._measures[each].value(first, now):
                return each
        return None


def _tries(failures: int) -> str:
    return "its attempt" if failures == 1 else f"{failures} attempts"


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _NAMED_MAX} more" if len(ids) > _NAMED_MAX else ""
    return ", ".join(repr(id) for id in ids[:_NAMED_MAX]) + more
