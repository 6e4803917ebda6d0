"""Fires and exclusions against all versions that a calendar ever had."""

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import NewSchedule
from hascheduler.model.job import fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import CalendarUse, Cron, Trigger
from tests.checkers.days_kept import days_kept
from tests.checkers.evidence import Commit, Evidence

DAY_MS = 86_400_000
NOON_MS = DAY_MS // 2
FIRED, EXCLUDED = "fired", "excluded"


def evidence(became: str, *versions: str) -> Evidence:
    """A daily noon on 1970-01-01 became that, while a calendar that it leaves out had these days in turn."""
    trigger = Trigger(Cron("0 12 * * *"), calendars=CalendarUse((), ("closed",), "UTC"))
    template = JobTemplate("log", "t", "default", "default", "", 5, "queued")
    calendars = [document_of(Calendar(name="closed", include=read_days([day]))) for day in versions]
    job, run = (
        fire_job_id("s", NOON_MS),
        {"schedule": "s", "verdict": EXCLUDED, "first_ms": NOON_MS, "last_ms": NOON_MS},
    )
    return Evidence(
        commits=[Commit(0.0, Collection.CALENDARS, None, calendar) for calendar in calendars],
        schedules={"s": NewSchedule("s", trigger, template, {}, {}, WallMs(0))},
        until_ms=DAY_MS,
        documents={
            Collection.JOBS: {job: {}} if became == FIRED else {},
            Collection.VERDICTS: {"v": run} if became == EXCLUDED else {},
        },
    )


@pytest.mark.parametrize(
    ("became", "versions"),
    [
        (EXCLUDED, ("1970-01-01",)),
        (FIRED, ("1970-01-02",)),
        (EXCLUDED, ("1970-01-01", "1970-01-02")),
        (FIRED, ("1970-01-01", "1970-01-02")),
    ],
)
def test_what_some_version_lets_is_no_violation(became: str, versions: tuple[str, ...]) -> None:
    assert days_kept(evidence(became, *versions)) == []


def test_a_fire_on_a_day_that_was_always_left_out_is_told() -> None:
    assert days_kept(evidence(FIRED, "1970-01-01", "1970-01-01/1970-01-02")) == [
        f"s fired at {NOON_MS}, on a day that was always left out"
    ]


def test_an_exclusion_on_a_day_that_always_counted_is_told() -> None:
    assert days_kept(evidence(EXCLUDED, "1970-01-02", "1970-01-03")) == [
        f"s was excluded at {NOON_MS}, on a day that always counted"
    ]
