"""Triggers that make no sense are refused, with the path of the field and what would be right."""

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.schema.trigger import TIMES_MAX, Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.triggers import check_trigger, next_nominal

DAY_MS = 86_400_000
T0 = parse_instant("2027-01-01T00:00Z")
HOURLY = Interval(3_600_000, T0)


def at(days: float) -> WallMs:
    return WallMs(T0 + int(days * DAY_MS))


WRONG: list[tuple[Trigger, tuple[str | int, ...], str]] = [
    *(
        (Trigger(Cron(expression)), ("expression",), words)
        for expression, words in [
            ("* * *", "has 3 fields"),
            ("", "has 0 fields"),
            ("61 * * * *", "'61' can't be the minute; expected 0 to 59"),
            ("* * 0 * *", "can't be the day of month"),
            ("* * * 13 *", "can't be the month; expected 1 to 12, jan to dec"),
            ("*/0 * * * *", "a step of 0"),
            ("*/90 * * * *", "a step of 90; expected 1 to 60"),
            ("- * * * *", "can't be the minute"),
            ("1-5/2/3 * * * *", "can't be the minute"),
            # croniter would take these, and make something of them that few would expect
            ("5-5 * * * *", "as the minute is read as one or as all"),
            ("0 0 * * 7-0", "as the day of week is read as one or as all"),
            ("0 5,* * * *", "* stands beside others"),
            ("0 22-2/3 * * *", "steps over a range that wraps"),
            ("0 0 1-L * *", "'L' can't be the day of month"),
            ("0 0 L-0 * *", "'L-0' can't be the day of month; expected L, or L-1 to L-30"),
            ("0 0 32W * *", "'32W' can't be the day of month; expected 1W to 31W, or LW"),
            ("0 0 1-5W * *", "'5W' can't be the day of month"),
            ("0 0 WL * *", "can't be the day of month"),
            ("0 0 * * 5W", "can't be the day of week"),
            ("0 0 * * 8L", "can't be the day of week"),
            ("0 0 31W 2 *", "never fire"),
            ("0 0 15W * 5#2", "restricts the day of month beside"),
            ("? * * * *", "'?' can't be the minute"),
            ("0 0 ?,15 * *", "'?' can't be the day of month"),
            ("0 0 * * mon-wed#1", "can't be the day of week"),
            ("* * * * 1,5#2", "can't be read"),
            ("* * * * 5#6", "can't be the day of week"),
            ("0 0 13 * 5#2", "restricts the day of month beside"),
            ("0 0 30 2 *", "never fire"),
            ("* " * 5_120, "10240 characters"),
            ("@reboot", "unknown"),
            # the seconds first, or other words of other tools: with what is the same here
            ("0 0 12 * * ?", "'?' can't be the second: the seconds come last here; expected '0 12 * * ?'"),
            ("30 0 12 ? * MON-FRI", "the seconds come last here; expected '0 12 ? * MON-FRI 30'"),
            ("0 0 12 ? * 2-6", "expected '0 12 ? * 2-6' (1 is Monday here, in Quartz Sunday)"),
            ("0 0 12 LW * ? *", "has 7 fields: the seconds come last here; expected '0 12 LW * ?'"),
            ("0 0 12 1 1 ? 2027", "there are no years, and the seconds come last; expected '0 12 1 1 ?' with start_at"),
            ("0 0 12 32 * ?", "'32' can't be the month; expected 1 to 12, jan to dec"),
            ("CRON_TZ=Asia/Tokyo 0 0 * * *", "stands before the fields; expected timezone: Asia/Tokyo"),
            ("@every 90s", 'is an interval; expected a trigger of the type interval, every "1m30s"'),
            ("@every soon", "'soon' is not a duration"),
            ("@every", "an empty text is not a duration"),
            ("@every 0s", "0s is too short; expected at least 100ms"),
            ("H * * * *", "'H' can't be the minute"),
            ("٣ * * * *", "holds a character"),
            ("0 0 * * *\n", "holds a character"),
            ("0 0 * *\0 *", "holds a character"),
        ]
    ),
    *(
        (Trigger(Cron("0 0 * * *", zone)), ("timezone",), "is not a time zone")
        for zone in (
            "Mars/X",
            "../../etc/passwd",
            "/etc/passwd",
            "",
            "europe/nowhere",
            "localtime",
            "Factory",
            "Europe/Paris\0",
            "x" * 10_240,
        )
    ),
    *(
        (Trigger(Cron("0 0 * * *", zone)), ("timezone",), f"'{zone}' is not a time zone; expected {right}")
        for zone, right in (
            ("PST", "a region, such as America/Los_Angeles or Asia/Manila"),
            ("ist", "a region, such as Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
            ("CEST", "a region, such as Europe/Paris"),
            ("W. Europe Standard Time", "Europe/Berlin"),
            ("india standard time", "Asia/Calcutta"),
            ("Europe/Berln", "Europe/Berlin"),
            # What resembles them means something else.
            *((zone, "an IANA time zone such as Europe/Paris") for zone in ("UTC+2", "GMT-5", "Etc/UTC+5", "XST")),
        )
    ),
    (Trigger(Interval(99, T0)), ("every",), "too short"),
    (Trigger(Interval(10**16, WallMs(-1))), ("every",), "never fire"),
    (Trigger(Times(())), ("at",), "0 times"),
    (Trigger(Times(tuple(at(n) for n in range(TIMES_MAX + 1)))), ("at",), "10001 times"),
    (Trigger(Times((at(1), at(1)))), ("at", 1), "does not come after"),
    (Trigger(Times((at(1), at(3), at(2)))), ("at", 2), "does not come after"),
    (Trigger(HOURLY, start_at_ms=at(2), end_at_ms=at(1)), ("end_at",), "before start_at"),
    (Trigger(Once(at(1)), end_at_ms=at(0)), ("end_at",), "never fire"),
    (Trigger(Once(at(1)), start_at_ms=at(2)), ("start_at",), "never fire"),
    (Trigger(Cron("0 0 1 1 *"), start_at_ms=at(1), end_at_ms=at(9)), ("end_at",), "never fire"),
    (Trigger(HOURLY, max_fires=0), ("max_fires",), "too small"),
    (Trigger(HOURLY, jitter_ms=-1), ("jitter",), "negative"),
    (Trigger(HOURLY, jitter_ms=3_600_000), ("jitter",), "as long as the time between two fires"),
    (Trigger(Cron("*/5 * * * *"), jitter_ms=300_000), ("jitter",), "less than 5m"),
    (Trigger(Cron("0 0,1 * * 1"), jitter_ms=3_600_000), ("jitter",), "less than 1h"),
    (Trigger(Times((at(1), at(1.5))), jitter_ms=DAY_MS // 2), ("jitter",), "less than 12h"),
    (Trigger(Once(at(1)), jitter_ms=DAY_MS + 1), ("jitter",), "at most 1d"),
    (Trigger(HOURLY, exclude=(Window(at(2), at(1)),)), ("exclude", 0, "to"), "not after from"),
    (Trigger(HOURLY, exclude=(Window(at(1), at(3)), Window(at(2), at(4)))), ("exclude", 1, "from"), "before it ends"),
    (Trigger(HOURLY, exclude=tuple(Window(at(2 * n), at(2 * n + 1)) for n in range(101))), ("exclude",), "101 windows"),
    (Trigger(Once(at(1)), exclude=(Window(at(1), at(2)),)), ("exclude",), "all of its times are excluded"),
    (
        Trigger(Times((at(1), at(5))), exclude=(Window(at(0), at(2)), Window(at(5), at(6)))),
        ("exclude",),
        "all of its times are excluded",
    ),
]


@pytest.mark.parametrize(("trigger", "path", "words"), WRONG)
def test_what_makes_no_sense_is_refused_where_it_is_wrong(
    trigger: Trigger, path: tuple[str | int, ...], words: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_trigger(trigger, ("trigger",))
    assert refusal.value.path == ("trigger", *path)
    assert words in str(refusal.value)
    assert refusal.value.expected
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    "pattern",
    [
        Cron("*/5 9-17 * * mon-fri", "America/New_York"),
        Cron("0 0 29 2 1"),
        Cron("0 0 L feb *"),
        Cron("30 2 * * * 15", "Australia/Lord_Howe"),
        Cron("@daily", "Etc/GMT+12"),
        Cron("0 0 15W,LW,L-3 * ?", "europe/paris"),
        Interval(100, T0),
        Once(at(20_000)),
        Times((at(1),)),
    ],
)
def test_what_makes_sense_is_taken(pattern: Pattern) -> None:
    check_trigger(Trigger(pattern))
    check_trigger(Trigger(pattern, jitter_ms=99, start_at_ms=at(0), end_at_ms=at(20_001), max_fires=1))


def test_a_cron_that_was_broken_by_hand_is_refused_when_its_times_are_asked_for() -> None:
    for cron in (Cron("nonsense"), Cron("0 0 * * *", "Mars/X")):
        with pytest.raises(InvalidInput):
            next_nominal(Trigger(cron), T0)
