"""The minutes in which schedules fire: as many as their triggers name, clock changes and all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.dispatch.forecast import fires as room
from hascheduler.dispatch.forecast.fires import FiresAhead, evenly
from hascheduler.model.calendar import Calendar
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.trigger import AnyOf, CalendarUse, Cron, Interval, Trigger, Window
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.model.verdict import FireCounts
from hascheduler.triggers import count_firing
from tests.factories import make_calendar
from tests.unit.dispatch.forecasts import DAY_MS, HOUR_MS, MINUTE_MS, NOW, cron, every, once, schedule


def minutes(each: ScheduleRef, now: int = NOW, ahead_ms: int = DAY_MS, **calendars: Calendar) -> dict[int, int]:
    ahead = FiresAhead(now, now + ahead_ms, {one.name: one for one in calendars.values()})
    key = ahead.key(each)
    return {} if key is None else dict(ahead.minutes(key))


@given(st.integers(0, 500), st.integers(1, 300))
def test_what_is_spread_evenly_is_as_much_as_before(count: int, parts: int) -> None:
    shares = [evenly(count, parts, part) for part in range(parts)]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1


@given(
    st.integers(1_000, 3 * HOUR_MS),
    st.integers(0, 2 * HOUR_MS),
    st.integers(0, DAY_MS),
    st.integers(MINUTE_MS, 2 * DAY_MS),
)
def test_no_time_of_an_interval_is_lost(every_ms: int, anchor_ms: int, since_ms: int, ahead_ms: int) -> None:
    trigger = Trigger(Interval(every_ms, WallMs(anchor_ms)))
    now = NOW + since_ms
    found = minutes(schedule("a", trigger), now, ahead_ms)
    assert sum(found.values()) == count_firing(trigger, now + 1, now + ahead_ms)
    assert all(0 <= step <= ahead_ms // MINUTE_MS + 1 for step in found)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (cron("0 3 * * *"), {180: 1}),
        (cron("*/30 * * * *", end_at_ms=WallMs(NOW + HOUR_MS)), {30: 1, 60: 1}),
        (every(40, at=10, start_at_ms=WallMs(NOW + 23 * HOUR_MS)), {1410: 1}),
        (once(5), {5: 1}),
        (once(-5), {}),
        (Trigger(AnyOf((Cron("0 3 * * *"), Cron("0 4 * * *")))), {180: 1, 240: 1}),
        (every(720, exclude=(Window(WallMs(NOW + HOUR_MS), WallMs(NOW + 13 * HOUR_MS)),)), {1440: 1}),
        (every(60, max_fires=2), {60: 1, 120: 1}),
    ],
)
def test_the_minutes_of_a_trigger(trigger: Trigger, expected: dict[int, int]) -> None:
    assert minutes(schedule("a", trigger)) == expected


def test_times_closer_than_a_minute_are_spread_over_their_hour() -> None:
    found = minutes(schedule("a", every(1 / 60, exclude=(Window(NOW, WallMs(NOW + 2 * HOUR_MS)),))))
    assert [found.get(step, 0) for step in (0, 119, 120, 700)] == [0, 0, 60, 60]
    assert sum(found.values()) == 22 * 3_600 + 1


@pytest.mark.parametrize(
    ("day", "fires"), [("2030-03-31", 23), ("2030-10-27", 25), ("2030-06-01", 24)], ids=["gap", "fold", "usual"]
)
def test_days_of_clock_changes_have_their_own_number_of_hours(day: str, fires: int) -> None:
    midnight = parse_instant(f"{day}T00:00:00{'+02:00' if day != '2030-03-31' else '+01:00'}")
    found = minutes(schedule("a", cron("30 * * * *", "Europe/Paris")), midnight, fires * HOUR_MS - 1)
    assert len(found) == fires


def test_a_wall_time_that_does_not_exist_fires_right_after_the_gap() -> None:
    midnight = parse_instant("2030-03-31T00:00:00+01:00")
    assert minutes(schedule("a", cron("30 2 * * *", "Europe/Paris")), midnight, 23 * HOUR_MS - 1) == {120: 1}


def test_what_is_paused_or_has_fired_often_enough_does_not_fire() -> None:
    assert minutes(schedule("a", every(60), paused_at_ms=NOW)) == {}
    assert minutes(schedule("a", every(60, max_fires=3), tally=FireCounts(fired=3))) == {}
    assert sum(minutes(schedule("a", every(60, max_fires=3), tally=FireCounts(fired=1))).values()) == 2


def test_calendars_are_looked_at_and_a_missing_one_makes_the_times_unknown() -> None:
    on_days = schedule("a", cron("0 3 * * *", calendars=CalendarUse(only=("business-days",))))
    week = minutes(on_days, ahead_ms=7 * DAY_MS, it=make_calendar())
    assert 0 < len(week) < 7
    ahead = FiresAhead(NOW, NOW + DAY_MS, {})
    key = ahead.key(on_days)
    assert key is not None
    assert ahead.is_unknown(key)


def test_schedules_that_fire_in_the_same_minutes_share_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = FiresAhead(NOW, NOW + DAY_MS, {})
    assert len({ahead.key(schedule(f"s{n}", every(60, at=7 + n / 100))) for n in range(50)}) == 1
    monkeypatch.setattr(room, "CRONS_MAX", 2)
    ahead = FiresAhead(NOW, NOW + DAY_MS, {})
    triggers = [cron(f"{minute} 3 * * *") for minute in range(4)]
    keys = [ahead.key(schedule(f"s{n}", trigger)) for n, trigger in enumerate(triggers)]
    assert [ahead.is_unknown(key) for key in keys if key is not None] == [False, False, True, True]


def test_a_trigger_that_can_not_be_read_is_unknown() -> None:
    ahead = FiresAhead(NOW, NOW + DAY_MS, {})
    key = ahead.key(schedule("a", cron("no cron at all")))
    assert key is not None
    assert ahead.is_unknown(key)
