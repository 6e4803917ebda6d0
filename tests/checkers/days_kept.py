"""A schedule fires on no day that its calendars left out all the time, and misses none that they never left out."""

from collections.abc import Iterator, Sequence
from itertools import product

from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id
from hascheduler.model.verdict import Verdict
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_document
from hascheduler.schema.trigger import CalendarUse
from hascheduler.triggers import next_nominal
from tests.checkers.evidence import Evidence

_DAY_MS = 86_400_000


def days_kept(evidence: Evidence) -> list[str]:
    jobs = evidence.kept(Collection.JOBS)
    excluded = [run for run in evidence.kept(Collection.VERDICTS).values() if run["verdict"] == Verdict.EXCLUDED]
    wrong = []
    for name, schedule in evidence.schedules.items():
        use: CalendarUse | None = schedule.trigger.calendars
        if use is None:
            continue
        assert use.timezone == "UTC", "days are counted in UTC here"
        versions = [_versions(evidence, calendar) for calendar in use.names]
        nominal_ms = next_nominal(schedule.trigger, schedule.now)
        while nominal_ms is not None and nominal_ms <= evidence.until_ms:
            ever_counted = set(_counts(versions, use, nominal_ms // _DAY_MS))
            fired = fire_job_id(name, nominal_ms) in jobs
            left_out = any(
                run["schedule"] == name and run["first_ms"] <= nominal_ms <= run["last_ms"] for run in excluded
            )
            if fired and ever_counted == {False}:
                wrong.append(f"{name} fired at {nominal_ms}, on a day that was always left out")
            if left_out and ever_counted == {True}:
                wrong.append(f"{name} was excluded at {nominal_ms}, on a day that always counted")
            nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    return wrong


def _counts(versions: Sequence[Sequence[Calendar]], use: CalendarUse, day: int) -> Iterator[bool]:
    """Whether the day counted, for any of the ``versions`` that each of its calendars ever had."""
    for in_force in product(*versions):
        has = [calendar.has(day) for calendar in in_force]
        yield all(has[: len(use.only)]) and not any(has[len(use.only) :])


def _versions(evidence: Evidence, name: str) -> list[Calendar]:
    commits = (commit for commit in evidence.of(Collection.CALENDARS) if commit.id == name)
    return [read_document(Calendar, name, commit.after) for commit in commits if commit.after is not None]
