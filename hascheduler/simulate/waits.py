"""How long jobs waited for their first start, and how busy processors were. Whole milliseconds and exact fractions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from hascheduler.model.percentiles import percentile
from hascheduler.simulate.outcome import JobRecord, Outcome


@dataclass(frozen=True, slots=True)
class Waits:
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
class Use:
    """What became of the slots of one processor while it was there; ``lost`` runs were cut off when it left."""

    processor: str
    slots: int
    runs: int
    lost: int
    busy_ms: int
    there_ms: int

    @property
    def share(self) -> Fraction:
        """Of its slots' time that was used; 0 for one that was never there."""
        return Fraction(self.busy_ms, self.slots * self.there_ms) if self.there_ms else Fraction(0)


def waits_of(name: str, records: Iterable[JobRecord], ended_at_ms: int) -> Waits:
    """The waits of all these jobs together."""
    spans: list[int] = []
    ages: list[int] = []
    for record in records:
        if record.started_at_ms is None:
            ages.append(ended_at_ms - record.job.submit_at_ms)
        else:
            spans.append(record.started_at_ms - record.job.submit_at_ms)
    spans.sort()
    return Waits(
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


def waits_by(outcome: Outcome, group: Callable[[JobRecord], str]) -> tuple[Waits, ...]:
    """The waits of each group, in the order of their first jobs."""
    groups: dict[str, list[JobRecord]] = {}
    for record in outcome.jobs:
        groups.setdefault(group(record), []).append(record)
    return tuple(waits_of(name, records, outcome.ended_at_ms) for name, records in groups.items())


def uses(outcome: Outcome) -> tuple[Use, ...]:
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
        found.append(Use(each.id, each.slots, count, lost, busy_ms, max(0, left_ms - each.join_at_ms)))
    return tuple(found)
