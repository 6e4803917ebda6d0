"""What is promised of nominal times: none is early, on a day that is left out, or twice by the local clock."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id
from hascheduler.model.verdict import Verdict
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_document
from hascheduler.schema.trigger import CalendarUse
from hascheduler.triggers import next_nominal
from tests.checkers.evidence import Evidence


def never_early(evidence: Evidence) -> list[str]:
    """No job of a schedule exists before its nominal time, by the true clock and what the clocks may be wrong."""
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        if commit.before is not None or commit.after is None or commit.after.get("nominal_ms") is None:
            continue
        now_ms = evidence.epoch_ms + commit.at_s * 1000
        early_ms = commit.after["nominal_ms"] - now_ms - evidence.skew_ms
        if early_ms > 0:
            wrong.append(f"{commit.id} was there {early_ms:.0f} ms early")
    return wrong


_DAY_MS = 86_400_000


def days_kept(evidence: Evidence) -> list[str]:
    """A schedule fires on no day that its calendars left out all the time, and misses none that they never left out."""
    jobs = evidence.documents[Collection.JOBS]
    excluded = [run for run in evidence.documents[Collection.VERDICTS].values() if run["verdict"] == Verdict.EXCLUDED]
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


def local_times_once(evidence: Evidence) -> list[str]:
    """Each local time of a schedule has one fire, whatever the leaders' time-zone data are.

    By the wall time that each nominal time is to the data of the leader that decided it.
    """
    wrong = []
    for before, fire in pairwise(sorted(evidence.local_fires)):
        if fire.wall_s <= before.wall_s:
            wrong.append(
                f"{_local(fire.wall_s)} by {fire.holder} came after {_local(before.wall_s)} by {before.holder}"
            )
        # What comes right after another, by other data, is one fire for all that is left out between the two.
        elif fire.wall_s > before.wall_s + evidence.local_every_s and fire.nominal_ms != before.nominal_ms + 1:
            wrong.append(f"none between {_local(before.wall_s)} by {before.holder} and {_local(fire.wall_s)}")
    return wrong


def _local(wall_s: int) -> str:
    hours, seconds = divmod(wall_s % 86_400, 3_600)
    return f"{hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}"
