"""Several patterns in one trigger, and calendars, each against a second way to find their times."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.trigger import decode_trigger
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.schema.calendar import Calendar, Days, read_days
from hascheduler.schema.trigger import AnyOf, CalendarUse, Cron, Interval, Once, Pattern, Single, Times, Trigger
from hascheduler.triggers import (
    MissingCalendar,
    check_trigger,
    count_firing,
    count_nominal,
    due_ms,
    latest_nominal,
    next_firing,
    next_nominal,
    on_calendars,
    upcoming,
)
from tests.tiers import examples
from tests.unit.triggers.test_nominal_times import EXPRESSIONS

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
T0 = parse_instant("2027-01-01T00:00:00Z")
PARIS = "Europe/Paris"
CHANGES = (
    ("Europe/Paris", "2027-03-28T01:00:00Z"),
    ("Europe/Paris", "2027-10-31T01:00:00Z"),
    ("America/New_York", "2027-11-07T06:00:00Z"),
    ("Australia/Lord_Howe", "2027-04-03T15:00:00Z"),  # half an hour
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),  # a day is left out
    ("America/St_Johns", "2010-11-07T02:31:00Z"),  # from 00:01 back to the day before
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),  # no midnight
    ("Africa/Monrovia", "1972-01-07T00:44:30Z"),  # its offset was no whole minute
    ("Africa/Casablanca", "2027-02-07T02:00:00Z"),
    ("UTC", "2027-12-31T23:59:00Z"),
)
EVERY_MS = (MINUTE_MS, 5 * MINUTE_MS, 96 * MINUTE_MS, 8 * HOUR_MS, DAY_MS, 3 * DAY_MS)


@st.composite
def around_a_clock_change(draw: st.DrawFn) -> tuple[Trigger, int, int]:
    """A trigger of several patterns, and a stretch of a few days that a clock changes in, or near to."""
    zone, change = draw(st.sampled_from(CHANGES))
    change_ms = parse_instant(change)
    near = st.integers(change_ms - 3 * DAY_MS, change_ms + 3 * DAY_MS)
    zones = st.sampled_from([zone, zone, draw(st.sampled_from(CHANGES))[0], "UTC"])
    whole_minutes = near.map(lambda at_ms: WallMs(at_ms - at_ms % MINUTE_MS))
    parts = (
        st.builds(Cron, EXPRESSIONS, zones)
        | st.builds(Cron, st.sampled_from(["*/7 * * * *", "*/5 1-3 * * *", "30 0-5 * * *", "0 0 * * *"]), zones)
        | st.builds(Interval, st.sampled_from(EVERY_MS), whole_minutes | near.map(WallMs))
        | st.builds(Once, whole_minutes)
        | st.lists(whole_minutes, min_size=1, max_size=9, unique=True).map(lambda times: Times(tuple(sorted(times))))
    )
    bounds = st.none() | near.map(WallMs)
    trigger = Trigger(
        AnyOf(tuple(draw(st.lists(parts, min_size=2, max_size=5)))), start_at_ms=draw(bounds), end_at_ms=draw(bounds)
    )
    after_ms = draw(near)
    return trigger, after_ms, after_ms + draw(st.integers(0, 5 * DAY_MS))


def times_of(part: Single, trigger: Trigger, after_ms: int, through_ms: int) -> Iterator[int]:
    alone = Trigger(part, start_at_ms=trigger.start_at_ms, end_at_ms=trigger.end_at_ms)
    nominal_ms = next_nominal(alone, after_ms)
    while nominal_ms is not None and nominal_ms <= through_ms:
        yield nominal_ms
        nominal_ms = next_nominal(alone, nominal_ms)


def union(trigger: Trigger, after_ms: int, through_ms: int) -> list[int]:
    return sorted({at for part in trigger.parts for at in times_of(part, trigger, after_ms, through_ms)})


@settings(max_examples=examples(400), deadline=None)
@given(around_a_clock_change())
def test_its_times_are_the_union_of_those_of_its_patterns(case: tuple[Trigger, int, int]) -> None:
    trigger, after_ms, through_ms = case
    expected = union(trigger, after_ms, through_ms)
    assert count_nominal(trigger, after_ms, through_ms) == len(expected)
    assert [at for at in (next_nominal(trigger, after_ms),) if at is not None and at <= through_ms] == expected[:1]
    assert [at for at in (latest_nominal(trigger, through_ms),) if at is not None and at > after_ms] == expected[-1:]
    for before, after in pairwise(expected[:50]):
        assert (next_nominal(trigger, before), latest_nominal(trigger, after - 1)) == (after, before)


def test_ten_patterns_of_each_minute_are_counted_over_a_century() -> None:
    minutes = tuple(Cron(f"{first}-59 * * * *") for first in range(10))
    assert count_nominal(Trigger(AnyOf(minutes)), -1, parse_instant("2069-12-31T23:59:59Z")) == 52_596_000


def test_no_time_is_due_before_an_earlier_one() -> None:
    trigger = Trigger(
        AnyOf((Cron("0 * * * *"), Cron("2 * * * *"), Cron("3 * * * *", PARIS), Interval(HOUR_MS, WallMs(60_001)))),
        jitter_ms=50 * MINUTE_MS,
    )
    check_trigger(trigger)
    for name in ("a", "b", "c"):
        shown = [(one.nominal_ms, one.due_ms) for one in islice(upcoming(name, trigger, T0), 200)]
        dues = [due for _, due in shown]
        assert dues == sorted(dues)
        assert all(0 <= due - nominal <= 50 * MINUTE_MS for nominal, due in shown)
        alone = Trigger(Cron("0 * * * *"), jitter_ms=50 * MINUTE_MS)
        assert any(due_ms(name, alone, nominal) < due for nominal, due in shown), "some wait for an earlier one"


@pytest.mark.parametrize(
    "of",
    [
        None,
        [],
        [{"type": "once", "at_ms": 1}],
        [{"type": "once", "at_ms": n} for n in range(11)],
        [{"type": "once", "at_ms": 1}, 2],
        [{"type": "once", "at_ms": 1}, {"type": "any", "of": [{"type": "once", "at_ms": 1}] * 2}],
        [{"type": "once", "at_ms": 1}, {"type": "interval", "every_ms": 60_001, "anchor_ms": 0}],
    ],
)
def test_nonsense_in_the_store_is_refused(of: Any) -> None:
    with pytest.raises(InvalidInput):
        decode_trigger({"type": "any", "of": of})


DAILY = Cron("0 9 * * *", PARIS)


@pytest.mark.parametrize(
    ("parts", "more", "path"),
    [
        ((DAILY,), {}, ("of",)),
        (tuple(Cron(f"{n} 9 * * *") for n in range(11)), {}, ("of",)),
        ((DAILY, DAILY), {}, ("of", 1)),
        ((DAILY, Cron("0 0 30 2 *")), {}, ("of", 1, "expression")),
        ((DAILY, Cron("x")), {}, ("of", 1, "expression")),
        ((DAILY, Cron("0 9 * * *", "Mars")), {}, ("of", 1, "timezone")),
        ((DAILY, Cron("* * * * * 0,30")), {}, ("of", 1, "expression")),
        ((Interval(30_000, WallMs(0)), DAILY), {}, ("of", 0, "every")),
        ((Interval(7 * MINUTE_MS, WallMs(0)), DAILY), {}, ("of", 0, "every")),
        ((Interval(36 * HOUR_MS, WallMs(0)), DAILY), {}, ("of", 0, "every")),
        ((Times(()), DAILY), {}, ("of", 0, "at")),
        ((Times((WallMs(2), WallMs(1))), DAILY), {}, ("of", 0, "at", 1)),
        ((Times(tuple(map(WallMs, range(1_000)))), Once(WallMs(5_000))), {}, ("of",)),
        ((DAILY, Interval(HOUR_MS, WallMs(0))), {"jitter_ms": HOUR_MS}, ("jitter",)),
        ((DAILY, Cron("0 11 * * sat", "UTC")), {"calendars": CalendarUse(("a",))}, ("calendars", "timezone")),
        ((Once(WallMs(5)), Once(WallMs(6))), {"end_at_ms": WallMs(4)}, ("end_at",)),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(
    parts: tuple[Single, ...], more: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_trigger(Trigger(AnyOf(parts), **more))
    assert refused.value.path == path


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
