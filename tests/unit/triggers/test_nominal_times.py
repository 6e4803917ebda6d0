"""The nominal times of every kind of trigger: one answer, however they are asked for, and CronSim's opinion on them."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hascheduler.model.values.instants import LATEST_MS, WallMs, parse_instant
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger, Window
from hascheduler.triggers import count_nominal, latest_nominal, next_nominal, upcoming
from tests.tiers import examples, in_tier

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu")
T0 = parse_instant("2027-01-01T00:00Z")
INSTANTS = st.integers(T0, parse_instant("2031-01-01T00:00Z"))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ranges = st.lists(number, min_size=2, max_size=2, unique=True).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.lists(number, min_size=1, max_size=3, unique=True).map(lambda numbers: ",".join(map(str, numbers))),
        ranges,
        st.integers(2, min(9, high)).map(lambda step: f"*/{step}"),
        st.tuples(ranges, st.integers(2, 5)).map(lambda both: f"{both[0]}/{both[1]}"),
    )


DAY_FIELDS = st.tuples(
    field(1, 28) | st.sampled_from(["L", "31", "30", "?"]),
    field(1, 12),
    field(0, 7) | st.sampled_from(["mon-fri", "sat,sun"]),
) | st.tuples(st.just("*"), field(1, 12), st.sampled_from(["5#2", "L5", "5L", "1#5", "0#1,3#4"]))
EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), DAY_FIELDS, st.just("") | field(0, 59)).map(
    lambda parts: " ".join([parts[0], parts[1], *parts[2], parts[3]]).strip()
)
CRONS = st.builds(Cron, EXPRESSIONS, st.sampled_from(ZONES))
PATTERNS = (
    CRONS
    | st.builds(Interval, st.integers(100, 10**9), INSTANTS)
    | st.builds(Once, INSTANTS)
    | st.lists(INSTANTS, min_size=1, max_size=9, unique=True).map(
        lambda times: Times(tuple(sorted(map(WallMs, times))))
    )
)
BOUNDS = st.none() | INSTANTS
TRIGGERS = st.builds(Trigger, PATTERNS, st.integers(0, 5_000), BOUNDS, BOUNDS)


def listed(trigger: Trigger, after_ms: int, limit: int) -> list[int]:
    times: list[int] = []
    nominal_ms = next_nominal(trigger, after_ms)
    while nominal_ms is not None and len(times) < limit:
        times.append(nominal_ms)
        nominal_ms = next_nominal(trigger, nominal_ms)
    return times


@given(TRIGGERS, INSTANTS)
@settings(max_examples=examples(400))
def test_one_by_one_the_newest_and_their_count_agree(trigger: Trigger, after_ms: int) -> None:
    times = listed(trigger, after_ms, 60)
    assert all(before < after for before, after in pairwise([after_ms, *times]))
    for place, nominal_ms in enumerate(times):
        assert latest_nominal(trigger, nominal_ms) == nominal_ms
        assert count_nominal(trigger, after_ms, nominal_ms) == place + 1
        assert count_nominal(trigger, nominal_ms, nominal_ms) == 0
    for before, after in pairwise(times):
        assert latest_nominal(trigger, after - 1) == before
        assert count_nominal(trigger, before, after - 1) == 0
    if times:
        assert next_nominal(trigger, times[0] - 1) == times[0]


@given(EXPRESSIONS, INSTANTS)
@settings(max_examples=examples(400))
def test_in_utc_they_are_those_of_croniter(expression: str, after_ms: int) -> None:
    trigger = Trigger(Cron(expression))
    begin = datetime.fromtimestamp(after_ms // 1_000, UTC).replace(tzinfo=None)
    # It knows neither ? nor 5L.
    known = expression.replace("?", "*").replace("5L", "L5")
    theirs = croniter(known, begin, ret_type=datetime, max_years_between_matches=80)
    ours = listed(trigger, after_ms // 1_000 * 1_000, 12)
    assume(ours)
    expected = [theirs.get_next(datetime).replace(tzinfo=UTC).timestamp() * 1_000 for _ in ours]
    assert ours == expected


NEAREST = st.sampled_from([f"{day}W" for day in range(1, 32)])
FROM_THE_LAST = st.integers(1, 30).map(lambda before: f"L-{before}")
SPECIAL_DAYS = NEAREST | FROM_THE_LAST | FROM_THE_LAST.map(lambda text: f"{text}W") | st.sampled_from(["L", "LW"])


@given(st.lists(SPECIAL_DAYS | st.integers(1, 31).map(str), min_size=1, max_size=3), st.sampled_from("*?156"), INSTANTS)
@settings(max_examples=examples(200))
def test_days_counted_from_the_last_and_weekdays_are_those_that_a_slow_reader_finds(
    days: list[str], weekday: str, after_ms: int
) -> None:
    ours = listed(Trigger(Cron(f"0 12 {','.join(days)} * {weekday}")), after_ms, 12)
    assume(ours)
    day = datetime.fromtimestamp(after_ms // 1_000, UTC).replace(hour=12, minute=0, second=0)
    found: list[int] = []
    while len(found) < len(ours):
        is_named = any(day.day == _found_slowly(text, day) for text in days)
        is_weekday = weekday.isdigit() and day.isoweekday() == int(weekday)
        if (is_named or is_weekday) and day.timestamp() * 1_000 > after_ms:
            found.append(int(day.timestamp()) * 1_000)
        day += timedelta(days=1)
    assert ours == found


def _found_slowly(text: str, day: datetime) -> int | None:
    """Which day of its month, with no other rule than that the nearest weekday is the least away."""
    first = day.replace(day=1)
    month = [one for one in (first + timedelta(days=n) for n in range(31)) if one.month == day.month]
    plain = text.removesuffix("W")
    number = int(plain) if plain.isdigit() else len(month) - int(plain[2:] or 0)
    if not 1 <= number <= len(month):
        return None
    weekdays = [one.day for one in month if one.isoweekday() <= 5]
    return min(weekdays, key=lambda one: abs(one - number)) if text.endswith("W") else number


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("@daily", "2027-01-31T12:00Z", "2027-02-01T00:00Z"),
        ("@weekly", "2027-01-31T12:00Z", "2027-02-07T00:00Z"),
        ("0 0 * * 5#2", "2027-02-01T00:00Z", "2027-02-12T00:00Z"),
        ("0 9 * JAN,jul MON-Fri", "2027-02-01T00:00Z", "2027-07-01T09:00Z"),
        ("0 22-2 * * *", "2027-02-01T00:00Z", "2027-02-01T01:00Z"),
        ("0 0 * * fri-mon", "2027-02-01T00:00Z", "2027-02-05T00:00Z"),
        ("0 0 * * 1-7/3", "2027-02-05T00:00Z", "2027-02-07T00:00Z"),  # Monday, Thursday, Sunday
        ("*/45 * * * *", "2027-02-01T00:45Z", "2027-02-01T01:00Z"),
        ("0 0 * * fri#2", "2027-02-01T00:00Z", "2027-02-12T00:00Z"),
        # which day fields are restricted
        ("0 0 1 * 0-6", "2027-02-02T00:00Z", "2027-02-03T00:00Z"),
        ("0 0 */2 * 0-6", "2027-02-01T00:00Z", "2027-02-03T00:00Z"),
        ("0 0 */2 * 2", "2027-02-01T00:00Z", "2027-02-02T00:00Z"),
        ("0 0 13 * 5", "2027-02-01T00:00Z", "2027-02-05T00:00Z"),
        ("5/20 * * * *", "2027-02-01T00:06Z", "2027-02-01T00:25Z"),
        ("0 0 29 2 *", "2027-02-01T00:00Z", "2028-02-29T00:00Z"),
        # the first day, the last day, and days beside a weekend that a month ends or begins with
        ("0 0 1W * *", "2027-04-30T00:00Z", "2027-05-03T00:00Z"),  # the 1st is a Saturday
        ("0 0 1W * *", "2027-07-31T00:00Z", "2027-08-02T00:00Z"),  # the 1st is a Sunday
        ("0 0 15W * *", "2027-05-01T00:00Z", "2027-05-14T00:00Z"),  # the 15th is a Saturday
        ("0 0 15w * *", "2027-08-01T00:00Z", "2027-08-16T00:00Z"),  # the 15th is a Sunday
        ("0 0 31W * *", "2027-02-01T00:00Z", "2027-03-31T00:00Z"),
        ("0 0 31W * *", "2027-09-01T00:00Z", "2027-10-29T00:00Z"),  # the 31st is a Sunday
        ("0 0 31W * *", "2027-07-01T00:00Z", "2027-07-30T00:00Z"),  # the 31st is a Saturday
        ("0 0 LW * *", "2027-10-01T00:00Z", "2027-10-29T00:00Z"),
        ("0 0 L-3 * *", "2027-02-01T00:00Z", "2027-02-25T00:00Z"),
        ("0 0 L-28 2 *", "2027-02-01T00:00Z", "2028-02-01T00:00Z"),
        ("0 0 L-30 * *", "2027-02-01T00:00Z", "2027-03-01T00:00Z"),
        ("0 0 L-1W * *", "2027-01-01T00:00Z", "2027-01-29T00:00Z"),  # the 30th is a Saturday
        ("0 0 1,15W,LW * *", "2027-02-01T00:00Z", "2027-02-15T00:00Z"),
        ("0 0 15W * 5", "2027-02-01T00:00Z", "2027-02-05T00:00Z"),  # either, as both are restricted
        ("0 0 15W * ?", "2027-02-01T00:00Z", "2027-02-15T00:00Z"),
        ("0 0 ? * 5L", "2027-02-01T00:00Z", "2027-02-26T00:00Z"),
        ("0 0 * * 7L", "2027-02-01T00:00Z", "2027-02-28T00:00Z"),
        ("0 0 ? * ?", "2027-02-01T00:00Z", "2027-02-02T00:00Z"),
        ("  0   0\t1 1 * ", "2027-02-01T00:00Z", "2028-01-01T00:00Z"),
        ("0 0 1 1 * 30", "2027-02-01T00:00Z", "2028-01-01T00:00:30Z"),
    ],
)
def test_the_dialect(expression: str, after: str, expected: str) -> None:
    assert next_nominal(Trigger(Cron(expression.replace("\t", " "))), parse_instant(after)) == parse_instant(expected)


def test_no_more_times_are_to_come_than_max_fires_leaves() -> None:
    trigger = Trigger(Interval(1_000, WallMs(0)), max_fires=4, exclude=(Window(WallMs(2_000), WallMs(3_000)),))
    assert [one.nominal_ms for one in upcoming("s", trigger, 0, fired=1)] == [1_000, 2_000, 3_000, 4_000]


def test_a_day_of_notes_says_which_times_are_odd() -> None:
    trigger = Trigger(Cron("30 2 * * *", "Europe/Paris"))
    notes = [one.note for one in islice(upcoming("s", trigger, parse_instant("2027-03-27T00:00Z")), 3)]
    assert notes == [None, "for 02:30, which does not exist that day", None]
    notes = [one.note for one in islice(upcoming("s", trigger, parse_instant("2027-10-30T12:00Z")), 2)]
    assert notes == ["this wall time occurs twice: the first, and only this one fires", None]
    hourly = Trigger(Cron("30 * * * *", "Europe/Paris"))
    notes = [one.note for one in islice(upcoming("s", hourly, parse_instant("2027-10-30T23:00Z")), 4)]
    twice = "this wall time occurs twice: the"
    assert notes == [None, f"{twice} first", f"{twice} second", None]


def test_far_from_now_there_is_an_end() -> None:
    assert next_nominal(Trigger(Cron("* * * * *")), LATEST_MS - 60_000) is None
    assert next_nominal(Trigger(Interval(1_000, WallMs(0))), LATEST_MS - 1_000) is None
    assert latest_nominal(Trigger(Cron("* * * * *")), LATEST_MS + 10**12) == LATEST_MS - 60_000
    assert latest_nominal(Trigger(Cron("0 0 1 1 *")), -5) is None
    assert count_nominal(Trigger(Cron("0 0 1 1 *")), -(10**15), 10**15) == 130
    day = timedelta(days=1) // timedelta(milliseconds=1)
    assert next_nominal(Trigger(Cron("0 0 * * *")), -(10**15)) == 0
    assert latest_nominal(Trigger(Cron("0 0 * * *", "Asia/Tokyo")), day) == day - 9 * 3_600_000


FROM_YEAR = {
    "Europe/London": 2016,
    "America/New_York": 2016,
    "Australia/Lord_Howe": 2016,  # half an hour
    "Africa/Casablanca": 2016,  # back and forth around Ramadan
    "Pacific/Apia": 2006,  # no 30 December 2011
}
COMPARED = (
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
    tried = COMPARED[:: in_tier(check=8, test=3, long=1)]
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


def test_long_stretches_are_counted_at_once() -> None:
    trigger = Trigger(Cron("* * * * * *", "Europe/Paris"))
    assert count_nominal(trigger, T0, T0 + 20 * 365 * 86_400_000) == 20 * 365 * 86_400
    fixed = Trigger(Cron("0 2 * * *", "Europe/Paris"))
    assert count_nominal(fixed, T0, T0 + 20 * 365 * 86_400_000) == 20 * 365
