"""Calendars against a second opinion: a filter that asks which date the clock shows at each nominal time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar, Days, read_days
from hascheduler.schema.trigger import CalendarUse, Cron, Interval, Pattern, Trigger
from hascheduler.triggers import (
    MissingCalendar,
    count_firing,
    count_nominal,
    next_firing,
    on_calendars,
    upcoming,
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
FROM_MS = int(datetime(2010, 10, 1, tzinfo=UTC).timestamp() * 1_000)
UNTIL_MS = int(datetime(2012, 4, 15, tzinfo=UTC).timestamp() * 1_000)


def used(pattern: Pattern, zone: str, only: tuple[str, ...], excluding: tuple[str, ...], **more: Any) -> Trigger:
    said = None if isinstance(pattern, Cron) else zone
    return on_calendars(Trigger(pattern, calendars=CalendarUse(only, excluding, said), **more), CALENDARS)


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
