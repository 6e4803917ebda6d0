"""The picture of what is coming: one row each, every fire in its cell."""

from zoneinfo import ZoneInfo

import pytest

from hascheduler.cli.schedules.timeline_chart import TimelineRow, draw_timeline
from hascheduler.model.trigger import Cron, Interval, Once, Trigger, Window
from hascheduler.model.values.instants import WallMs, parse_instant

_UTC, _PARIS = ZoneInfo("UTC"), ZoneInfo("Europe/Paris")
_NOON = parse_instant("2026-11-21T12:00:00Z")
_HOURLY = Trigger(Interval(3_600_000, WallMs(0)))


def drawn(
    *rows: TimelineRow, now_ms: int = _NOON, hours: int = 24, zone: ZoneInfo = _UTC, width: int = 80
) -> list[str]:
    return [line.plain.rstrip() for line in draw_timeline(rows, now_ms, hours, zone, width)]


def test_a_day_in_80_columns() -> None:
    rows = (
        TimelineRow("tick", Trigger(Interval(1_000, WallMs(0)))),
        TimelineRow("every-five", Trigger(Interval(300_000, WallMs(0)))),
        TimelineRow("report", Trigger(Cron("5 * * * *"))),
        TimelineRow("nightly", Trigger(Cron("30 2 * * *"))),
        TimelineRow("a-very-long-name-of-a-schedule", Trigger(Once(parse_instant("2026-11-21T15:10:00Z")))),
        TimelineRow("stopped", None, note="paused"),
    )
    assert drawn(*rows) == [
        "                      Sat 21 Nov              │Sun 22 Nov",
        "                      12    15    18    21    │00    03    06    09    12",
        "tick                  ████████████████████████│████████████████████████•  86,400",
        "every-five            ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂│▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂•     288",
        "report                • • • • • • • • • • • • │• • • • • • • • • • • • ╵      24",
        "nightly               ╵     ╵     ╵     ╵     │╵    •╵     ╵     ╵     ╵       1",
        "a-very-long-name-of…  ╵     •     ╵     ╵     │╵     ╵     ╵     ╵     ╵       1",
        "stopped               paused",
    ]


@pytest.mark.parametrize("hours", [1, 6, 24, 48, 168])
@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("now", ["2026-11-21T16:42:10Z", "2027-03-27T23:59:59Z", "2027-10-30T20:00:00Z"])
def test_no_line_is_wider_than_the_terminal(hours: int, width: int, now: str) -> None:
    rows = (
        TimelineRow("tick", Trigger(Interval(100, WallMs(0)))),
        TimelineRow("x" * 50, _HOURLY),
        TimelineRow("off", None, note="paused"),
    )
    lines = drawn(*rows, now_ms=parse_instant(now), hours=hours, zone=_PARIS, width=width)
    assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize("hours", [1, 6, 24, 48, 168])
def test_the_total_is_of_exactly_the_hours_that_were_asked_for(hours: int) -> None:
    for now in ("2026-11-21T16:42:10Z", "2027-10-30T20:00:00Z"):
        *_, row = drawn(
            TimelineRow("tick", Trigger(Interval(60_000, WallMs(0)))), now_ms=parse_instant(now), hours=hours
        )
        assert row.split()[-1] == f"{hours * 60:,}"


def test_hours_are_those_of_the_zone_on_the_day_of_a_clock_change_too() -> None:
    _, labels, row = drawn(
        TimelineRow("report", _HOURLY), now_ms=parse_instant("2027-10-30T22:00:00Z"), hours=6, zone=_PARIS
    )
    assert labels.split() == ["00", "01", "02", "02", "03", "04", "05"]
    assert row.count("•") == 6


def test_excluded_times_are_not_drawn() -> None:
    window = Window(parse_instant("2026-11-21T13:00:00Z"), parse_instant("2026-11-21T16:00:00Z"))
    *_, row = drawn(TimelineRow("report", Trigger(_HOURLY.pattern, exclude=(window,))), hours=6)
    assert row.split()[-1] == "3"


def test_what_is_left_of_a_bounded_number_of_fires_is_drawn() -> None:
    *_, row = drawn(TimelineRow("report", _HOURLY, fires_left=2))
    assert row.count("•") == 2
    assert row.split()[-1] == "2"


def test_a_total_of_millions_is_shortened() -> None:
    *_, row = drawn(TimelineRow("busy", Trigger(Interval(100, WallMs(0)))), hours=168)
    assert row.split()[-1] == "6.0M"
