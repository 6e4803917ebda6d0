"""The figures of a run, in whole milliseconds and exact fractions, and how the starts of two runs differ."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hascheduler.simulate.run import JobRecord, RunOutcome
from hascheduler.simulate.scenario import account_names


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """How long jobs waited for their first start; ``longest_ms`` includes those that still wait."""

    jobs: int
    mean_ms: int
    p50_ms: int
    p95_ms: int
    longest_ms: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """The figures of a run.

    ``waits_by`` has the waits of each group by kind, ``used`` the share of the time of each processor's slots.
    """

    policy: str
    jobs: int
    completed: int
    pending: int
    lost: int
    gave_up: int
    expired: int
    unschedulable: tuple[str, ...]
    per_hour: Fraction
    utilisation: Fraction
    waits: WaitFigures
    waits_by: Mapping[str, Mapping[str, WaitFigures]]
    used: Mapping[str, Fraction]


def report(outcome: RunOutcome) -> RunReport:
    called = account_names(outcome.scenario.jobs)
    tiers = {each.name: each.tier or "none" for each in outcome.scenario.definitions}
    kinds: dict[str, Callable[[JobRecord], str]] = {
        "tenant": lambda record: record.job.tenant,
        "key": lambda record: called(record.job.tenant, record.job.fairness_key),
        "lane": lambda record: record.job.lane,
        "tier": lambda record: str(tiers[record.job.definition]),
        "mode": lambda record: record.job.mode,
    }
    records, ended_at_ms = outcome.jobs, outcome.ended_at_ms
    used = _used_ms(outcome)
    there_ms = sum(there_ms for _, there_ms in used.values())
    return RunReport(
        policy=outcome.scenario.policy.name,
        jobs=len(records),
        completed=len(outcome.completed),
        pending=len(outcome.pending),
        lost=sum(attempt.lost for attempt in outcome.attempts),
        gave_up=sum(record.gave_up for record in records),
        expired=sum(record.expired for record in records),
        unschedulable=outcome.unschedulable,
        per_hour=Fraction(len(outcome.completed) * 3_600_000, ended_at_ms or 1),
        utilisation=Fraction(sum(busy_ms for busy_ms, _ in used.values()), there_ms or 1),
        waits=_waits(records, ended_at_ms),
        waits_by={kind: _waits_by(outcome, group) for kind, group in kinds.items()},
        used={id: Fraction(busy_ms, there_ms or 1) for id, (busy_ms, there_ms) in used.items()},
    )


def _waits(records: Iterable[JobRecord], ended_at_ms: int) -> WaitFigures:
    begun: list[int] = []
    unbegun: list[int] = []
    for record in records:
        if record.started_at_ms is not None:
            begun.append(record.started_at_ms - record.job.submit_at_ms)
        else:
            unbegun.append((record.finished_at_ms or ended_at_ms) - record.job.submit_at_ms)
    return WaitFigures(
        jobs=len(begun) + len(unbegun),
        mean_ms=sum(begun) // (len(begun) or 1),
        p50_ms=percentile(begun, 50),
        p95_ms=percentile(begun, 95),
        longest_ms=max([*begun, *unbegun], default=0),
    )


def _waits_by(outcome: RunOutcome, group: Callable[[JobRecord], str]) -> dict[str, WaitFigures]:
    groups: dict[str, list[JobRecord]] = {}
    for record in outcome.jobs:
        groups.setdefault(group(record), []).append(record)
    return {name: _waits(records, outcome.ended_at_ms) for name, records in groups.items()}


def _used_ms(outcome: RunOutcome) -> dict[str, tuple[int, int]]:
    """Return, by processor, how long its slots were busy, and how long they were there."""
    busy_ms = dict.fromkeys((each.id for each in outcome.scenario.processors), 0)
    for attempt in outcome.attempts:
        ended_at_ms = outcome.ended_at_ms if attempt.ended_at_ms is None else attempt.ended_at_ms
        busy_ms[attempt.processor] += ended_at_ms - attempt.started_at_ms
    found = {}
    for each in outcome.scenario.processors:
        left_ms = outcome.ended_at_ms if each.leave_at_ms is None else min(each.leave_at_ms, outcome.ended_at_ms)
        found[each.id] = busy_ms[each.id], each.slots * max(0, left_ms - each.join_at_ms)
    return found


def start_shifts(first: RunOutcome, second: RunOutcome) -> tuple[dict[str, int], int]:
    """Return by how much later each job starts in the second run, and how many start in one of the runs only."""
    before = {record.job.id: record.started_at_ms for record in first.jobs}
    shifts: dict[str, int] = {}
    in_one_only = 0
    for record in second.jobs:
        was, now = before.get(record.job.id), record.started_at_ms
        if was is not None and now is not None:
            shifts[record.job.id] = now - was
        elif was is not now:
            in_one_only += 1
    return shifts, in_one_only


def percentile(values: Sequence[int], per_cent: float) -> int:
    """Return the smallest value that at least ``per_cent`` of the values do not exceed; 0 for none."""
    if not values:
        return 0
    return sorted(values)[max(0, math.ceil(len(values) * per_cent / 100) - 1)]
