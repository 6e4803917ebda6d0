"""Schedules on calendars: each nominal time has one verdict, and a calendar that is gone holds its schedules alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.edits import with_trigger
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.schema.calendar import Calendar, CalendarBody, read_days
from hascheduler.schema.noun import named, read_request
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef
from hascheduler.schema.trigger import CalendarUse, Cron, Trigger
from hascheduler.triggers import next_nominal, with_calendars
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


@pytest.mark.parametrize("seed", range(5))
def test_each_time_has_one_verdict_and_fires_if_the_filter_of_its_local_date_lets_it(seed: int) -> None:
    chance = Random(seed)
    calendars = {each.name: each for each in (BUSINESS_DAYS, HOLIDAYS)}
    policy = SchedulePolicy(grace_ms=90 * DAY_MS, catch_up=CatchUp.ALL)
    start_ms = at(22, 12)
    schedule = scheduled("17 */2 * * *", start_ms, policy=policy)
    times = DueTimes(calendars)
    times.seen(schedule)
    now, outcomes = int(start_ms), []
    while now < at(8, 12, month=4):
        now += chance.choice([1, 30, 60, 60 * 7, 60 * 24, 60 * 100]) * 60_000
        outcomes += decided(times, now, chance.choice([1, 3, 1_000]))
    outcomes += decided(times, now)

    expected = {}
    nominal_ms = next_nominal(schedule.trigger, start_ms)
    while nominal_ms is not None and nominal_ms <= outcomes[-1].nominal_ms:
        day = datetime.fromtimestamp(nominal_ms / 1_000, BERLIN).date()
        is_in = day.weekday() < 5 and (day.month, day.day) not in ((4, 1), (3, 29))
        expected[nominal_ms] = is_in
        nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    assert fires(outcomes) == [nominal_ms for nominal_ms, is_in in expected.items() if is_in]
    excluded = runs(outcomes)
    assert {verdict for verdict, *_ in excluded} == {Verdict.EXCLUDED}
    assert sum(count for *_, count in excluded) == sum(not is_in for is_in in expected.values())
    for _, first_ms, last_ms, count in excluded:
        assert [is_in for at_ms, is_in in expected.items() if first_ms <= at_ms <= last_ms] == [False] * count


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


def test_an_excluded_day_is_decided_when_it_is_over_and_is_no_missed_time() -> None:
    times = DueTimes({each.name: each for each in (BUSINESS_DAYS, HOLIDAYS)})
    times.seen(scheduled("0 9 * * *", at(22, 12), policy=SchedulePolicy(grace_ms=1_000, catch_up=CatchUp.NONE)))
    assert times.next_at() == at(24, 0)  # a Saturday
    assert decided(times, at(24, 0) - 1) == []
    assert runs(decided(times, at(24, 0))) == [(Verdict.EXCLUDED, at(23, 9), at(23, 9), 1)]
    assert times.next_at() == at(25, 0)
    assert runs(decided(times, at(25, 0))) == [(Verdict.EXCLUDED, at(24, 9), at(24, 9), 1)]
    assert times.next_at() == at(25, 9)
    assert fires(decided(times, at(25, 9))) == [at(25, 9)]


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


def test_an_edit_of_a_calendar_concerns_what_is_not_decided_and_no_day_that_is_over() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS}
    times = DueTimes(calendars)
    times.seen(scheduled("0 9,15 * * *", at(22, 16)))
    assert runs(decided(times, at(24, 0))) == [(Verdict.EXCLUDED, at(23, 9), at(23, 15), 2)]
    # On Sunday at noon the weekend becomes a working one: Saturday stays as it was decided.
    calendars["business-days"] = BUSINESS_DAYS.model_copy(update={"weekdays": tuple(range(7)), "rev": 2})
    times.calendar_changed("business-days")
    outcomes = decided(times, at(24, 12))
    assert (fires(outcomes), runs(outcomes)) == ([at(24, 9)], [])
    assert times.next_at() == at(24, 15)
    # And the rest of it free again.
    calendars["business-days"] = BUSINESS_DAYS
    times.calendar_changed("business-days")
    assert decided(times, at(24, 13)) == []
    assert times.next_at() == at(25, 0)
    assert runs(decided(times, at(25, 0))) == [(Verdict.EXCLUDED, at(24, 15), at(24, 15), 1)]


def test_an_edit_to_other_calendars_is_not_retroactive() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS}
    schedule = scheduled("0 9 * * *", at(22, 12))
    edited = with_trigger(schedule, replace(schedule.trigger, calendars=None), at(24, 12))
    times = DueTimes(calendars)
    times.seen(edited)
    assert times.users_of("holidays") == ["s"]  # of the times before the edit
    outcomes = decided(times, at(25, 9))
    assert fires(outcomes) == [at(25, 9)]
    assert runs(outcomes) == [(Verdict.EXCLUDED, at(23, 9), at(24, 9), 2)]


def test_many_schedules_on_a_calendar_that_changes_are_looked_at_in_portions() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS}
    times = DueTimes(calendars)
    for number in range(30):
        times.seen(scheduled("0 9 * * *", at(25, 12), name=f"s{number:02}"))
    times.calendar_changed("holidays")
    looked = [len([*times.take_due(at(25, 13), 10, lambda _: {})]) for _ in range(4)]
    assert looked == [10, 10, 10, 0]
    assert times.next_at() == at(26, 9)


def test_the_next_fire_is_on_a_day_that_counts() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS, "never": Calendar(name="never")}
    schedule = scheduled("0 9 * * *", at(28, 12))
    fire = next_fire(with_calendars(schedule, calendars))
    assert fire is not None
    assert fire.nominal_ms == at(2, 9, month=4)  # Friday and Monday are holidays
    never = scheduled("0 9 * * *", at(28, 12), use=CalendarUse(("never",)))
    assert next_fire(with_calendars(never, calendars)) is None
    assert datetime.fromtimestamp(at(31, 9) / 1_000, UTC).hour == 7  # summer time has begun


def test_an_edit_that_leaves_the_day_out_decides_nothing_about_it_before_it_is_over() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS}
    times = DueTimes(calendars)
    times.seen(scheduled("0 9,15 * * *", at(22, 16)))
    calendars["holidays"] = HOLIDAYS.model_copy(update={"include": read_days(["2030-12-24"]), "rev": 2})
    times.calendar_changed("holidays")
    assert decided(times, at(23, 12)) == []
    assert times.next_at() == at(24, 0)
    calendars["business-days"] = BUSINESS_DAYS.model_copy(update={"weekdays": tuple(range(7)), "rev": 2})
    times.calendar_changed("business-days")
    assert fires(decided(times, at(23, 13))) == [at(23, 9)]


def test_what_was_due_before_a_day_that_is_left_out_does_not_take_that_day_with_it() -> None:
    times = DueTimes({"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS})
    times.seen(scheduled("0 9,15 * * *", at(22, 12)))
    outcomes = decided(times, at(23, 12))
    assert (fires(outcomes), runs(outcomes)) == ([at(22, 15)], [])
    assert runs(decided(times, at(24, 0))) == [(Verdict.EXCLUDED, at(23, 9), at(23, 15), 2)]
