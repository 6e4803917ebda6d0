"""The figures of a run: who waited how long, what was busy, who was overtaken, and whether the promises held."""

from dataclasses import dataclass
from fractions import Fraction

from hascheduler.simulate.outcome import JobRecord, Outcome
from hascheduler.simulate.overtaking import Overtakes, Promise, overtakes, promises
from hascheduler.simulate.scenario import account_names
from hascheduler.simulate.waits import Use, Waits, uses, waits_by, waits_of


@dataclass(frozen=True, slots=True)
class Report:
    """``starved`` is the job that waited longest for its first start, or still does; None where there are no jobs.

    ``lost`` attempts were cut off when their processor left; jobs that ``gave_up`` have lost too many.
    """

    policy: str
    ended_at_ms: int
    jobs: int
    completed: int
    running: int
    pending: int
    lost: int
    gave_up: int
    unschedulable: tuple[str, ...]
    waits: Waits
    waits_by_key: tuple[Waits, ...]
    waits_by_tenant: tuple[Waits, ...]
    waits_by_lane: tuple[Waits, ...]
    waits_by_tier: tuple[Waits, ...]
    waits_by_mode: tuple[Waits, ...]
    uses: tuple[Use, ...]
    overtakes: Overtakes
    starved: str | None
    promises: tuple[Promise, ...]

    @property
    def per_hour(self) -> Fraction:
        """How many jobs ended well in an hour; 0 in a run that takes no time."""
        return Fraction(self.completed * 3_600_000, self.ended_at_ms) if self.ended_at_ms else Fraction(0)

    @property
    def utilisation(self) -> Fraction:
        """Of all slots, for as long as each was there."""
        there_ms = sum(use.slots * use.there_ms for use in self.uses)
        return Fraction(sum(use.busy_ms for use in self.uses), there_ms) if there_ms else Fraction(0)


def report(outcome: Outcome) -> Report:
    called = account_names(outcome.scenario.jobs)
    tiers = {each.name: each.tier for each in outcome.scenario.definitions}
    records = outcome.jobs
    return Report(
        policy=outcome.scenario.policy.name,
        ended_at_ms=outcome.ended_at_ms,
        jobs=len(records),
        completed=len(outcome.completed),
        running=sum(record.is_running for record in records),
        pending=sum(record.is_waiting for record in records),
        lost=sum(attempt.lost for attempt in outcome.attempts),
        gave_up=sum(record.gave_up for record in records),
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
