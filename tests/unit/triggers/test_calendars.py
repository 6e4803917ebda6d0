"""Calendars against a second opinion: a filter that asks which date the clock shows at each nominal time."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar, Days, read_days
from hascheduler.schema.trigger import CalendarUse, Cron, Interval, Pattern, Trigger
from hascheduler.triggers import (
    MissingCalendar,
    count_firing,
    count_nominal,
    excluded_until,
    next_firing,
    next_nominal,
    on_calendars,
    upcoming,
)
from tests.tiers import spread

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",  # until 2019 midnight did not exist, or came twice
    "America/St_Johns",  # in 2010 it went from 00:01 back to the day before
    "Pacific/Apia",  # no 30 December 2011
    "Australia/Lord_Howe",
)
CALENDARS = {
    each.name: each
    for each in (
        Calendar(name="business-days", weekdays=(0, 1, 2, 3, 4), include=read_days(["2011-12-31"])),
        Calendar(
            name="holidays", include=read_days(["2010-11-06/2010-11-09", "2011-05-01", "--12-25", "--02-29", "--10-16"])
        ),
        Calendar(name="odd", weekdays=(0, 2, 4, 6), exclude=read_days(["2010-11-07", "2011-12-28/2012-01-03"])),
        Calendar(name="never"),
    )
}
NAIVE: dict[str, Callable[[date], bool]] = {
    "business-days": lambda day: day.weekday() < 5 or day == date(2011, 12, 31),
    "holidays": lambda day: (
        date(2010, 11, 6) <= day <= date(2010, 11, 9)
        or day == date(2011, 5, 1)
        or (day.month, day.day) in ((12, 25), (2, 29), (10, 16))
    ),
    "odd": lambda day: (
        day.weekday() in (0, 2, 4, 6) and day != date(2010, 11, 7) and not date(2011, 12, 28) <= day <= date(2012, 1, 3)
    ),
    "never": lambda _: False,
}
USES = ((("business-days",), ("holidays",)), ((), ("holidays", "odd")), (("business-days", "odd"), ()))
FROM_MS = int(datetime(2010, 10, 1, tzinfo=UTC).timestamp() * 1_000)
UNTIL_MS = int(datetime(2012, 4, 15, tzinfo=UTC).timestamp() * 1_000)


def patterns(zone: str) -> tuple[Pattern, ...]:
    return (
        Cron("30 0,23 * * *", zone),
        Cron("0 2 1,15,30 * *", zone),
        Interval(7 * HOUR_MS, WallMs(11)),
        Interval(130 * 60_000, WallMs(0)),
    )


def used(pattern: Pattern, zone: str, only: tuple[str, ...], excluding: tuple[str, ...], **more: Any) -> Trigger:
    said = None if isinstance(pattern, Cron) else zone
    return on_calendars(Trigger(pattern, calendars=CalendarUse(only, excluding, said), **more), CALENDARS)


def naively(trigger: Trigger, zone: str, only: tuple[str, ...], excluding: tuple[str, ...]) -> list[int]:
    clock = ZoneInfo(zone)
    found: list[int] = []
    nominal_ms = next_nominal(trigger, FROM_MS)
    while nominal_ms is not None and nominal_ms <= UNTIL_MS:
        day = datetime.fromtimestamp(nominal_ms / 1_000, clock).date()
        in_window = any(window.from_ms <= nominal_ms < window.to_ms for window in trigger.exclude)
        fires = all(NAIVE[name](day) for name in only) and not any(NAIVE[name](day) for name in excluding)
        found += [nominal_ms] if fires and not in_window else []
        nominal_ms = next_nominal(trigger, nominal_ms)
    return found


@pytest.mark.parametrize("zone", spread(ZONES, check=3))
def test_the_end_of_what_is_excluded_passes_no_time_that_fires(zone: str) -> None:
    for pattern in patterns(zone):
        trigger = used(pattern, zone, *USES[0])
        firing = set(naively(trigger, zone, *USES[0]))
        nominal_ms: int | None = next_nominal(trigger, FROM_MS)
        while nominal_ms is not None and nominal_ms <= UNTIL_MS - 10 * DAY_MS:
            until_ms = excluded_until(trigger, nominal_ms)
            assert (until_ms is None) == (nominal_ms in firing)
            if until_ms is not None:
                assert until_ms > nominal_ms
                assert not any(nominal_ms <= each < until_ms for each in firing)
            nominal_ms = next_nominal(trigger, nominal_ms if until_ms is None else until_ms - 1)


@pytest.mark.parametrize("pattern", [Interval(100, WallMs(0)), Cron("0 9 * * *"), Cron("0 0 29 2 *")])
def test_a_search_in_days_of_which_none_counts_ends_in_bounded_work(
    pattern: Pattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    has = Days.has

    def counted(self: Days, day: int) -> bool:
        asked.append(day)
        return has(self, day)

    monkeypatch.setattr(Days, "has", counted)
    trigger = used(pattern, "UTC", ("never",), ())
    assert next_firing(trigger, FROM_MS) is None
    assert len(asked) < 4_000
    assert [one.excluded for one, _ in zip(upcoming("s", trigger, FROM_MS), range(20), strict=False)] == [True] * 20
    assert count_firing(trigger, FROM_MS, UNTIL_MS) == 0 < count_nominal(trigger, FROM_MS, UNTIL_MS)


def test_a_calendar_that_is_not_there_is_named_with_the_nearest_and_never_taken_for_an_empty_one() -> None:
    use = CalendarUse(("business-days",), ("holiday",))
    with pytest.raises(MissingCalendar) as refused:
        on_calendars(Trigger(Cron("0 9 * * *"), calendars=use), CALENDARS)
    assert refused.value.path == ("trigger", "calendars", "except", 0)
    assert refused.value.expected == "holidays"
    with pytest.raises(InvalidInput, match="not known here"):
        next_firing(Trigger(Cron("0 9 * * *"), calendars=use), FROM_MS)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2030-02-29", 1), ("2030-1-1", 1), ("20300101", 1), ("2030-01-02/2030-01-01", 1), ("2030-01-01/", 1),
        ("--13-01", 1), ("02-30", 1), ("1969-12-31", 1), ("2100-01-01", 1), ("", 1), (5, 1), ("٢٠٣٠-٠١-٠١", 1),
        ("2030-01-01/2030-01-02/2030-01-03", 1),
    ],
)  # fmt: skip
def test_what_is_no_day_is_refused_with_its_place(text: object, place: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_days(["2030-01-01", text])
    assert refused.value.path == (place,)


def test_days_have_one_form_and_lose_none() -> None:
    days = read_days(["12-25", "2030-03-02/2030-03-05", "2030-03-01", "2030-03-04/2030-03-07", "2030-03-01", "--12-25"])
    assert days.texts() == ["2030-03-01", "2030-03-02/2030-03-07", "--12-25"]
    assert all(before[1] < after[0] for before, after in pairwise(days.spans))
    assert read_days(days.texts()) == days
    first = (date(2030, 2, 27) - date(1970, 1, 1)).days
    assert [days.has(first + step) for step in range(12)] == [False] * 2 + [True] * 7 + [False] * 3
