"""When triggers and calendars fire: golden scenarios, and stories by chance, against clocks watched minute by minute.

The times of the schedules in ``golden/times`` were worked out by hand, as their notes say. A whole scheduler fires at
them.
"""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar, CalendarBody
from hascheduler.schema.noun import named, read_request
from hascheduler.testing import VirtualScheduler
from hascheduler.triggers import count_firing, count_nominal, next_firing, on_calendars, shortest_gap_ms, upcoming
from hascheduler.triggers.requests import read_trigger
from tests.tiers import examples, spread
from tests.unit.triggers.watched_clock import DAY, MINUTE, Calendars, Watched, watch

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "times").glob("*.json"))
SOON = timedelta(seconds=5)
FIRED = spread(GOLDEN, check=3)
"""Those that a whole scheduler fires at: it lives through all the days between."""


def test_the_golden_files_are_there() -> None:
    assert len(GOLDEN) == 11


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_clocks_that_are_watched_show_them(path: Path) -> None:
    golden = _read(path)
    calendars: Calendars = golden.get("calendars", {})
    edits: list[tuple[datetime, Calendars]] = []
    for edit in golden.get("edits", ()):
        calendars = {**calendars, **edit["calendars"]}
        edits.append((_instant(edit["at"]), calendars))
    first, last = _instant(golden["from"]), _instant(golden["until"])
    assert watch(golden["trigger"], first, last, golden.get("calendars", {}), edits) == _expected(golden)


@pytest.mark.parametrize("path", FIRED, ids=lambda path: path.stem)
def test_a_scheduler_fires_at_them_and_gives_each_of_them_one_verdict(path: Path) -> None:
    golden, expected = _read(path), _expected(_read(path))
    jitter = timedelta(minutes=45 if "jitter" in golden["trigger"] else 0)
    until = _instant(golden["until"])
    with VirtualScheduler(start=golden["from"]) as scheduler:
        scheduler.handle("log", lambda _: None)
        _put(scheduler, golden.get("calendars", {}))
        late = {"grace": "1d", "catch_up": "all"}
        scheduler.add_schedule("golden", trigger=golden["trigger"], job={"definition": "log"}, misfire=late)
        for edit in golden.get("edits", ()):
            scheduler.advance_to(_instant(edit["at"]))
            _put(scheduler, edit["calendars"])
        scheduler.advance_to(until + jitter)
        jobs = scheduler.jobs(schedule="golden")
        scheduler.advance("2d")  # the last of the days that are left out are over
        verdicts = scheduler.verdicts("golden")
    began = {job.nominal_at: job.started_at for job in jobs if job.nominal_at and job.started_at}
    began = {at: began[at] for at in sorted(began) if at <= until}
    assert [*began] == [*expected.fires]
    assert [*began.values()] == sorted(began.values()), "no time fires before an earlier one"
    assert all(since <= began[at] <= since + jitter + SOON for at, since in expected.fires.items())
    for times, verdict in ((expected.fires, "fired"), (expected.left_out, "excluded")):
        for at in times:
            assert [each["verdict"] for each in verdicts if _covers(each, at)] == [verdict], at


def _put(scheduler: VirtualScheduler, calendars: Calendars) -> None:
    for name, calendar in calendars.items():
        scheduler.request("PUT", f"/v1/calendars/{name}", calendar)


def _read(path: Path) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return golden


def _expected(golden: dict[str, Any]) -> Watched:
    expect = golden["expect"]
    late = {_instant(at): _instant(since) for at, since in expect.get("late", {}).items()}
    fires = {at: late.get(at, at) for at in map(_instant, expect["fires"])}
    return Watched(fires, [_instant(at) for at in expect["left_out"]])


def _covers(verdict: dict[str, Any], at: datetime) -> bool:
    return _instant(verdict["nominal_at"]) <= at <= _instant(verdict["through_at"])


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


CHANGES = {
    "Europe/Paris": "2027-03-28T01:00Z",
    "America/New_York": "2027-11-07T06:00Z",
    "Australia/Lord_Howe": "2027-04-03T15:00Z",  # half an hour
    "Pacific/Apia": "2011-12-30T10:00Z",  # a day is left out
    "America/St_Johns": "2010-11-07T02:31Z",  # from 00:01 back to the day before
    "America/Sao_Paulo": "2018-11-04T03:00Z",  # no midnight
    "Africa/Casablanca": "2027-02-07T02:00Z",
    "America/Havana": "2028-03-12T05:00Z",  # no midnight
    "America/Boa_Vista": "2000-10-08T04:00Z",  # summer time for a week
    "Antarctica/Troll": "2027-03-28T01:00Z",  # two hours
    "Asia/Beirut": "2027-10-30T21:00Z",  # from midnight back to the day before
    "Asia/Kathmandu": "1985-12-31T18:30Z",  # a quarter of an hour
    "UTC": "2027-12-31T23:59Z",
}
MINUTES = ("0", "30", "*/20", "15,45", "5-50/15", "59")
HOURS = ("*", "*/2", "0", "2", "3", "0-3", "1,2,23", "9")
DAYS = (
    "* * *", "* * *", "* * sat,sun", "* * 1-5", "L * ?", "15W * *", "LW * *", "1-15/2 * *", "7,28 * 0", "*/2 * mon",
)  # fmt: skip
DAY_MS = 86_400_000
SPANS = ("25m", "1h", "8h", "1d12h", "96m")
Story = tuple[dict[str, Any], dict[str, Any], datetime, datetime]


def story_of(chance: Random) -> Story:
    """A trigger and calendars as users write them, and from when until when they are looked at."""
    zone = chance.choice([*CHANGES])
    change = datetime.fromisoformat(CHANGES[zone])
    zones = [zone, zone, "UTC", "Europe/Paris"]

    def near() -> str:
        return (change + chance.randrange(-3 * 1_440, 3 * 1_440) * MINUTE).isoformat()

    def part() -> dict[str, Any]:
        match chance.choice(["cron", "cron", "cron", "interval", "times", "once"]):
            case "cron":
                expression = " ".join(map(chance.choice, (MINUTES, HOURS, DAYS)))
                return {"type": "cron", "expression": expression, "timezone": chance.choice(zones)}
            case "interval":
                return {"type": "interval", "every": chance.choice(SPANS), "anchor": near()}
            case "times":
                return {"type": "times", "at": sorted({near() for _ in range(5)})}
            case _:
                return {"type": "once", "at": near()}

    def days() -> list[str]:
        texts = [(change + chance.randrange(-3, 4) * DAY).date().isoformat() for _ in range(chance.randrange(3))]
        return [chance.choice([text, text, f"-{text[4:]}"]) for text in texts]

    def calendar() -> dict[str, Any]:
        weekdays = chance.choice([[], ["mon-fri"], ["sat", "sun"], ["fri-mon"], ["mon-sun"]])
        return {"weekdays": weekdays, "include": days(), "exclude": days()}

    parts = [part() for _ in range(chance.choice([1, 2, 2, 3, 4]))]
    window = sorted([near(), near()])
    use = chance.choice([None, None, {"only": ["a"]}, {"except": ["b"]}, {"only": ["a"], "except": ["b"]}])
    narrowed = {
        "start_at": chance.choice([None, None, None, near()]),
        "end_at": chance.choice([None, None, None, near()]),
        "exclude": chance.choice([[], [], [{"from": window[0], "to": window[1]}]]),
        "calendars": None if use is None else {**use, "timezone": chance.choice(zones)},
        "jitter": chance.choice(["0s", "24m"]),
    }
    trigger = {"type": "any", "of": parts} if len(parts) > 1 else parts[0]
    first = datetime.fromisoformat(near())
    last = first + chance.randrange(1_440, 4 * 1_440) * MINUTE
    return {**trigger, **narrowed}, {"a": calendar(), "b": calendar()}, first, last


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32))
def test_what_fires_is_what_watched_clocks_show(seed: int) -> None:
    body, calendars, first, last = story_of(Random(seed))
    expected = watch(body, first, last, calendars)
    fires, left_out = [*map(_ms, expected.fires)], [*map(_ms, expected.left_out)]
    first_ms, last_ms = _ms(first), _ms(last)
    known = {name: named(Calendar, name, read_request(CalendarBody, each)) for name, each in calendars.items()}
    trigger = on_calendars(read_trigger(body, first_ms), known)

    found: list[int] = []
    nominal_ms = next_firing(trigger, first_ms - 1)
    while nominal_ms is not None and nominal_ms <= last_ms:
        found.append(nominal_ms)
        nominal_ms = next_firing(trigger, nominal_ms)
    assert found == fires
    assert count_firing(trigger, first_ms, last_ms) == len(fires)
    assert count_nominal(trigger, first_ms - 1, last_ms) == len(fires) + len(left_out)

    shown = [one for one, _ in zip(upcoming("s", trigger, first_ms - 1), fires + left_out, strict=False)]
    assert [one.nominal_ms for one in shown if one.excluded] == left_out
    assert all(one.nominal_ms <= one.due_ms <= one.nominal_ms + trigger.jitter_ms for one in shown)
    if (shortest_gap_ms(trigger) or DAY_MS) > trigger.jitter_ms:  # others are refused
        assert all(before.due_ms <= after.due_ms for before, after in pairwise(shown))


def _ms(at: datetime) -> WallMs:
    return WallMs((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
