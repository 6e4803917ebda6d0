"""What becomes of the nominal times that are due, and what is to come: backfills, previews, the load ahead."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.dispatch.schedules.backfill import backfill_times, plan_backfill
from hascheduler.dispatch.schedules.load_ahead import BUCKET_MS, BUCKETS, LoadAhead, load_ahead
from hascheduler.dispatch.schedules.previews import finished, next_fire
from hascheduler.dispatch.schedules.time_outcomes import decide_due_times
from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId, backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import CatchUp, Overlap, SchedulePolicy, ScheduleRef
from hascheduler.schema.trigger import Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.triggers import Upcoming, due_ms
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


def test_times_in_a_window_are_excluded_and_its_end_is_not_in_it() -> None:
    windows = (Window(wall(2_000), wall(4_000)), Window(wall(9_000), wall(9_001)))
    schedule = make_schedule("s", trigger=Trigger(Interval(1_000, wall(0)), exclude=windows))
    expected = ["1 fired", "2-3 excluded", *(f"{n} fired" for n in range(4, 9)), "9 excluded", "10 fired"]
    assert in_words(concluded(schedule, 10)) == expected


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


def nominal(upcoming: list[Upcoming]) -> list[int]:
    return [each.nominal_ms - wall(0) for each in upcoming]


def test_the_next_fire_lies_in_no_exclusion_window_and_respects_a_pause_and_max_fires() -> None:
    excluding = replace(EVERY_SECOND, exclude=(Window(wall(1_000), wall(3_000)),))
    schedule = make_schedule("tick", trigger=excluding)
    found = next_fire(schedule)
    assert found is not None
    assert found.nominal_ms == wall(3_000)
    assert next_fire(replace(schedule, paused_at_ms=wall(0))) is None
    exhausted = replace(schedule.tally, fired=1)
    assert next_fire(replace(schedule, trigger=replace(excluding, max_fires=1), tally=exhausted)) is None


SCHEDULE = make_schedule("tick")
EARLIER = SCHEDULE.identity._replace(created_at_ms=SCHEDULE.created_at_ms - 1)
TIMES = [wall(1_000), wall(2_000)]
DECIDED = replace(SCHEDULE, cursor_ms=wall(2_000))


def backfill_id(nominal_ms: int, of: ScheduleId | None = None) -> str:
    return backfill_job_id("tick", nominal_ms, None if of is None else of.created_at_ms)


@pytest.mark.parametrize("made_by", [EARLIER, None], ids=["an earlier schedule", "no schedule"])
def test_a_job_of_another_schedule_does_not_count_and_its_id_is_not_taken(made_by: ScheduleId | None) -> None:
    makers = {backfill_id(TIMES[0]): made_by, fire_job_id("tick", TIMES[1]): made_by}
    plan = plan_backfill(DECIDED, TIMES, makers, wall(2_500))
    assert plan.job_ids == {TIMES[0]: backfill_id(TIMES[0], DECIDED.identity), TIMES[1]: backfill_id(TIMES[1])}
    assert plan.missing == TIMES
    # A repeat finds the job under the longer id.
    repeated = plan_backfill(DECIDED, TIMES, {**makers, plan.job_ids[TIMES[0]]: DECIDED.identity}, wall(2_500))
    assert (repeated.job_ids, repeated.missing) == (plan.job_ids, [TIMES[1]])


def test_excluded_times_are_left_out_of_the_span_and_of_the_limit() -> None:
    trigger = Trigger(Interval(1_000, wall(0)), exclude=(Window(wall(1_000), wall(1_001_000)),))
    times = finished(backfill_times(trigger, wall(0), wall(1_999_000)))
    assert (len(times), times[:2]) == (1_000, [wall(0), wall(1_001_000)])
    with pytest.raises(InvalidInput, match="1001 nominal times"):
        finished(backfill_times(trigger, wall(0), wall(2_000_000)))


FROM = 1_893_456_000_000
MINUTE_MS = 60_000
NOW = FROM + 5 * MINUTE_MS
AT_ONE = Once(WallMs(FROM + 60 * MINUTE_MS))


def schedule(pattern: Pattern, name: str = "a", definition: str = "log", **trigger: Any) -> ScheduleRef:
    plain = make_schedule(name, cursor_ms=WallMs(NOW), since_ms=WallMs(0))
    template = replace(plain.template, definition=definition)
    return replace(plain, trigger=replace(Trigger(pattern), **trigger), template=template)


def serial(schedule: ScheduleRef, overlap: str) -> ScheduleRef:
    return replace(schedule, policy=replace(schedule.policy, overlap=Overlap(overlap)))


def load(*schedules: ScheduleRef, minutes: float = 10, slots: int = 2) -> LoadAhead:
    steps = load_ahead(NOW, schedules, slots, {"log": 1}, {}, cost_ms=lambda _template, _name: int(minutes * MINUTE_MS))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: LoadAhead = end.value
            return found


@pytest.mark.parametrize(
    ("trigger", "minutes", "needed"),
    [
        (schedule(AT_ONE), 10, {6: 1}),
        (schedule(AT_ONE), 25, {6: 1, 7: 1, 8: 1}),
        (schedule(AT_ONE, jitter_ms=10 * MINUTE_MS), 20, {6: 1, 7: 1, 8: 1}),
        (schedule(Times((WallMs(NOW - 1), WallMs(NOW + 1)))), 0.1, {0: 1}),
        (schedule(Interval(120 * MINUTE_MS, WallMs(MINUTE_MS))), 1, {12 * hour: 1 for hour in range(1, 12)}),
        (schedule(Interval(MINUTE_MS, WallMs(0))), 2, {0: 1} | dict.fromkeys(range(1, BUCKETS), 2)),
        (schedule(Interval(MINUTE_MS, WallMs(0)), max_fires=20), 10, {0: 1, 1: 9, 2: 9, 3: 2}),
        (schedule(Cron("*/5 3 * * *")), 20, {18: 2, 19: 4, **dict.fromkeys(range(20, 24), 4), 24: 3, 25: 1}),
        (serial(schedule(Interval(MINUTE_MS, WallMs(0))), "buffer_one"), 2, dict.fromkeys(range(BUCKETS), 1)),
        (serial(schedule(Cron("*/5 3 * * *")), "skip"), 20, dict.fromkeys(range(18, 26), 1)),
        (schedule(Once(WallMs(NOW))), 10, {}),
        (schedule(Once(WallMs(FROM + BUCKETS * BUCKET_MS))), 10, {}),
        (replace(schedule(AT_ONE), paused_at_ms=WallMs(NOW)), 10, {}),
        (replace(schedule(AT_ONE, max_fires=1), tally=FireCounts(fired=1)), 10, {}),
    ],
)
def test_each_bucket_needs_the_fires_in_it_times_their_cost(
    trigger: ScheduleRef, minutes: float, needed: dict[int, int]
) -> None:
    everything, *_ = load(trigger, minutes=minutes).loads
    assert {bucket: slots for bucket, slots in enumerate(everything.needed) if slots} == needed


def test_what_is_too_much_is_said_by_spans_of_all_and_of_definitions_with_a_cap() -> None:
    names = [f"s{number}" for number in range(3)]
    found = load(*(schedule(AT_ONE, name, "log" if name == "s0" else "other") for name in names), minutes=30)
    assert [(each.definition, each.slots, max(each.needed)) for each in found.loads] == [(None, 2, 3), ("log", 1, 1)]
    spans = [list(each.too_much(FROM)) for each in found.loads]
    assert spans == [[(FROM + 6 * BUCKET_MS, FROM + 9 * BUCKET_MS, 3)], []]
