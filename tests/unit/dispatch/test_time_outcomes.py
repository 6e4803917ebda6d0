"""What becomes of the nominal times that are due."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.dispatch.schedules.time_outcomes import decide_due_times
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import CatchUp, Overlap, SchedulePolicy, ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Interval, Trigger, Window
from hascheduler.triggers import due_ms
from tests.unit.dispatch.nouns import make_schedule, wall

EVERY_SECOND = Trigger(Interval(1_000, wall(0)))
MINUTE = range(1, 61)


def schedule_of(policy: SchedulePolicy | None = None, **only_what_matters: Any) -> ScheduleRef:
    return make_schedule("s", policy=policy or SchedulePolicy(), trigger=EVERY_SECOND, **only_what_matters)


def concluded(
    schedule: ScheduleRef, now_s: float, *, live: Iterable[str] = (), limit: int = 10_000
) -> list[TimeOutcome]:
    now = wall(round(now_s * 1_000))
    return decide_due_times(schedule, schedule.cursor_ms, schedule.tally, now, live=dict.fromkeys(live), limit=limit)


def in_words(conclusions: Iterable[TimeOutcome]) -> list[str]:
    """``"3 fired"``, ``"4-9 missed"``: seconds after the start, and what became of them."""
    words = []
    for conclusion in conclusions:
        if isinstance(conclusion, Fire):
            words.append(f"{_second(conclusion.nominal_ms)} fired")
            continue
        run = conclusion.run
        first, last = _second(run.first_ms), _second(run.last_ms)
        words.append(f"{first if first == last else f'{first}-{last}'} {run.verdict}")
    return words


def _second(at_ms: int) -> str:
    return f"{(at_ms - wall(0)) / 1_000:g}"


@pytest.mark.parametrize(
    ("catch_up", "catch_up_max", "expected"),
    [
        (CatchUp.NONE, 1_000, ["1-49 missed", *(f"{n} fired" for n in range(50, 61))]),
        (CatchUp.LATEST, 1_000, ["1-59 coalesced", "60 fired"]),
        (CatchUp.ALL, 1_000, [f"{n} fired" for n in MINUTE]),
        (CatchUp.ALL, 3, ["1-57 missed", "58 fired", "59 fired", "60 fired"]),
        (CatchUp.ALL, 60, [f"{n} fired" for n in MINUTE]),
    ],
)
def test_after_a_minute_without_a_leader_the_catch_up_policy_decides(
    catch_up: CatchUp, catch_up_max: int, expected: list[str]
) -> None:
    schedule = schedule_of(SchedulePolicy(grace_ms=10_000, catch_up=catch_up, catch_up_max=catch_up_max))
    conclusions = concluded(schedule, 60)
    assert in_words(conclusions) == expected
    counted = [c.run.count if isinstance(c, RecordVerdict) else 1 for c in conclusions]
    assert sum(counted) == len(MINUTE)


# Overlap


@pytest.mark.parametrize(
    ("overlap", "live", "expected"),
    [
        (Overlap.ALLOW, ["a", "b"], ["1 fired", "2 fired", "3 fired"]),
        (Overlap.CANCEL_RUNNING, ["a", "b"], ["1 fired", "2 fired", "3 fired"]),
        (Overlap.SKIP, [], ["1 fired", "2-3 skipped"]),
        (Overlap.SKIP, ["a", "b"], ["1-3 skipped"]),
        (Overlap.BUFFER_ONE, [], ["1 fired", "2 fired", "3 skipped"]),
        (Overlap.BUFFER_ONE, ["a"], ["1 fired", "2-3 skipped"]),
        (Overlap.BUFFER_ONE, ["a", "b"], ["1-3 skipped"]),
    ],
)
def test_jobs_that_have_not_ended_are_in_the_way_as_the_policy_says(
    overlap: Overlap, live: list[str], expected: list[str]
) -> None:
    conclusions = concluded(schedule_of(SchedulePolicy(overlap=overlap)), 3, live=live)
    assert in_words(conclusions) == expected


# What is in force


def test_times_in_a_window_are_excluded_and_its_end_is_not_in_it() -> None:
    windows = (Window(wall(2_000), wall(4_000)), Window(wall(9_000), wall(9_001)))
    schedule = make_schedule("s", trigger=Trigger(Interval(1_000, wall(0)), exclude=windows))
    expected = ["1 fired", "2-3 excluded", *(f"{n} fired" for n in range(4, 9)), "9 excluded", "10 fired"]
    assert in_words(concluded(schedule, 10)) == expected


def test_each_stretch_has_its_own_trigger_and_a_paused_one_its_verdict() -> None:
    half = Trigger(Interval(500, wall(0)))
    past = (TriggerPeriod(half, wall(0), wall(1_200)), TriggerPeriod(half, wall(1_200), wall(3_200), paused=True))
    schedule = schedule_of(past=past, since_ms=wall(3_200))
    expected = ["0.5 fired", "1 fired", "1.5-3 paused", "4 fired", "5 fired"]
    assert in_words(concluded(schedule, 5)) == expected
    later = schedule_of(past=past, since_ms=wall(3_200), cursor_ms=wall(4_000))
    assert in_words(concluded(later, 5)) == ["5 fired"]


def test_the_catch_up_policy_looks_at_all_stretches_together() -> None:
    past = (TriggerPeriod(Trigger(Interval(500, wall(0))), wall(0), wall(2_200)),)
    schedule = schedule_of(SchedulePolicy(grace_ms=100), past=past, since_ms=wall(2_200))
    assert in_words(concluded(schedule, 4)) == ["0.5-3 coalesced", "4 fired"]
    capped = schedule_of(
        SchedulePolicy(grace_ms=100, catch_up=CatchUp.ALL, catch_up_max=3), past=past, since_ms=wall(2_200)
    )
    assert in_words(concluded(capped, 4)) == ["0.5-1.5 missed", "2 fired", "3 fired", "4 fired"]


# Jitter


def test_a_time_is_due_when_its_jitter_is_over_and_holds_up_those_after_it() -> None:
    trigger = Trigger(Interval(1_000, wall(0)), jitter_ms=900)
    schedule = make_schedule("s", trigger=trigger)
    due = due_ms("s", trigger, wall(1_000))
    assert wall(1_000) < due <= wall(1_900)
    assert decide_due_times(schedule, wall(0), FireCounts(), due - 1, live={}, limit=9) == []
    assert in_words(decide_due_times(schedule, wall(0), FireCounts(), due, live={}, limit=9)) == ["1 fired"]


@pytest.mark.parametrize(
    ("catch_up", "grace_ms", "expires_in_s", "expected"),
    [
        # What the policy lets fire has to be younger than the span; the 60th second is the newest.
        (CatchUp.ALL, 3_000, 5, ["1-55 missed", *(f"{n} fired" for n in range(56, 61))]),
        (CatchUp.NONE, 10_000, 5, ["1-55 missed", *(f"{n} fired" for n in range(56, 61))]),
        (CatchUp.NONE, 3_000, 5, ["1-57 missed", *(f"{n} fired" for n in range(58, 61))]),
        (CatchUp.LATEST, 3_000, 5, ["1-59 coalesced", "60 fired"]),
        (CatchUp.LATEST, 100_000, 5, ["1-55 missed", *(f"{n} fired" for n in range(56, 61))]),
        # Even the newest is half a second old, so nothing fires that could stand for the others.
        (CatchUp.LATEST, 3_000, 0.4, ["1-60 missed"]),
        (CatchUp.ALL, 3_000, 0.4, ["1-60 missed"]),
        (CatchUp.NONE, 3_000, 0.5, ["1-60 missed"]),
        (CatchUp.LATEST, 3_000, 0.6, ["1-59 coalesced", "60 fired"]),
        (CatchUp.ALL, 3_000, 3_600, [f"{n} fired" for n in MINUTE]),
    ],
)
def test_a_time_whose_job_would_have_expired_is_missed(
    catch_up: CatchUp, grace_ms: int, expires_in_s: float, expected: list[str]
) -> None:
    schedule = expiring(schedule_of(SchedulePolicy(grace_ms, catch_up)), expires_in_s)
    assert in_words(concluded(schedule, 60.5)) == expected


def expiring(schedule: ScheduleRef, expires_in_s: float) -> ScheduleRef:
    return replace(schedule, template=replace(schedule.template, expires_in_ms=round(1_000 * expires_in_s)))
