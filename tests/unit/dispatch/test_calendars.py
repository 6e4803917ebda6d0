"""Schedules on calendars: each nominal time has one verdict, and a calendar that is gone holds its schedules alone."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.schema.calendar import Calendar, CalendarBody, read_days
from hascheduler.schema.noun import named, read_request
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef
from hascheduler.schema.trigger import CalendarUse, Cron, Trigger
from hascheduler.triggers.requests import read_trigger
from tests.tiers import in_tier
from tests.unit.dispatch.nouns import make_schedule
from tests.unit.triggers.watched_clock import Calendars, watch

BERLIN = ZoneInfo("Europe/Berlin")
BUSINESS_DAYS = Calendar(name="business-days", weekdays=(0, 1, 2, 3, 4))
HOLIDAYS = Calendar(name="holidays", include=read_days(["2030-04-01", "--03-29"]))
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
USE = CalendarUse(("business-days",), ("holidays",))


def at(day: int, hour: int, month: int = 3, minute: int = 0) -> WallMs:
    """On the clock of Berlin; its clock goes forward on Sunday 31 March 2030, between two weeks."""
    return WallMs(int(datetime(2030, month, day, hour, minute, tzinfo=BERLIN).timestamp() * 1_000))


def scheduled(
    expression: str, since_ms: WallMs, name: str = "s", use: CalendarUse | None = USE, **more: Any
) -> ScheduleRef:
    trigger = Trigger(Cron(expression, "Europe/Berlin"), calendars=use)
    return make_schedule(name, trigger=trigger, created_at_ms=since_ms, since_ms=since_ms, cursor_ms=since_ms, **more)


def decided(times: DueTimes, now: int, limit: int = 1_000) -> list[TimeOutcome]:
    return [outcome for outcomes in times.take_due(WallMs(now), limit, lambda _: {}) for outcome in outcomes]


def fires(outcomes: list[TimeOutcome]) -> list[int]:
    return [outcome.nominal_ms for outcome in outcomes if isinstance(outcome, Fire)]


def runs(outcomes: list[TimeOutcome]) -> list[tuple[Verdict, int, int, int]]:
    found = [outcome.run for outcome in outcomes if isinstance(outcome, RecordVerdict)]
    return [(run.verdict, run.first_ms, run.last_ms, run.count) for run in found]


@pytest.mark.parametrize("seed", range(in_tier(check=3, test=20)))
def test_while_calendars_are_edited_each_time_has_the_verdict_that_watched_clocks_give(seed: int) -> None:
    chance = Random(seed)
    first = datetime(2030, 3, 26, 12, tzinfo=BERLIN).astimezone(UTC)
    last = datetime(2030, 4, 6, tzinfo=BERLIN).astimezone(UTC)
    expressions = ("17 */2 * * *", "0 9,15 * * *", "30 2 * * *", "17 2 * * sun")
    crons = [
        {"type": "cron", "expression": text, "timezone": "Europe/Berlin"} for text in chance.sample(expressions, 2)
    ]
    body = {"type": "any", "of": crons, "calendars": {"only": ["business-days"], "except": ["holidays"]}}

    def calendars() -> Calendars:
        days = [str((first + timedelta(days=chance.randrange(11))).date()) for _ in range(3)]
        weekdays = chance.choice([["mon-fri"], ["mon-sun"], ["sat-mon"]])
        return {"business-days": {"weekdays": weekdays}, "holidays": {"include": days}}

    # At 31 minutes past an hour nothing fires, so nothing happens at the same time as an edit.
    moments = sorted({first + timedelta(hours=chance.randrange(250), minutes=31) for _ in range(25)})
    beginning, edits = calendars(), [(moment, calendars()) for moment in moments]
    expected = watch(body, first, last, beginning, edits)

    known: dict[str, Calendar] = {}
    times = DueTimes(known)
    fired: dict[int, int] = {}
    left_out = 0
    since = dict.fromkeys(("created_at_ms", "since_ms", "cursor_ms"), _ms(first))
    policy = SchedulePolicy(grace_ms=90 * DAY_MS, catch_up=CatchUp.ALL)
    times.seen(make_schedule("s", trigger=read_trigger(body, _ms(first)), policy=policy, **since))
    now, ends = first, [*moments, last + timedelta(minutes=1)]
    for end, written in zip(ends, [beginning, *(each for _, each in edits)], strict=True):
        for name, calendar in written.items():
            known[name] = named(Calendar, name, read_request(CalendarBody, calendar))
            times.calendar_changed(name)
        now_ms = _ms(now)
        while (due_ms := times.next_at()) is not None and due_ms < _ms(end):
            now_ms = WallMs(max(now_ms, due_ms))
            outcomes = decided(times, now_ms)
            fired |= dict.fromkeys(fires(outcomes), now_ms)
            left_out += sum(count for *_, count in runs(outcomes))
        now = end
    assert fired == {_ms(at): _ms(since) for at, since in expected.fires.items()}
    assert left_out == len(expected.left_out)


def _ms(moment: datetime) -> WallMs:
    return WallMs(int(moment.timestamp() * 1_000))


def test_without_its_calendar_a_schedule_is_held_with_that_reason_and_no_other_is() -> None:
    calendars = {"business-days": BUSINESS_DAYS}
    times = DueTimes(calendars)
    times.seen(scheduled("0 * * * *", at(25, 12)))
    times.seen(scheduled("0 * * * *", at(25, 12), name="plain", use=None))
    assert [outcome.schedule for outcome in decided(times, at(25, 14))] == ["plain", "plain"]
    assert times.unreadable == {
        "s": "trigger.calendars.except.0: there is no calendar 'holidays'; expected a calendar of /v1/calendars"
    }
    assert times.users_of("holidays") == ["s"]

    calendars["holidays"] = HOLIDAYS
    times.calendar_changed("holidays")
    assert fires(decided(times, at(25, 14))) == [at(25, 14)]  # the misfire policy is `latest`
    assert times.unreadable == {}

    del calendars["holidays"]
    times.calendar_changed("holidays")
    outcomes = decided(times, at(25, 16))
    assert [outcome.schedule for outcome in outcomes] == ["plain", "plain"]
    assert [*times.unreadable] == ["s"]
    times.gone("s")
    assert (times.unreadable, times.users_of("holidays")) == ({}, [])
