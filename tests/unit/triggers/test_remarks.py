"""What of a cron expression may not be meant is said, and what is plain is not."""

import pytest

from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Cron, Interval, Trigger
from hascheduler.triggers import check_trigger, read_pattern, remarks

SAID = [
    ("*/15 * * * * *", "fires each second of every 15th minute, as the seconds come last"),
    ("*/15 * * * * *", "; did you mean '* * * * * */15'?"),
    ("0 */15 * * * *", "fires each second of minute 0 of every 15th hour"),
    ("0 */15 * * * *", "; did you mean '*/15 * * * *'?"),
    ("0 3 9 1 * *", "did you mean '3 9 1 * *'?"),
    ("0 0 9 * * 1", "fires in second 1 of minute 0 of hour 0 on day of month 9, as"),
    ("0 0 9 * * 1", "did you mean '0 9 * * 1'?"),
    ("0 0 9 1,5 6 1-5", "on day of month 9 or day of week 6 in month 1,5"),
    ("0 22-2 * * *", "'22-2' as the hour wraps around: it is 22 to 23 and 0 to 2"),
    ("0 0 * * 6-0", "'6-0' as the day of week wraps around: it is 6 and 0"),
    ("0 0 * 11-2 *", "'11-2' as the month wraps around: it is 11 to 12 and 1 to 2"),
    ("59/15 * * * *", "'59/15' as the minute is 59 alone: the next step would be beyond 59"),
    ("*/60 * * * *", "'*/60' as the minute is 0 alone"),
    ("0 9-12/5 * * *", "'9-12/5' as the hour is 9 alone: the next step would be beyond 12"),
    ("*/45 * * * *", "'*/45' as the minute starts again with each hour: after 45 comes 0, 15 minutes later"),
    ("0 */5 * * *", "'*/5' as the hour starts again with each day: after 20 comes 0, 4 hours later"),
    ("0 0 */2 * *", "'*/2' as the day of month starts again with each month: after 31 comes 1, 1 day later"),
    ("0 0 * * */2", "'*/2' as the day of week starts again with each week: after 6 comes 0, 1 day later"),
    ("0 0 * * MON/2", "'MON/2' as the day of week starts again with each week: after 7 comes 1, 1 day later"),
    ("0 0 ? * 2", "'2' as the day of week counts from 1 for Monday, other than in Quartz"),
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
    said = [remark for remark in remarks(Trigger(Cron(expression, timezone))) if "comes twice" in remark]
    assert len(said) == (hour is not None)
    assert hour is None or f"in the hour from {hour} that comes twice" in said[0]


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


def test_what_is_suggested_has_none_itself() -> None:
    for expression, _ in SAID:
        for remark in remarks(Trigger(Cron(expression))):
            if "did you mean" in remark:
                suggested = Trigger(Cron(remark.split("'")[-2]))
                check_trigger(suggested)
                assert remarks(suggested) == ()


@pytest.mark.parametrize(
    ("expression", "timezone", "pattern"),
    [
        ("@every 90s", "UTC", Interval(90_000, WallMs(7))),
        (" @EVERY  1h30m", "Europe/Paris", Interval(5_400_000, WallMs(7))),
        ("@every soon", "UTC", Cron("@every soon", "UTC")),
        ("@every 1ms", "UTC", Cron("@every 1ms", "UTC")),
        ("@daily", "europe/PARIS", Cron("@daily", "Europe/Paris")),
        ("@daily", "etc/gmt+12", Cron("@daily", "Etc/GMT+12")),
        ("@daily", "mars/x", Cron("@daily", "mars/x")),
    ],
)
def test_a_zone_has_its_own_spelling_and_gos_every_is_an_interval(
    expression: str, timezone: str, pattern: Cron | Interval
) -> None:
    assert read_pattern(expression, timezone, WallMs(7)) == pattern
