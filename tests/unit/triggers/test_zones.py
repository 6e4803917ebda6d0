"""Nights in which the clock is changed; zones come from tzdata alone; hostile expressions take few steps."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import LATEST_MS, format_instant, parse_instant
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.triggers import check_trigger, clock_changes, count_nominal, latest_nominal, next_nominal, remarks
from hascheduler.triggers.cron import _read
from hascheduler.triggers.zones import zone_of
from tests.tiers import spread
from tests.zone_data import fixed_zone

# Each: the zone, from (UTC, excluded), and for some expressions the local times that follow, with their offsets.
NIGHTS = [
    # 2027-03-28 01:00 UTC, 02:00 becomes 03:00
    ("Europe/Paris", "2027-03-27T12:00Z", "30 2 * * *", ["28T03:00+02:00", "29T02:30+02:00"]),
    ("Europe/Paris", "2027-03-27T12:00Z", "0 3 * * *", ["28T03:00+02:00", "29T03:00+02:00"]),
    ("Europe/Paris", "2027-03-28T00:00Z", "0,30 1-3 * * *", ["28T01:30+01:00", "28T03:00+02:00", "28T03:30+02:00"]),
    ("Europe/Paris", "2027-03-27T12:00Z", "*/20 2 * * *", ["28T03:00+02:00", "29T02:00+02:00"]),
    ("Europe/Paris", "2027-03-27T23:00Z", "0 * * * *", ["28T01:00+01:00", "28T03:00+02:00", "28T04:00+02:00"]),
    ("Europe/Paris", "2027-03-27T23:00Z", "0 */2 * * *", ["28T04:00+02:00", "28T06:00+02:00"]),
    # 2027-10-31 01:00 UTC, 03:00 becomes 02:00
    ("Europe/Paris", "2027-10-30T12:00Z", "30 2 * * *", ["31T02:30+02:00", "01T02:30+01:00"]),
    ("Europe/Paris", "2027-10-31T00:00Z", "30 * * * *", ["31T02:30+02:00", "31T02:30+01:00", "31T03:30+01:00"]),
    ("Europe/Paris", "2027-10-30T23:00Z", "0 */2 * * *", ["31T02:00+02:00", "31T02:00+01:00", "31T04:00+01:00"]),
    ("Europe/London", "2027-03-27T12:00Z", "30 1 * * *", ["28T02:00+01:00", "29T01:30+01:00"]),
    ("Europe/London", "2027-10-30T12:00Z", "30 1 * * *", ["31T01:30+01:00", "01T01:30+00:00"]),
    ("America/New_York", "2027-03-13T12:00Z", "30 2 * * *", ["14T03:00-04:00", "15T02:30-04:00"]),
    ("America/New_York", "2027-11-06T12:00Z", "30 1 * * *", ["07T01:30-04:00", "08T01:30-05:00"]),
    # half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30
    ("Australia/Lord_Howe", "2027-10-02T00:00Z", "15 2 * * *", ["03T02:30+11:00", "04T02:15+11:00"]),
    ("Australia/Lord_Howe", "2027-10-02T00:00Z", "45 2 * * *", ["03T02:45+11:00", "04T02:45+11:00"]),
    ("Australia/Lord_Howe", "2027-04-03T00:00Z", "45 1 * * *", ["04T01:45+11:00", "05T01:45+10:30"]),
    ("Australia/Lord_Howe", "2027-04-03T14:00Z", "45 * * * *", ["04T01:45+11:00", "04T01:45+10:30", "04T02:45+10:30"]),
    # standard time in Ramadan only: 03:00 becomes 02:00 before it, 02:00 becomes 03:00 after it
    ("Africa/Casablanca", "2026-02-14T12:00Z", "30 2 * * *", ["15T02:30+01:00", "16T02:30+00:00"]),
    ("Africa/Casablanca", "2026-03-21T12:00Z", "30 2 * * *", ["22T03:00+01:00", "23T02:30+01:00"]),
    # the 30th of December 2011 did not exist
    ("Pacific/Apia", "2011-12-29T12:00Z", "0 9 * * *", ["29T09:00-10:00", "31T00:00+14:00", "31T09:00+14:00"]),
    ("Pacific/Apia", "2011-12-29T12:00Z", "0 9 30 12 *", ["31T00:00+14:00", "30T09:00+14:00"]),
    ("Pacific/Apia", "2011-12-30T09:00Z", "0 * * * *", ["31T00:00+14:00", "31T01:00+14:00"]),
]  # fmt: skip


def local(cron: Cron, at_ms: int) -> str:
    """The instant as the zone's clock shows it: ``28T03:00+02:00``."""
    return datetime.fromtimestamp(at_ms // 1_000, zone_of(cron.timezone)).isoformat(timespec="minutes")[8:]


@pytest.mark.parametrize(("timezone", "after", "expression", "expected"), NIGHTS)
def test_the_night_of_a_clock_change(timezone: str, after: str, expression: str, expected: list[str]) -> None:
    cron = Cron(expression, timezone)
    found = []
    nominal_ms = parse_instant(after)
    for _ in expected:
        following = next_nominal(Trigger(cron), nominal_ms)
        assert following is not None
        assert following > nominal_ms
        nominal_ms = following
        found.append(local(cron, nominal_ms))
    assert found == expected


def test_from_within_the_second_pass_the_first_pass_is_over() -> None:
    trigger = Trigger(Cron("*/10 2 * * *", "Europe/Paris"))
    second_pass = parse_instant("2027-10-31T01:15Z")  # 02:15, the second time
    following = next_nominal(trigger, second_pass)
    assert following is not None
    assert format_instant(following) == "2027-11-01T01:00:00.000Z"
    assert count_nominal(trigger, parse_instant("2027-10-31T00:00Z") - 1, second_pass) == 6


@pytest.mark.parametrize(
    ("expression", "gap", "fold"),
    [
        ("30 2 * * *", "02:30 does not exist; it fires once, right after the gap, at 03:00",
         "02:30 occurs twice; it fires the first time only"),
        ("*/10 2 * * *", "02:00 and 5 more do not exist; it fires once, right after the gap, at 03:00",
         "02:00 and 5 more occur twice; it fires the first time only"),
        ("30 * * * *", "it keeps real time and does not catch up on the skipped wall times",
         "02:30 occurs twice; it keeps real time and fires both times"),
        ("0 12 * * *", "none of its times is skipped", "none of its times occurs twice"),
    ],
)  # fmt: skip
def test_clock_changes_are_explained(expression: str, gap: str, fold: str) -> None:
    trigger = Trigger(Cron(expression, "Europe/Paris"))
    changes = list(clock_changes(trigger, parse_instant("2027-01-01T00:00Z"), parse_instant("2028-01-01T00:00Z")))
    assert [change.explanation for change in changes] == [
        f"Sun 28 Mar 2027: the clock goes from 02:00 to 03:00; {gap}",
        f"Sun 31 Oct 2027: the clock goes from 03:00 to 02:00; {fold}",
    ]
    assert [change.kind for change in changes] == ["gap", "fold"]
    assert [(change.offset_before_s, change.offset_after_s) for change in changes] == [(3_600, 7_200), (7_200, 3_600)]


@pytest.mark.parametrize(
    ("timezone", "expression", "around", "words", "fires"),
    [
        # a day that did not exist: the fires of the day after it are shown
        (
            "Pacific/Apia",
            "0 9 * * *",
            "2011-12",
            "Fri 30 Dec 2011: the clock goes from 00:00 to 00:00 on Sat 31 Dec; 09:00 does not exist; it fires once, "
            "right after the gap, at 00:00 on Sat 31 Dec",
            ["31T00:00+14:00", "31T09:00+14:00"],
        ),
        # put back at midnight: the hour that comes twice is of the day before
        (
            "Asia/Beirut",
            "30 23 * * *",
            "2027-10",
            "Sun 31 Oct 2027: the clock goes from 00:00 to 23:00 on Sat 30 Oct; 23:30 occurs twice; it fires the first "
            "time only",
            ["30T23:30+03:00"],
        ),
    ],
)
def test_changes_at_midnight_name_the_day_and_show_its_fires(
    timezone: str, expression: str, around: str, words: str, fires: list[str]
) -> None:
    cron = Cron(expression, timezone)
    begin_ms = parse_instant(f"{around}-01T00:00Z")
    (change,) = list(clock_changes(Trigger(cron), begin_ms, begin_ms + 31 * 86_400_000))
    assert change.explanation == words
    assert [local(cron, at_ms) for at_ms in change.nominal_ms] == fires


ROOT = Path(__file__).parents[3]
_ZONE = "America/Vancouver"
_ASKED = f"""
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.schedules.preview import zone_or_default
from hascheduler.dispatch.schedules.previews import finished, make_preview
from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.model.values.instants import parse_instant
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.triggers import next_nominal, upcoming

trigger, after_ms = Trigger(Cron("0 9 * * *", "{_ZONE}")), parse_instant("2027-01-04T00:00Z")
print(next_nominal(trigger, after_ms) - after_ms)
preview = finished(make_preview("s", trigger, after_ms, [next(upcoming("s", trigger, after_ms))]))
print(preview["fires"][0]["local"])
print(zone_or_default("{_ZONE}").utcoffset(None))
print(instant_text("2027-01-04T17:00:00.000Z"))
print(ZONE_DATA_VERSION)
"""
_BY_THE_MACHINE = f"""
import datetime, zoneinfo
print(datetime.datetime(2027, 1, 4, tzinfo=zoneinfo.ZoneInfo("{_ZONE}")))
"""


def _told(code: str, **environment: str) -> list[str]:
    settings = {**os.environ, "TZ": _ZONE, **environment}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


def test_older_files_of_the_machine_change_no_time(tmp_path: Path) -> None:
    stale = tmp_path / _ZONE
    stale.parent.mkdir(parents=True)
    stale.write_bytes(fixed_zone(-8 * 3_600))
    assert _told(_BY_THE_MACHINE, PYTHONTZPATH=f"{tmp_path}") == ["2027-01-04 00:00:00-08:00"]
    told = _told(_ASKED, PYTHONTZPATH=f"{tmp_path}")
    assert told == _told(_ASKED, PYTHONTZPATH="")
    assert told[:2] == ["57600000", "2027-01-04T09:00:00-07:00"]
    assert told[-1] == ZONE_DATA_VERSION


STEPS_MAX = 250_000
"""A search through all the months of 130 years in which the clock changes takes 120,000."""

NOW = parse_instant("2027-01-01T00:00Z")
HOSTILE = [
    # once in four years, once in twenty-eight, never
    "0 0 29 2 *", "59 59/60 29 2 *", "0 0 29 2 ?", "0 0 29W 2 *", "0 0 L-28 2 *", "0 0 L-29 2 *",
    "0 0 31W 2,4,6,9,11 *", "0 0 30 2 *", "0 0 L-30 2,4 *", "0 0 29 2 1#5", "0 0 * 2 0#5", "* * * 2 6#5 59",
    "59 23 31W 2 * 59",
    # always
    "* * * * * *", "*/1 */1 */1 */1 */1 */1", "0-58,59 * * * * 0-58,59", "* * 1-31 * 0-6 *",
    "* * L,LW,1W,L-1,L-2W * 0-6 *",
    # only in wall times that a change of the clock leaves out, or brings twice
    "30 2 * 3 0#5 0", "*/30 */2 28 3 * *", "* * 29-31 3 * 59", "59 */23 31W 3,10 * 59",
    # long ones
    ",".join(["1-59/2"] * 36) + " * * * *",
    ",".join(["50-10"] * 40) + " * * * *", "0 0 " + ",".join(["15W"] * 60) + " * *",
    "0 0 " + ",".join(["L-30W"] * 40) + " 2 *", "0 0 * * " + ",".join(["5L"] * 80), "* " * 120, "? " * 6, "?" * 250,
    "0 0 12 " + "?," * 100 + "? * ?", "@every " + "9" * 240, "@every " + "1s" * 120, "@every 1e9h", "tz=" * 80,
    "* * * * * " * 40, "L " * 6, "W W W W W", "LWLW * * * *", "0 0 L--3 * *", "0 0 -3L * *", "0 0 15W15W * *",
]  # fmt: skip
ZONES = spread(
    ["Africa/Casablanca", "UTC", "Australia/Lord_Howe", "Antarctica/Troll", "pacific/APIA", "x" * 10_240], check=2
)


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:30])
def test_each_answer_is_found_or_refused_in_few_steps(expression: str) -> None:
    for zone in ZONES:
        trigger = Trigger(Cron(expression, zone))
        for ask in (
            check_trigger,
            remarks,
            lambda trigger: next_nominal(trigger, NOW),
            lambda trigger: next_nominal(trigger, -1),
            lambda trigger: next_nominal(trigger, LATEST_MS - 2_000),
            lambda trigger: latest_nominal(trigger, NOW),
            lambda trigger: count_nominal(trigger, -1, LATEST_MS),
            lambda trigger: list(clock_changes(trigger, NOW, NOW + 400 * 86_400_000)),
        ):
            _read.cache_clear()
            assert _steps(ask, trigger) < STEPS_MAX


def _steps(ask: Callable[[Trigger], object], trigger: Trigger) -> int:
    """How many functions were called; a long search is cut off there."""
    steps = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}
        if steps >= STEPS_MAX:
            raise _TooManyError

    sys.setprofile(count)
    try:
        ask(trigger)
    except (InvalidInput, _TooManyError):
        pass
    finally:
        sys.setprofile(None)
    return steps


class _TooManyError(Exception):
    pass


def test_steps_are_counted() -> None:
    assert _steps(lambda _: [len(text) for text in ["1"] * STEPS_MAX], Trigger(Cron("* * * * *"))) == STEPS_MAX
