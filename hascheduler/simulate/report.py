"""The figures of a run: waits, use of processors, overtaking, and whether the promises held; and of two runs beside
each other.

Whole milliseconds and exact fractions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hascheduler.simulate.outcome import JobRecord, RunOutcome
from hascheduler.simulate.overtaking import Overtakes, Promise, overtakes, promises
from hascheduler.simulate.scenario import account_names


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """``mean_ms`` and the percentiles (nearest rank) are of those that ``started``; 0 where none did.

    ``waiting`` have not started by the end, the oldest of them for ``oldest_ms``.
    """

    name: str
    jobs: int
    started: int
    waiting: int
    mean_ms: int
    p50_ms: int
    p95_ms: int
    max_ms: int
    oldest_ms: int

    @property
    def longest_ms(self) -> int:
        """The longest wait, whether or not it is over."""
        return max(self.max_ms, self.oldest_ms)


@dataclass(frozen=True, slots=True)
class ProcessorUse:
    """The use of one processor's slots from its joining to its leaving; ``lost`` runs were cut off when it left."""

    processor: str
    slots: int
    runs: int
    lost: int
    busy_ms: int
    there_ms: int

    @property
    def share(self) -> Fraction:
        """The fraction of its slots' time that was used; 0 for a processor that never joined."""
        return Fraction(self.busy_ms, self.slots * self.there_ms) if self.there_ms else Fraction(0)


def waits_of(name: str, records: Iterable[JobRecord], ended_at_ms: int) -> WaitFigures:
    """The waits of all these jobs together."""
    spans: list[int] = []
    ages: list[int] = []
    for record in records:
        if record.started_at_ms is None:
            ages.append((record.finished_at_ms or ended_at_ms) - record.job.submit_at_ms)
        else:
            spans.append(record.started_at_ms - record.job.submit_at_ms)
    spans.sort()
    return WaitFigures(
        name=name,
        jobs=len(spans) + len(ages),
        started=len(spans),
        waiting=len(ages),
        mean_ms=sum(spans) // len(spans) if spans else 0,
        p50_ms=percentile(spans, 50),
        p95_ms=percentile(spans, 95),
        max_ms=spans[-1] if spans else 0,
        oldest_ms=max(ages, default=0),
    )


def waits_by(outcome: RunOutcome, group: Callable[[JobRecord], str]) -> tuple[WaitFigures, ...]:
    """The waits of each group, in the order of their first jobs."""
    groups: dict[str, list[JobRecord]] = {}
    for record in outcome.jobs:
        groups.setdefault(group(record), []).append(record)
    return tuple(waits_of(name, records, outcome.ended_at_ms) for name, records in groups.items())


def uses(outcome: RunOutcome) -> tuple[ProcessorUse, ...]:
    """The use of each processor, in the order of the file."""
    runs: dict[str, list[int]] = {each.id: [0, 0, 0] for each in outcome.scenario.processors}
    for attempt in outcome.attempts:
        totals = runs[attempt.processor]
        totals[0] += 1
        totals[1] += attempt.lost
        totals[2] += (
            outcome.ended_at_ms if attempt.ended_at_ms is None else attempt.ended_at_ms
        ) - attempt.started_at_ms
    found = []
    for each in outcome.scenario.processors:
        left_ms = outcome.ended_at_ms if each.leave_at_ms is None else min(each.leave_at_ms, outcome.ended_at_ms)
        count, lost, busy_ms = runs[each.id]
        found.append(ProcessorUse(each.id, each.slots, count, lost, busy_ms, max(0, left_ms - each.join_at_ms)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RunReport:
    """``starved`` is the job that waited longest for its first start, or still does; None where there are no jobs.

    ``lost`` attempts were cut off when their processor left; jobs that ``gave_up`` have lost too many, those that
    ``expired`` never began.
    """

    policy: str
    ended_at_ms: int
    jobs: int
    completed: int
    running: int
    pending: int
    lost: int
    gave_up: int
    expired: int
    unschedulable: tuple[str, ...]
    waits: WaitFigures
    waits_by_key: tuple[WaitFigures, ...]
    waits_by_tenant: tuple[WaitFigures, ...]
    waits_by_lane: tuple[WaitFigures, ...]
    waits_by_tier: tuple[WaitFigures, ...]
    waits_by_mode: tuple[WaitFigures, ...]
    uses: tuple[ProcessorUse, ...]
    overtakes: Overtakes
    starved: str | None
    promises: tuple[Promise, ...]

    @property
    def per_hour(self) -> Fraction:
        """How many jobs ended well in an hour; 0 in a run that takes no time."""
        return Fraction(self.completed * 3_600_000, self.ended_at_ms) if self.ended_at_ms else Fraction(0)

    @property
    def utilisation(self) -> Fraction:
        """The used fraction of all slots, each for as long as its processor was there."""
        there_ms = sum(use.slots * use.there_ms for use in self.uses)
        return Fraction(sum(use.busy_ms for use in self.uses), there_ms) if there_ms else Fraction(0)


def report(outcome: RunOutcome) -> RunReport:
    called = account_names(outcome.scenario.jobs)
    tiers = {each.name: each.tier for each in outcome.scenario.definitions}
    records = outcome.jobs
    return RunReport(
        policy=outcome.scenario.policy.name,
        ended_at_ms=outcome.ended_at_ms,
        jobs=len(records),
        completed=len(outcome.completed),
        running=sum(record.is_running for record in records),
        pending=sum(record.is_waiting for record in records),
        lost=sum(attempt.lost for attempt in outcome.attempts),
        gave_up=sum(record.gave_up for record in records),
        expired=sum(record.expired for record in records),
        unschedulable=outcome.unschedulable,
        waits=waits_of("all", records, outcome.ended_at_ms),
        waits_by_key=waits_by(outcome, lambda record: called(record.job.tenant, record.job.fairness_key)),
        waits_by_tenant=waits_by(outcome, lambda record: record.job.tenant),
        waits_by_lane=waits_by(outcome, lambda record: record.job.lane),
        waits_by_tier=waits_by(outcome, lambda record: _tier(tiers[record.job.definition])),
        waits_by_mode=waits_by(outcome, lambda record: record.job.mode),
        uses=uses(outcome),
        overtakes=overtakes(outcome),
        starved=max(records, key=lambda record: _waited(record, outcome.ended_at_ms)).job.id if records else None,
        promises=promises(outcome),
    )


def _tier(tier: int | None) -> str:
    return "none" if tier is None else str(tier)


def _waited(record: JobRecord, ended_at_ms: int) -> int:
    return (ended_at_ms if record.started_at_ms is None else record.started_at_ms) - record.job.submit_at_ms


@dataclass(frozen=True, slots=True)
class StartDifferences:
    """Jobs that start sooner, later, at the same time, or in one of the runs only.

    ``most_sooner`` and ``most_later`` are the (job, by how many ms) that gain and lose most; None: there is none.
    """

    sooner: int
    later: int
    same: int
    in_one_only: int
    most_sooner: tuple[str, int] | None
    most_later: tuple[str, int] | None


def differences(first: RunOutcome, second: RunOutcome) -> StartDifferences:
    """The differences of ``second`` from ``first``; of equal shifts, that of the job that was submitted first."""
    before = {record.job.id: record.started_at_ms for record in first.jobs}
    shifts: list[tuple[str, int]] = []
    in_one_only = 0
    for record in second.jobs:
        was, now = before.get(record.job.id), record.started_at_ms
        if was is not None and now is not None:
            shifts.append((record.job.id, now - was))
        elif was is not now:
            in_one_only += 1
    sooner = [(job, -by_ms) for job, by_ms in shifts if by_ms < 0]
    later = [(job, by_ms) for job, by_ms in shifts if by_ms > 0]
    return StartDifferences(
        sooner=len(sooner),
        later=len(later),
        same=len(shifts) - len(sooner) - len(later),
        in_one_only=in_one_only,
        most_sooner=max(sooner, key=lambda shift: shift[1], default=None),
        most_later=max(later, key=lambda shift: shift[1], default=None),
    )


def percentile(values: Sequence[int], per_cent: float) -> int:
    """The smallest value that at least ``per_cent`` of them do not exceed; 0 for none."""
    if not values:
        return 0
    return sorted(values)[max(0, math.ceil(len(values) * per_cent / 100) - 1)]
