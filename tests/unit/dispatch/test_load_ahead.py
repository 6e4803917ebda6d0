"""How many slots the fires to come need, by bucket, and when that is more than there are."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.schedules.load_ahead import BUCKET_MS, BUCKETS, LoadAhead, load_ahead
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.trigger import CalendarUse, Cron, Interval, Once, Pattern, Times, Trigger
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from tests.unit.dispatch.nouns import make_schedule

FROM = 1_893_456_000_000
MINUTE_MS = 60_000
NOW = FROM + 5 * MINUTE_MS
AT_ONE = Once(WallMs(FROM + 60 * MINUTE_MS))


def schedule(pattern: Pattern, name: str = "a", definition: str = "log", **trigger: Any) -> ScheduleRef:
    plain = make_schedule(name, cursor_ms=WallMs(NOW), since_ms=WallMs(0))
    template = replace(plain.template, definition=definition)
    return replace(plain, trigger=replace(Trigger(pattern), **trigger), template=template)


def load(*schedules: ScheduleRef, minutes: float = 10, slots: int = 2) -> LoadAhead:
    steps = load_ahead(NOW, schedules, slots, {"log": 1}, {}, cost_ms=lambda _template, _name: int(minutes * MINUTE_MS))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: LoadAhead = end.value
            return found


@pytest.mark.parametrize(
    ("trigger", "minutes", "needed"),
    [
        (schedule(AT_ONE), 10, {6: 1}),
        (schedule(AT_ONE), 25, {6: 1, 7: 1, 8: 1}),
        (schedule(AT_ONE, jitter_ms=10 * MINUTE_MS), 20, {6: 1, 7: 1, 8: 1}),
        (schedule(Times((WallMs(NOW - 1), WallMs(NOW + 1)))), 0.1, {0: 1}),
        (schedule(Interval(120 * MINUTE_MS, WallMs(MINUTE_MS))), 1, {12 * hour: 1 for hour in range(1, 12)}),
        (schedule(Interval(MINUTE_MS, WallMs(0))), 2, {0: 1} | dict.fromkeys(range(1, BUCKETS), 2)),
        (schedule(Interval(MINUTE_MS, WallMs(0)), max_fires=20), 10, {0: 1, 1: 9, 2: 9, 3: 2}),
        (schedule(Cron("*/5 3 * * *")), 20, {18: 2, 19: 4, **dict.fromkeys(range(20, 24), 4), 24: 3, 25: 1}),
        (schedule(Once(WallMs(NOW))), 10, {}),
        (schedule(Once(WallMs(FROM + BUCKETS * BUCKET_MS))), 10, {}),
        (replace(schedule(AT_ONE), paused_at_ms=WallMs(NOW)), 10, {}),
        (replace(schedule(AT_ONE, max_fires=1), tally=FireCounts(fired=1)), 10, {}),
    ],
)
def test_each_bucket_needs_the_fires_in_it_times_their_cost(
    trigger: ScheduleRef, minutes: float, needed: dict[int, int]
) -> None:
    everything, *_ = load(trigger, minutes=minutes).loads
    assert {bucket: slots for bucket, slots in enumerate(everything.needed) if slots} == needed


def test_what_is_too_much_is_said_by_spans_of_all_and_of_definitions_with_a_cap() -> None:
    names = [f"s{number}" for number in range(3)]
    found = load(*(schedule(AT_ONE, name, "log" if name == "s0" else "other") for name in names), minutes=30)
    assert [(each.definition, each.slots, max(each.needed)) for each in found.loads] == [(None, 2, 3), ("log", 1, 1)]
    spans = [list(each.too_much(FROM)) for each in found.loads]
    assert spans == [[(FROM + 6 * BUCKET_MS, FROM + 9 * BUCKET_MS, 3)], []]


def test_schedules_whose_times_are_not_known_are_left_out_and_counted() -> None:
    found = load(schedule(AT_ONE), schedule(Cron("0 1 * * *"), "b", calendars=CalendarUse(only=("nobody-has-it",))))
    assert (found.left_out, max(found.loads[0].needed)) == (1, 1)
