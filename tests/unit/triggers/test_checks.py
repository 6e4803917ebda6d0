"""Triggers that make no sense are refused where they are wrong, in requests and files alike."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.schema.noun import read_request
from hascheduler.schema.trigger import TIMES_MAX, Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.schema.trigger_bodies import HasTrigger, show_trigger
from hascheduler.triggers import check_trigger, remarks
from hascheduler.triggers.requests import checked_trigger, read_trigger, trigger_of

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
            ("61 * * * *", "'61' is not a valid minute; expected 0 to 59"),
            ("* * 0 * *", "is not a valid day of month"),
            ("* * * 13 *", "is not a valid month; expected 1 to 12, jan to dec"),
            ("*/0 * * * *", "a step of 0"),
            ("*/90 * * * *", "a step of 90; expected 1 to 60"),
            ("- * * * *", "is not a valid minute"),
            ("1-5/2/3 * * * *", "is not a valid minute"),
            # croniter would take these, and make something of them that few would expect
            ("5-5 * * * *", "as the minute is ambiguous: one value or all"),
            ("0 0 * * 7-0", "as the day of week is ambiguous: one value or all"),
            ("0 5,* * * *", "* is combined with other values"),
            ("0 22-2/3 * * *", "has a step in a range that wraps around"),
            ("0 0 1-L * *", "'L' is not a valid day of month"),
            ("0 0 L-0 * *", "'L-0' is not a valid day of month; expected L, or L-1 to L-30"),
            ("0 0 32W * *", "'32W' is not a valid day of month; expected 1W to 31W, or LW"),
            ("0 0 1-5W * *", "'5W' is not a valid day of month"),
            ("0 0 WL * *", "is not a valid day of month"),
            ("0 0 * * 5W", "is not a valid day of week"),
            ("0 0 * * 8L", "is not a valid day of week"),
            ("0 0 31W 2 *", "never fire"),
            ("0 0 15W * 5#2", "restricts both the day of month and"),
            ("? * * * *", "'?' is not a valid minute"),
            ("0 0 ?,15 * *", "'?' is not a valid day of month"),
            ("0 0 * * mon-wed#1", "is not a valid day of week"),
            ("* * * * 1,5#2", "can't be read"),
            ("* * * * 5#6", "is not a valid day of week"),
            ("0 0 13 * 5#2", "restricts both the day of month and"),
            ("0 0 30 2 *", "never fire"),
            ("* " * 5_120, "10240 characters"),
            ("@reboot", "unknown"),
            # the seconds first, or other words of other tools: with what is the same here
            ("0 0 12 * * ?", "'?' is not a valid second: the seconds come last here; expected '0 12 * * ?'"),
            ("30 0 12 ? * MON-FRI", "the seconds come last here; expected '0 12 ? * MON-FRI 30'"),
            ("0 0 12 ? * 2-6", "expected '0 12 ? * 2-6' (1 is Monday here, in Quartz Sunday)"),
            ("0 0 12 LW * ? *", "has 7 fields: the seconds come last here; expected '0 12 LW * ?'"),
            ("0 0 12 1 1 ? 2027", "year fields are not supported"),
            ("0 0 12 32 * ?", "'32' is not a valid month; expected 1 to 12, jan to dec"),
            ("CRON_TZ=Asia/Tokyo 0 0 * * *", "expected the field timezone: Asia/Tokyo"),
            ("@every 90s", 'is an interval; expected a trigger of the type interval, every "1m30s"'),
            ("@every soon", "'soon' is not a duration"),
            ("@every", "an empty text is not a duration"),
            ("@every 0s", "0s is too short; expected at least 100ms"),
            ("H * * * *", "'H' is not a valid minute"),
            ("٣ * * * *", "contains a character"),
            ("0 0 * * *\n", "contains a character"),
            ("0 0 * *\0 *", "contains a character"),
        ]
    ),
    *(
        (Trigger(Cron("0 0 * * *", zone)), ("timezone",), "is not a time zone")
        for zone in ("Mars/X", "../../etc/passwd", "", "localtime", "Factory", "Europe/Paris\0", "x" * 10_240)
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
    (Trigger(Times((at(1), at(1)))), ("at", 1), "is not after the instant before it"),
    (Trigger(Times((at(1), at(3), at(2)))), ("at", 2), "is not after the instant before it"),
    (Trigger(HOURLY, start_at_ms=at(2), end_at_ms=at(1)), ("end_at",), "before start_at"),
    (Trigger(Once(at(1)), end_at_ms=at(0)), ("end_at",), "never fire"),
    (Trigger(Once(at(1)), start_at_ms=at(2)), ("start_at",), "never fire"),
    (Trigger(Cron("0 0 1 1 *"), start_at_ms=at(1), end_at_ms=at(9)), ("end_at",), "never fire"),
    (Trigger(HOURLY, max_fires=0), ("max_fires",), "too small"),
    (Trigger(HOURLY, jitter_ms=-1), ("jitter",), "negative"),
    (Trigger(HOURLY, jitter_ms=3_600_000), ("jitter",), "not shorter than the time between two fires"),
    (Trigger(Cron("*/5 * * * *"), jitter_ms=300_000), ("jitter",), "less than 5m"),
    (Trigger(Cron("0 0,1 * * 1"), jitter_ms=3_600_000), ("jitter",), "less than 1h"),
    (Trigger(Times((at(1), at(1.5))), jitter_ms=DAY_MS // 2), ("jitter",), "less than 12h"),
    (Trigger(Once(at(1)), jitter_ms=DAY_MS + 1), ("jitter",), "at most 1d"),
    (Trigger(HOURLY, exclude=(Window(at(2), at(1)),)), ("exclude", 0, "to"), "not after from"),
    (Trigger(HOURLY, exclude=(Window(at(1), at(3)), Window(at(2), at(4)))), ("exclude", 1, "from"), "previous window"),
    (Trigger(HOURLY, exclude=tuple(Window(at(2 * n), at(2 * n + 1)) for n in range(101))), ("exclude",), "101 windows"),
    (Trigger(Once(at(1)), exclude=(Window(at(1), at(2)),)), ("exclude",), "excludes all nominal times"),
    (
        Trigger(Times((at(1), at(5))), exclude=(Window(at(0), at(2)), Window(at(5), at(6)))),
        ("exclude",),
        "excludes all nominal times",
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


SAID = [
    ("*/15 * * * * *", "fires each second of every 15th minute, as the seconds come last"),
    ("*/15 * * * * *", "; did you mean '* * * * * */15'?"),
    ("0 */15 * * * *", "fires each second of minute 0 of every 15th hour"),
    ("0 */15 * * * *", "; did you mean '*/15 * * * *'?"),
    ("0 3 9 1 * *", "did you mean '3 9 1 * *'?"),
    ("0 0 9 * * 1", "fires in second 1 of minute 0 of hour 0 on day of month 9, as"),
    ("0 0 9 * * 1", "did you mean '0 9 * * 1'?"),
    ("0 0 9 1,5 6 1-5", "on day of month 9 or day of week 6 in month 1,5"),
    ("0 22-2 * * *", "'22-2' as the hour wraps around: it means 22 to 23 and 0 to 2"),
    ("0 0 * * 6-0", "'6-0' as the day of week wraps around: it means 6 and 0"),
    ("0 0 * 11-2 *", "'11-2' as the month wraps around: it means 11 to 12 and 1 to 2"),
    ("59/15 * * * *", "'59/15' as the minute means only 59: the next step would exceed 59"),
    ("*/60 * * * *", "'*/60' as the minute means only 0"),
    ("0 9-12/5 * * *", "'9-12/5' as the hour means only 9: the next step would exceed 12"),
    ("*/45 * * * *", "'*/45' as the minute restarts with each hour: 0 follows 45 after only 15 minutes"),
    ("0 */5 * * *", "'*/5' as the hour restarts with each day: 0 follows 20 after only 4 hours"),
    ("0 0 */2 * *", "'*/2' as the day of month restarts with each month: 1 follows 31 after only 1 day"),
    ("0 0 * * */2", "'*/2' as the day of week restarts with each week: 0 follows 6 after only 1 day"),
    ("0 0 * * MON/2", "'MON/2' as the day of week restarts with each week: 1 follows 7 after only 1 day"),
    ("0 0 ? * 2", "'2' as the day of week counts from 1 for Monday, unlike Quartz"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "words"), SAID)
def test_what_may_not_be_meant_is_said(expression: str, words: str) -> None:
    trigger = Trigger(Cron(expression))
    check_trigger(trigger)
    assert any(words in remark for remark in remarks(trigger))


@pytest.mark.parametrize(
    ("expression", "timezone", "hour"),
    [
        ("*/15 0-23 * * *", "Europe/Paris", "02:00"),
        ("0 22-2 * * *", "Europe/Paris", "02:00"),
        ("0 5,1-2 * * *", "America/New_York", "01:00"),
        ("0 0-23 * * *", "UTC", None),
        ("0 0-23 * * *", "Asia/Tokyo", None),
        ("0 9-17 * * *", "Europe/Paris", None),
        ("0 2 * * *", "Europe/Paris", None),
        ("0 * * * *", "Europe/Paris", None),
        ("0 */2 * * *", "Europe/Paris", None),
    ],
)
def test_a_range_of_hours_that_is_silent_in_the_hour_that_comes_twice_is_said(
    expression: str, timezone: str, hour: str | None
) -> None:
    said = [remark for remark in remarks(Trigger(Cron(expression, timezone))) if "occurs twice" in remark]
    assert len(said) == (hour is not None)
    assert hour is None or f"in the hour from {hour}, which occurs twice" in said[0]


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *", "*/15 * * * *", "@daily", "0 0 * * fri-mon", "0 0 * nov-feb *", "0 9-17/2 * * 1-5", "5/20 * * * *",
        "0 0 LW * ?", "0 0 ? * fri#2", "*/20 */8 * */4 *", "20/15 * * * *", "0 0 * * 5/1", "0 0 * * 5/2",
        # six fields that nobody means with the seconds first
        "* * * * * *", "* * * * * */15", "*/5 * * * * 0", "* * * * * 0,5", "30 2 * * * 15", "0 2 * * * 0",
        "nonsense", "@every 90s",
    ],
)  # fmt: skip
def test_what_is_plain_is_left_alone(expression: str) -> None:
    assert remarks(Trigger(Cron(expression))) == remarks(Trigger(Interval(1_000, WallMs(0)))) == ()


NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
_LATER = "2031-01-01T00:00:00Z"

GOOD: list[dict[str, Any]] = [
    {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"},
    {"type": "cron", "expression": "@daily"},
    {"type": "cron", "expression": "@every 90s", "timezone": "Europe/Paris"},
    {"type": "cron", "expression": "0 9 15W,L-3 * ?", "timezone": "europe/paris"},
    {"type": "interval", "every": "1m30s", "jitter": 5},
    {"type": "interval", "every": 90, "anchor": "2029-01-01T00:00:17+01:00"},
    {"type": "times", "at": [_LATER, "2032-01-01T00:00:00.5Z"]},
    {"type": "once", "at": _LATER, "jitter": "1s", "max_fires": None, "exclude": []},
    {
        "type": "interval",
        "every": "1h",
        "start_at": "2030-06-01T00:00:00Z",
        "end_at": _LATER,
        "max_fires": 3,
        "exclude": [{"from": "2030-07-01T00:00:00Z", "to": "2030-08-01T00:00:00Z"}],
    },
]


@pytest.mark.parametrize("body", GOOD)
def test_it_reads_what_the_api_reads_and_shows(body: dict[str, Any]) -> None:
    trigger = read_trigger(body, NOW)
    assert trigger == trigger_of(read_request(HasTrigger, {"trigger": body}).trigger, None, NOW)
    shown = show_trigger(trigger).model_dump(mode="json", by_alias=True)
    assert read_trigger(shown, WallMs(0)) == trigger


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "interval", "every": "0.05s"}, "every: 0.05s"),
        ({"type": "interval", "every": "90s", "jitter": "1.5m"}, "jitter: 1.5m"),
        (
            {"type": "any", "of": [{"type": "once", "at": _LATER}, {"type": "interval", "every": "5000s"}]},
            "of.1.every: 5000s",
        ),
    ],
)
def test_a_span_is_refused_as_it_was_written(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as of_file:
        checked_trigger(given, NOW)
    with pytest.raises(InvalidInput) as of_request:
        trigger_of(read_request(HasTrigger, {"trigger": given}).trigger, None, NOW)
    assert str(of_file.value).startswith(f"trigger.{said} ")
    assert str(of_request.value) == str(of_file.value)


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
