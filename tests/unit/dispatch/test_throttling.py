"""Fires find room within the limits of their tenant or are throttled; on calendars, each time has one verdict."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.decisions import (
    Decision,
    Fire,
    RecordVerdict,
    TimeOutcome,
    decode_decisions,
    encode_decisions,
)
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.fire_admission import FIRE_RATE, MAX_PENDING, FireAllowance
from hascheduler.dispatch.schedules.time_outcomes import decide_due_times
from hascheduler.mirror.changes import ScheduleSeen
from hascheduler.model.job import fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, Verdict
from hascheduler.schema.calendar import Calendar, CalendarBody, read_days
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.noun import named, read_request
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.trigger import CalendarUse, Cron, Trigger
from hascheduler.triggers.requests import read_trigger
from tests.tiers import examples, in_tier
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.nouns import make_schedule, noun_seen, wall
from tests.unit.dispatch.scene import Scene
from tests.unit.dispatch.world import World
from tests.unit.triggers.watched_clock import Calendars, watch

EVERY_MS = 100


def fast(name: str, **more: object) -> ScheduleRef:
    return make_schedule(name, every_ms=EVERY_MS, **more)


def run(scene: Scene, until_ms: int, begin_ms: int = 0) -> list[Decision]:
    """What is decided by then, each once, however often it is decided again."""
    steps = [scene.at(at_ms) for at_ms in range(begin_ms, until_ms + 1, 50)]
    return list(dict.fromkeys(decision for step in steps for decision in step.decisions))


def limited(*names: str, **limits: object) -> Scene:
    tenant = Tenant(name="default", rev=1, **limits)  # type: ignore[arg-type]
    return Scene(noun_seen(tenant), *(ScheduleSeen(fast(name)) for name in names))


def test_a_rate_of_fires_is_a_bucket_that_all_schedules_of_the_tenant_take_from() -> None:
    scene = limited("a", "b", fire_rate=RateLimit(count=2, per_ms=1_000))
    decisions = run(scene, 10_000)
    # Full at first, then two a second.
    assert 2 + 18 <= sum(isinstance(each, Fire) for each in decisions) <= 2 + 20
    assert {each.run.because_of for each in decisions if isinstance(each, RecordVerdict)} == {FIRE_RATE}


def test_0_2_0_can_carry_out_a_journal_with_throttled_times() -> None:
    """It knows six verdicts and six counts, and refuses whatever has another form."""
    found = decide_due_times(
        make_schedule("s"),
        wall(0),
        NOTHING_DECIDED,
        wall(5_000),
        live={},
        limit=9,
        allowance=FireAllowance(0, FIRE_RATE),
    )
    [row] = encode_decisions(tuple(found))
    assert row[2] == "missed"
    assert len(row) == 9
    assert len(row[8]) == 6
    [read] = decode_decisions([row])
    assert isinstance(read, RecordVerdict)
    assert (read.run.verdict, read.run.because_of, read.run.count) == (Verdict.THROTTLED, FIRE_RATE, 4)


@pytest.mark.parametrize("catch_up", CatchUp)
@given(data=st.data())
def test_it_equals_what_deciding_one_time_after_the_other_would_give(catch_up: CatchUp, data: st.DataObject) -> None:
    """A slow and obvious reckoning, of the times that are within the grace."""
    due = data.draw(st.integers(1, 40))
    left = data.draw(st.integers(0, 45))
    made = data.draw(st.sets(st.integers(1, due), max_size=3))
    live = {fire_job_id("s", wall(1_000 * n)): None for n in sorted(made)}
    policy = SchedulePolicy(catch_up=catch_up, grace_ms=60_000)
    found = decide_due_times(
        make_schedule("s", policy=policy), wall(0), NOTHING_DECIDED, wall(1_000 * due), live=live, limit=99,
        allowance=FireAllowance(left, MAX_PENDING),
    )  # fmt: skip
    verdicts: dict[int, str] = {}
    for n in range(1, due + 1):
        if n in made:
            verdicts[n] = "fired"
        elif left:
            verdicts[n], left = "fired", left - 1
        elif n < due:
            verdicts[n] = "throttled"
    got: dict[int, str] = {}
    for each in found:
        first_ms = each.run.first_ms if isinstance(each, RecordVerdict) else each.nominal_ms
        for at_ms in range(first_ms, each.nominal_ms + 1, 1_000):
            assert (at_ms - wall(0)) // 1_000 not in got
            got[(at_ms - wall(0)) // 1_000] = each.run.verdict.value if isinstance(each, RecordVerdict) else "fired"
    assert got == verdicts


@given(st.integers(0, 2**32))
@settings(max_examples=examples(25))
def test_limits_that_come_and_go_leave_no_time_without_a_verdict(seed: int) -> None:
    World(Seeded(seed), limited=True).live(250)


BERLIN = ZoneInfo("Europe/Berlin")
BUSINESS_DAYS = Calendar(name="business-days", weekdays=(0, 1, 2, 3, 4))
HOLIDAYS = Calendar(name="holidays", include=read_days(["2030-04-01", "--03-29"]))
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
USE = CalendarUse(("business-days",), ("holidays",))


def at(day: int, hour: int, month: int = 3, minute: int = 0) -> WallMs:
    """On the clock of Berlin; its clock goes forward on Sunday 31 March 2030, between two weeks."""
    return WallMs(int(datetime(2030, month, day, hour, minute, tzinfo=BERLIN).timestamp() * 1_000))


def scheduled(
    expression: str, since_ms: WallMs, name: str = "s", use: CalendarUse | None = USE, **more: Any
) -> ScheduleRef:
    trigger = Trigger(Cron(expression, "Europe/Berlin"), calendars=use)
    return make_schedule(name, trigger=trigger, created_at_ms=since_ms, since_ms=since_ms, cursor_ms=since_ms, **more)


def decided(times: DueTimes, now: int, limit: int = 1_000) -> list[TimeOutcome]:
    return [outcome for outcomes in times.take_due(WallMs(now), limit, lambda _: {}) for outcome in outcomes]


def fires(outcomes: list[TimeOutcome]) -> list[int]:
    return [outcome.nominal_ms for outcome in outcomes if isinstance(outcome, Fire)]


def runs(outcomes: list[TimeOutcome]) -> list[tuple[Verdict, int, int, int]]:
    found = [outcome.run for outcome in outcomes if isinstance(outcome, RecordVerdict)]
    return [(run.verdict, run.first_ms, run.last_ms, run.count) for run in found]


@pytest.mark.parametrize("seed", range(in_tier(check=3, test=20)))
def test_while_calendars_are_edited_each_time_has_the_verdict_that_watched_clocks_give(seed: int) -> None:
    chance = Random(seed)
    first = datetime(2030, 3, 26, 12, tzinfo=BERLIN).astimezone(UTC)
    last = datetime(2030, 4, 6, tzinfo=BERLIN).astimezone(UTC)
    expressions = ("17 */2 * * *", "0 9,15 * * *", "30 2 * * *", "17 2 * * sun")
    crons = [
        {"type": "cron", "expression": text, "timezone": "Europe/Berlin"} for text in chance.sample(expressions, 2)
    ]
    body = {"type": "any", "of": crons, "calendars": {"only": ["business-days"], "except": ["holidays"]}}

    def calendars() -> Calendars:
        days = [str((first + timedelta(days=chance.randrange(11))).date()) for _ in range(3)]
        weekdays = chance.choice([["mon-fri"], ["mon-sun"], ["sat-mon"]])
        return {"business-days": {"weekdays": weekdays}, "holidays": {"include": days}}

    # At 31 minutes past an hour nothing fires, so nothing happens at the same time as an edit.
    moments = sorted({first + timedelta(hours=chance.randrange(250), minutes=31) for _ in range(25)})
    beginning, edits = calendars(), [(moment, calendars()) for moment in moments]
    expected = watch(body, first, last, beginning, edits)

    known: dict[str, Calendar] = {}
    times = DueTimes(known)
    fired: dict[int, int] = {}
    left_out = 0
    since = dict.fromkeys(("created_at_ms", "since_ms", "cursor_ms"), _ms(first))
    policy = SchedulePolicy(grace_ms=90 * DAY_MS, catch_up=CatchUp.ALL)
    times.seen(make_schedule("s", trigger=read_trigger(body, _ms(first)), policy=policy, **since))
    now, ends = first, [*moments, last + timedelta(minutes=1)]
    for end, written in zip(ends, [beginning, *(each for _, each in edits)], strict=True):
        for name, calendar in written.items():
            known[name] = named(Calendar, name, read_request(CalendarBody, calendar))
            times.calendar_changed(name)
        now_ms = _ms(now)
        while (due_ms := times.next_at()) is not None and due_ms < _ms(end):
            now_ms = WallMs(max(now_ms, due_ms))
            outcomes = decided(times, now_ms)
            fired |= dict.fromkeys(fires(outcomes), now_ms)
            left_out += sum(count for *_, count in runs(outcomes))
        now = end
    assert fired == {_ms(at): _ms(since) for at, since in expected.fires.items()}
    assert left_out == len(expected.left_out)


def _ms(moment: datetime) -> WallMs:
    return WallMs(int(moment.timestamp() * 1_000))


def test_without_its_calendar_a_schedule_is_held_with_that_reason_and_no_other_is() -> None:
    calendars = {"business-days": BUSINESS_DAYS}
    times = DueTimes(calendars)
    times.seen(scheduled("0 * * * *", at(25, 12)))
    times.seen(scheduled("0 * * * *", at(25, 12), name="plain", use=None))
    assert [outcome.schedule for outcome in decided(times, at(25, 14))] == ["plain", "plain"]
    assert times.unreadable == {
        "s": "trigger.calendars.except.0: there is no calendar 'holidays'; expected a calendar of /v1/calendars"
    }
    assert times.users_of("holidays") == ["s"]

    calendars["holidays"] = HOLIDAYS
    times.calendar_changed("holidays")
    assert fires(decided(times, at(25, 14))) == [at(25, 14)]  # the misfire policy is `latest`
    assert times.unreadable == {}

    del calendars["holidays"]
    times.calendar_changed("holidays")
    outcomes = decided(times, at(25, 16))
    assert [outcome.schedule for outcome in outcomes] == ["plain", "plain"]
    assert [*times.unreadable] == ["s"]
    times.gone("s")
    assert (times.unreadable, times.users_of("holidays")) == ({}, [])


def test_many_schedules_on_a_calendar_that_changes_are_looked_at_in_portions() -> None:
    calendars = {"business-days": BUSINESS_DAYS, "holidays": HOLIDAYS}
    times = DueTimes(calendars)
    for number in range(30):
        times.seen(scheduled("0 9 * * *", at(25, 12), name=f"s{number:02}"))
    times.calendar_changed("holidays")
    taken = [len([*times.take_due(at(25, 13), 10, lambda _: {})]) for _ in range(4)]
    assert taken == [10, 10, 10, 0]
    assert times.next_at() == at(26, 9)
