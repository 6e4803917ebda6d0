"""Golden scenarios of calendars and of triggers of several patterns: when the schedules in ``golden/times`` fire.

Their times were worked out by hand, as their notes say. Clocks that are watched minute by minute show them, and a
whole scheduler fires at them.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hascheduler.testing import VirtualScheduler
from tests.tiers import spread
from tests.unit.triggers.watched_clock import Calendars, Watched, watch

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
