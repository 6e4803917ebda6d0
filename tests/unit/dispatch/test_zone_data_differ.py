"""Leaders with different time-zone data decide each local time once.

``new`` are data by which America/Vancouver stays at 7 h behind UTC, ``old`` those by which it is at 8 h. A schedule is
decided by one and by the other, as if leadership went to and fro between them.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from secrets import randbits
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    EXTRA_FIELDS,
    Fire,
    RecordVerdict,
    TimeOutcome,
    decode_decisions,
    encode_decisions,
    encode_extras,
)
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.edits import paused, resumed, with_trigger
from hascheduler.dispatch.schedules.previews import finished, next_fire
from hascheduler.dispatch.schedules.trigger_periods import decided_through_ms, summarize_undecided
from hascheduler.model.documents.schedule import decode_schedule, encode_schedule_ref, with_leader_fields
from hascheduler.model.values.instants import WallMs, format_instant, parse_instant
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef, ZoneOffsets
from hascheduler.schema.trigger import AnyOf, Cron, Interval, Single, Trigger
from hascheduler.triggers import next_nominal
from hascheduler.triggers.zones import wall_reached, zone_of
from tests.tiers import examples
from tests.unit.dispatch.nouns import make_schedule
from tests.zone_data import other_zone_data

ZONE = "America/Vancouver"
RULES = {"new": {ZONE: "Etc/GMT+7"}, "old": {ZONE: "Etc/GMT+8"}, "paris": {ZONE: "Europe/Paris"}}
HOUR = 3_600_000
DAILY, TWICE = Cron("0 9 * * *", ZONE), Cron("0 9,10 * * *", ZONE)


def at(text: str) -> WallMs:
    return parse_instant(f"2027-01-{text}Z")


def schedule_of(*parts: Single, catch_up: CatchUp = CatchUp.ALL) -> ScheduleRef:
    began = at("03T20:00")
    trigger = Trigger(parts[0] if len(parts) == 1 else AnyOf(parts))
    policy = SchedulePolicy(catch_up=catch_up)
    return make_schedule(
        "s", trigger=trigger, policy=policy, created_at_ms=began, since_ms=began, cursor_ms=began
    )  # fmt: skip


def led(schedule: ScheduleRef, data: str, now: WallMs) -> tuple[ScheduleRef, list[TimeOutcome]]:
    """What a leader with those data decides by ``now``: read from the store, journaled, and stored."""
    with other_zone_data(RULES[data]):
        due_times = DueTimes()
        due_times.seen(decode_schedule("s", encode_schedule_ref(schedule)))
        decided = tuple(each for new in due_times.take_due(now, 10_000, lambda _: {}) for each in new)
    beside = encode_extras(decided)
    outcomes: list[TimeOutcome] = []
    for outcome in decode_decisions(encode_decisions(decided), *map(beside.get, EXTRA_FIELDS)):
        assert isinstance(outcome, Fire | RecordVerdict)
        outcomes.append(outcome)
        schedule = replace(schedule, cursor_ms=outcome.nominal_ms, tally=outcome.tally, offsets=outcome.offsets)
    return schedule, outcomes


def fired(schedule: ScheduleRef, leaders: str) -> str:
    """The nominal times that fire, in UTC, while each of ``leaders`` leads until an instant."""
    found: list[str] = []
    words = leaders.split()
    for data, until in zip(words[::2], words[1::2], strict=True):
        schedule, decided = led(schedule, data, at(until))
        found += [format_instant(each.nominal_ms)[8:-1] for each in decided if isinstance(each, Fire)]
    return " ".join(time.removesuffix(".000").removesuffix(":00") for time in found)


CASES: list[tuple[list[Single], str, str]] = [
    ([DAILY], "new 04T16:30 old 05T20:00", "04T16:00 05T17:00"),
    ([DAILY], "old 04T17:30 new 05T20:00", "04T17:00 05T16:00"),
    ([DAILY], "old 04T16:30 new 05T20:00", "04T16:00 05T16:00"),
    (
        [DAILY],
        "new 04T16:30 old 04T17:30 new 05T16:30 old 05T17:30 new 06T16:30 old 06T16:40 new 06T17:00 old 06T17:10",
        "04T16:00 05T16:00 06T16:00",
    ),
    # As after a jump of the clock: what it leaves out is one time, right after it.
    ([TWICE], "old 04T17:30 new 05T20:00", "04T17:00 04T17:00:00.001 05T16:00 05T17:00"),
    ([TWICE], "new 04T16:30 old 05T00:00", "04T16:00 04T18:00"),
    ([TWICE], "old 04T17:30 new 04T17:40 old 05T00:00", "04T17:00 04T17:00:00.001"),
    ([Cron("*/15 9 * * *", ZONE)], "old 04T17:20 new 05T00:00", "04T17:00 04T17:15 04T17:15:00.001"),
    ([Cron("0 */6 * * *", ZONE)], "new 04T13:30 old 04T21:00", "04T01:00 04T07:00 04T13:00 04T20:00"),
    # Each hour is an hour, whatever the clock shows.
    ([Cron("0 * * * *", ZONE)], "new 03T22:30 old 04T00:00", "03T21:00 03T22:00 03T23:00 04T00:00"),
    ([Interval(HOUR, at("03T20:10"))], "new 03T21:30 old 03T23:30", "03T20:10 03T21:10 03T22:10 03T23:10"),
    # Other parts of the trigger go on meanwhile.
    (
        [DAILY, Interval(HOUR // 4, at("04T15:50"))],
        "new 04T16:06 old 04T16:21 old 04T17:20",
        "04T16:00 04T16:05 04T16:20 04T16:35 04T16:50 04T17:05 04T17:20",
    ),
    ([DAILY, Cron("0 9 * * *", "UTC")], "new 04T16:30 old 05T12:00", "04T09:00 04T16:00 05T09:00"),
    ([DAILY, Cron("0 9 * * *", "Asia/Tokyo")], "new 04T16:30 old 05T17:00", "04T00:00 04T16:00 05T00:00 05T17:00"),
    # An outage in which the data changed.
    ([DAILY], "new 04T16:30 old 07T20:00", "04T16:00 05T17:00 06T17:00 07T17:00"),
    ([DAILY], "old 04T17:30 new 07T20:00", "04T17:00 05T16:00 06T16:00 07T16:00"),
]


@pytest.mark.parametrize(("parts", "leaders", "expected"), CASES)
def test_each_local_time_is_decided_once_whoever_leads(parts: Sequence[Single], leaders: str, expected: str) -> None:
    schedule = schedule_of(*parts)
    found = fired(schedule, leaders)
    # The interval began long before; its times of the day before are beside the point.
    assert found.endswith(expected)
    assert len(parts) > 1 or found == expected


@pytest.mark.parametrize(
    "expression", ["30 9 * * *", "0,30 7-18 * * *", "*/10 9-17 * * 1-5", "5 */3 * * *", "15 1 * * *"]
)
def test_to_and_fro_no_local_time_is_doubled_or_lost(expression: str) -> None:
    seed = randbits(32)
    print(f"seed {seed}")
    chance = Random(seed)
    for _ in range(examples(10)):
        schedule = schedule_of(Cron(expression, ZONE))
        kinds, now = chance.sample(sorted(RULES), 2), schedule.cursor_ms
        decided_s: list[tuple[int, int]] = []
        while now < at("25T00:00"):
            data = chance.choice(kinds)
            now = WallMs(now + chance.choice((HOUR // 6, HOUR, 5 * HOUR, 40 * HOUR)))
            schedule, outcomes = led(schedule, data, now)
            for outcome in outcomes:
                wall_s = _shown(data, outcome.nominal_ms)
                over_s = decided_s[-1][1] if decided_s else wall_s - 1
                assert wall_s > over_s, "a local time came again"
                # One right after a jump stands for all that the clock has left out.
                decided_s.append((over_s if outcome.nominal_ms % 1_000 else wall_s - 1, wall_s))
        named = [wall_s for wall_s in range(decided_s[0][1], decided_s[-1][1] + 1, 60) if _names(expression, wall_s)]
        assert [each for each in named if not any(after < each <= through for after, through in decided_s)] == []


def _shown(data: str, at_ms: int) -> int:
    with other_zone_data(RULES[data]):
        return wall_reached(zone_of(ZONE), at_ms // 1_000)


def _names(expression: str, wall_s: int) -> bool:
    """By the same expression in UTC, where every wall time is there once."""
    return next_nominal(Trigger(Cron(expression, "UTC")), wall_s * 1_000 - 1) == wall_s * 1_000


def test_what_is_to_come_is_shown_as_it_will_be_decided() -> None:
    schedule, _ = led(schedule_of(DAILY), "new", at("04T16:30"))
    with other_zone_data(RULES["old"]):
        shown = next_fire(schedule)
        assert shown is not None
        assert shown.nominal_ms == at("05T17:00")
        assert decided_through_ms(schedule) == at("04T17:00")
        assert finished(summarize_undecided(schedule, at("04T18:00"))).count == 0
    schedule, _ = led(schedule_of(TWICE), "old", at("04T17:30"))
    with other_zone_data(RULES["new"]):
        shown = next_fire(schedule)
        assert shown is not None
        assert shown.nominal_ms == at("04T17:00") + 1
        assert finished(summarize_undecided(schedule, at("04T17:31"))).count == 1


@pytest.mark.parametrize("edit", ["a pause", "another trigger", "the zone"])
def test_an_edit_in_between_neither_doubles_nor_loses_a_local_time(edit: str) -> None:
    def edited(schedule: ScheduleRef, now: WallMs) -> ScheduleRef:
        if edit == "a pause":
            return resumed(paused(schedule, now), WallMs(now + 1_000), from_now=True)
        zone = "Etc/GMT+3" if edit == "the zone" else ZONE
        return with_trigger(schedule, Trigger(Cron("0 9 * * 0-6", zone)), now)

    schedule, _ = led(schedule_of(DAILY), "new", at("04T16:30"))
    with other_zone_data(RULES["old"]):
        schedule = edited(schedule, at("04T16:31"))
    assert fired(schedule, "old 05T17:30") == ("05T12:00" if edit == "the zone" else "05T17:00")
    schedule, _ = led(schedule_of(TWICE), "old", at("04T17:30"))
    with other_zone_data(RULES["new"]):
        schedule = edited(schedule, at("04T17:31"))
    assert fired(schedule, "new 04T19:00") == "04T17:00:00.001"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cursor_offsets": "7 America/Vancouver=-25200 Asia/Tokyo=32400"}, ((ZONE, -25_200), ("Asia/Tokyo", 32_400))),
        # 0.2.0 moved the cursor, and knows no offsets.
        ({"cursor_offsets": "6 America/Vancouver=-25200"}, ()),
        ({}, ()),
        *(({"cursor_offsets": text}, ()) for text in ("7", "7 X", "7 X=", "7 X=99999", "7 X=1.5", "7  X=1", 7, None)),
    ],
)
def test_offsets_hold_for_their_cursor_alone(fields: dict[str, Any], expected: ZoneOffsets) -> None:
    stored = encode_schedule_ref(replace(schedule_of(DAILY), cursor_ms=WallMs(7)))
    schedule = decode_schedule("s", {**stored, **fields})
    assert schedule.offsets == expected
    assert with_leader_fields(schedule_of(DAILY), {"cursor_ms": 7, **fields}).offsets == expected
    assert with_leader_fields(schedule, {"failures": 1}).offsets == expected
    assert with_leader_fields(schedule, {"cursor_ms": 9, "tally": stored["tally"]}).offsets == ()
