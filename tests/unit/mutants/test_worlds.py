"""The world of the core's tests, and the golden times, go red on each bug in how jobs wait, and when schedules fire."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.decisions import TimeOutcome
from hascheduler.dispatch.live_jobs import table
from hascheduler.dispatch.live_jobs.dependencies import Dependencies
from hascheduler.dispatch.schedules import planner, time_outcomes, trigger_periods
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.planner import CursorStep, CursorSteps
from hascheduler.mirror.changes import BatchSeen
from hascheduler.model.job import JobState
from hascheduler.schema.trigger import AnyOf, Trigger
from hascheduler.triggers import local_order, nominal
from tests.tiers import examples, spread
from tests.unit.dispatch import database, test_zone_data_differ
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.world import World
from tests.unit.triggers import test_golden_times

SEEDS_MAX = 600
Plant = Callable[[pytest.MonkeyPatch], None]


def worlds(seeds: int = SEEDS_MAX, acts: int = 300, first: int = 0) -> None:
    for seed in range(first, first + seeds):
        World(Seeded(seed)).live(acts)


def short_worlds() -> None:
    worlds(acts=200)


def late_worlds() -> None:
    """From shortly before the first that notices edits which conclusions survive."""
    worlds(first=320)


# How jobs wait for each other


def _failures_that_count_as_successes(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.gone
    patch.setattr(Dependencies, "gone", lambda self, job_id, state, job: sound(self, job_id, JobState.SUCCEEDED, job))


def _jobs_that_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "holds", lambda self, job_id: False)


def _one_that_is_enough(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        if self._unmet.get(job.id, 0) > 1:
            self._unmet[job.id] = 1

    patch.setattr(Dependencies, "seen", seen)


def _unknown_ones_that_nobody_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "take_unread", lambda self, is_live: [])


def _unknown_ones_that_count_as_met(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        for id in list(self._unread):
            self.gone(id, None, job)

    patch.setattr(Dependencies, "seen", seen)


def _batches_that_are_over_when_no_job_is_live(patch: pytest.MonkeyPatch) -> None:
    """Whatever the database says of those that ended before."""
    sound: Any = Dependencies.batch_seen
    patch.setattr(Dependencies, "batch_seen", lambda self, seen: sound(self, BatchSeen(seen.batch, is_live=False)))


def _batches_that_are_over_when_the_database_said_so_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "joined", lambda self, batch: None)
    patch.setattr(Dependencies, "left", lambda self, batch: None)


def _batches_that_are_read_when_first_seen_alone(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.left

    def left(self: Dependencies, batch: str) -> None:
        unread = dict(self._unread_over)
        sound(self, batch)
        self._unread_over = unread

    patch.setattr(Dependencies, "left", left)


def _doomed_jobs_that_nobody_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "dependency_failed", lambda self: [])


# Conclusions about times


def _conclusions_that_overtake(patch: pytest.MonkeyPatch) -> None:
    def chain(schedule: Any, conclusions: list[TimeOutcome], written: list[TimeOutcome]) -> CursorSteps:
        right = planner.cursor_steps(schedule, conclusions, written)
        links = [(each, CursorStep.NEXT if link is CursorStep.EARLY else link) for each, link in right.links]
        return CursorSteps(right.cursor_ms, right.tally, links)

    patch.setattr(database, "cursor_steps", chain)


def _edits_that_conclusions_survive(patch: pytest.MonkeyPatch) -> None:
    """As it would be if a decision did not say which times it took to be in force."""

    def chain(schedule: Any, conclusions: list[TimeOutcome], written: list[TimeOutcome]) -> CursorSteps:
        if schedule is not None:
            basis = conclusions[0].basis
            schedule = {**schedule, "since_ms": basis.since_ms, "paused_at_ms": basis.paused_at_ms}
        return planner.cursor_steps(schedule, conclusions, written)

    patch.setattr(database, "cursor_steps", chain)


def _schedules_that_are_known_by_their_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(table, "_maker", lambda schedule: (schedule.name, ""))


# Nominal times


def golden_scenarios() -> None:
    for path in test_golden_times.GOLDEN:
        test_golden_times.test_a_scheduler_fires_at_them_and_gives_each_of_them_one_verdict(path)


def _edits_of_calendars_that_nobody_hears(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DueTimes, "calendar_changed", lambda times, calendar: None)


def _edits_of_calendars_that_decide_again(patch: pytest.MonkeyPatch) -> None:
    sound: Any = DueTimes.calendar_changed

    def changed(times: DueTimes, calendar: str) -> None:
        for name in times.users_of(calendar):
            times._promised.pop(name, None)
        sound(times, calendar)

    patch.setattr(DueTimes, "calendar_changed", changed)


def _days_that_are_decided_before_they_are_over(patch: pytest.MonkeyPatch) -> None:
    sound: Any = trigger_periods.UndecidedTimes
    for room in (trigger_periods, time_outcomes):
        patch.setattr(room, "UndecidedTimes", lambda *given: sound(*given[:4]))


def _calendars_that_stay_as_they_were(patch: pytest.MonkeyPatch) -> None:
    sound: Any = DueTimes.__init__

    def init(times: DueTimes, calendars: Any) -> None:
        sound(times, _FirstVersions(calendars))

    patch.setattr(DueTimes, "__init__", init)


class _FirstVersions(dict[str, Any]):
    def __init__(self, calendars: Any) -> None:
        super().__init__()
        self._calendars = calendars

    def __contains__(self, name: object) -> bool:
        return name in self._calendars

    def __getitem__(self, name: str) -> Any:
        return self.setdefault(name, self._calendars[name])


def _a_time_that_fires_for_each_of_its_patterns(patch: pytest.MonkeyPatch) -> None:
    sound = nominal.next_nominal
    repeated: set[tuple[Trigger, int]] = set()

    def following(trigger: Trigger, after_ms: int) -> Any:
        key = trigger, after_ms
        if key not in repeated and _named_by(trigger, after_ms) > 1:
            repeated.add(key)
            return after_ms
        repeated.discard(key)
        return sound(trigger, after_ms)

    patch.setattr(time_outcomes, "next_nominal", following)


def _named_by(trigger: Trigger, at_ms: int) -> int:
    return sum(nominal._next(part, at_ms - 1) == at_ms for part in trigger.parts)


def _a_time_that_counts_for_each_of_its_patterns(patch: pytest.MonkeyPatch) -> None:
    def count_any(parts: Any, after_ms: int, through_ms: int) -> int:
        return sum(nominal._count(part, after_ms, through_ms) for part in parts)

    patch.setattr(nominal, "_count_any", count_any)


def _the_last_pattern_that_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    sound: Any = nominal._next

    def following(pattern: Any, after_ms: int) -> Any:
        return sound(AnyOf(pattern.of[:-1]) if isinstance(pattern, AnyOf) else pattern, after_ms)

    patch.setattr(nominal, "_next", following)


def leaders_with_other_zone_data() -> None:
    for case in test_zone_data_differ.CASES:
        test_zone_data_differ.test_each_local_time_is_decided_once_whoever_leads(*case)


def _own_zone_data_taken_for_those_of_others(patch: pytest.MonkeyPatch) -> None:
    for room in (local_order, trigger_periods):
        patch.setattr(room, "keeps_order", lambda *_: True)


def _wall_times_that_are_over_become_ones_to_come(patch: pytest.MonkeyPatch) -> None:
    sound: Any = local_order.offsets_at
    patch.setattr(time_outcomes, "offsets_at", lambda zones, at_ms, cursor_ms, _: sound(zones, at_ms, cursor_ms, ()))


def _what_a_jump_leaves_out_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local_order, "is_any_between", lambda *_: False)


def _every_hour_that_follows_walls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local_order, "follows_walls", lambda cron: cron.timezone != "UTC")


@pytest.mark.parametrize(
    "plant",
    spread(
        [
            _failures_that_count_as_successes,
            _jobs_that_do_not_wait,
            _one_that_is_enough,
            _unknown_ones_that_nobody_reads,
            _unknown_ones_that_count_as_met,
            _batches_that_are_over_when_no_job_is_live,
            _batches_that_are_over_when_the_database_said_so_once,
            _batches_that_are_read_when_first_seen_alone,
            _doomed_jobs_that_nobody_fails,
        ],
        check=3,
    ),
)
def test_a_planted_bug_in_how_jobs_wait_is_noticed(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        short_worlds()


@pytest.mark.parametrize(
    "plant",
    [
        _own_zone_data_taken_for_those_of_others,
        _wall_times_that_are_over_become_ones_to_come,
        _what_a_jump_leaves_out_is_lost,
        _every_hour_that_follows_walls,
    ],
)
def test_a_planted_bug_in_local_times_is_noticed(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        leaders_with_other_zone_data()


@pytest.mark.parametrize(
    ("plant", "judge"),
    spread(
        [
            (_conclusions_that_overtake, worlds),
            (_edits_that_conclusions_survive, late_worlds),
            (_schedules_that_are_known_by_their_names, worlds),
            (_edits_of_calendars_that_nobody_hears, worlds),
            (_edits_of_calendars_that_decide_again, worlds),
            (_a_time_that_fires_for_each_of_its_patterns, worlds),
            (_a_time_that_counts_for_each_of_its_patterns, worlds),
            (_edits_of_calendars_that_nobody_hears, golden_scenarios),
            (_days_that_are_decided_before_they_are_over, golden_scenarios),
            (_calendars_that_stay_as_they_were, golden_scenarios),
            (_the_last_pattern_that_is_forgotten, golden_scenarios),
        ],
        check=3,
    ),
)
def test_a_planted_bug_in_times_is_noticed(
    plant: Plant, judge: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        judge()


def test_without_a_bug_the_worlds_are_content() -> None:
    worlds(examples(200))
