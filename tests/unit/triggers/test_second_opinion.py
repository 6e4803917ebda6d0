"""CronSim's opinion on ten years of five zones, and every difference between it and ours."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.triggers import next_nominal
from tests.tiers import in_tier

FROM_YEAR = {
    "Europe/London": 2016,
    "America/New_York": 2016,
    "Australia/Lord_Howe": 2016,  # half an hour
    "Africa/Casablanca": 2016,  # back and forth around Ramadan
    "Pacific/Apia": 2006,  # no 30 December 2011
}
EXPRESSIONS = (
    "30 2 * * *", "0 3 * * *", "15 0 * * *", "0 0 * * *", "*/30 2 * * *", "0 */2 * * *", "15 * * * 0,5,6",
    "30 1-3 * * *", "0 12 * * 1-5", "0 0 30 12 *", "45 1,2,3 * * sun", "*/45 1-2 * * 0", "10,40 0,23 * * *",
    "0 2 31 * *", "59 23 * * *", "* 2 * 3 *", "30 2 LW * *", "30 1 L * ?", "30 2 ? 3,10 0L", "*/20 2 LW * *",
)  # fmt: skip

# How many fires each has that the other has not.
DIFFERENCES = {
    # A star in the minute field alone is real time to CronSim, so that a gap swallows such times and a fold doubles
    # them; to us the hour is fixed: once after the gap, once in the fold.
    ("Europe/London", "*/45 1-2 * * 0"): (0, 20),
    ("America/New_York", "*/30 2 * * *"): (10, 0),
    ("America/New_York", "*/45 1-2 * * 0"): (10, 20),
    ("America/New_York", "* 2 * 3 *"): (10, 0),
    ("Australia/Lord_Howe", "*/30 2 * * *"): (10, 0),
    ("Australia/Lord_Howe", "*/45 1-2 * * 0"): (10, 10),
    ("Africa/Casablanca", "*/30 2 * * *"): (13, 24),
    ("Africa/Casablanca", "*/45 1-2 * * 0"): (13, 24),
    ("Africa/Casablanca", "* 2 * 3 *"): (3, 180),
    ("Pacific/Apia", "*/30 2 * * *"): (1, 0),
    ("Pacific/Apia", "*/20 2 LW * *"): (1, 0),
    # In real time it overlooks the first time after a fold of half an hour (2016-04-03T02:00+10:30) …
    ("Australia/Lord_Howe", "0 */2 * * *"): (10, 0),
    # … and the first hour of a day that begins with a gap (2010-09-26, where midnight did not exist).
    ("Pacific/Apia", "*/45 1-2 * * 0"): (2, 0),
}


@pytest.mark.parametrize("timezone", FROM_YEAR)
def test_ten_years_are_those_of_cronsim_but_for_the_differences_that_are_listed(timezone: str) -> None:
    begin = datetime(FROM_YEAR[timezone], 1, 1, tzinfo=UTC)
    end_s = int(begin.replace(year=begin.year + 10).timestamp())
    found = {}
    tried = EXPRESSIONS[:: in_tier(check=8, test=3, long=1)]
    for expression in tried:
        ours, theirs = _ours(expression, timezone, begin, end_s), _theirs(expression, timezone, begin, end_s)
        if ours != theirs:
            found[(timezone, expression)] = (len(ours - theirs), len(theirs - ours))
    assert found == {key: counts for key, counts in DIFFERENCES.items() if key[0] == timezone and key[1] in tried}


def _ours(expression: str, timezone: str, begin: datetime, end_s: int) -> set[int]:
    trigger = Trigger(Cron(expression, timezone))
    instants = set()
    nominal_ms = next_nominal(trigger, int(begin.timestamp()) * 1_000)
    while nominal_ms is not None and nominal_ms < end_s * 1_000:
        instants.add(nominal_ms // 1_000)
        nominal_ms = next_nominal(trigger, nominal_ms)
    return instants


def _theirs(expression: str, timezone: str, begin: datetime, end_s: int) -> set[int]:
    instants = set()
    for moment in CronSim(expression.upper().replace("?", "*"), begin.astimezone(ZoneInfo(timezone))):
        at_s = int(moment.timestamp())
        if at_s >= end_s:
            break
        instants.add(at_s)
    return instants


@pytest.mark.parametrize("first", range(8))
def test_a_step_from_a_weekday_on_goes_through_sunday_as_in_crontab(first: int) -> None:
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    for step in range(1, 8):
        expression = f"0 9 * * {first}/{step}"
        month = int(begin.replace(month=2).timestamp())
        assert _ours(expression, "UTC", begin, month) == _theirs(expression, "UTC", begin, month), expression
        if first < 7:
            named = f"0 9 * * {['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'][first]}/{step}"
            assert _ours(named, "UTC", begin, month) == _ours(expression, "UTC", begin, month)
