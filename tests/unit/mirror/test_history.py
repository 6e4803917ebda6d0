"""The last hour of jobs: points of 30 s, the counts of the last minute, and the level that was kept."""

from collections import Counter

from hascheduler.mirror.history import DAY_EVERY_MS, DAY_POINTS_MAX, EVERY_MS, POINTS_MAX, JobHistory
from hascheduler.model.event import EventType
from hascheduler.model.values.instants import MonoMs

LEVELS = {"pending": 3, "running": 2, "slots": 8, "replicas": 3}


def test_a_point_has_the_levels_at_its_end_and_what_happened_since_the_one_before() -> None:
    history, totals = JobHistory(MonoMs(0), Counter({EventType.FAILED: 100})), Counter({EventType.FAILED: 100})
    for second in range(1, 121):
        totals[EventType.FAILED] += second == 31
        totals[EventType.SCHEDULE_MISSED] += 2 * (second <= 30)
        history.sample(MonoMs(second * 1_000), totals, LEVELS | {"pending": second})
        if second == 90:
            assert (history.per_minute()["failed"], history.per_minute()["missed"]) == (1, 0)
    series = history.series()
    assert (series["failed"], series["missed"], series["submitted"]) == ([0, 1, 0, 0], [60, 0, 0, 0], [0, 0, 0, 0])
    assert (series["pending"], series["slots"]) == ([30, 60, 90, 120], [8] * 4)
    assert (history.until_ms, history.per_minute()["failed"]) == (120_000, 0)


def test_an_hour_is_kept_and_a_process_that_stood_still_has_points_for_that_time() -> None:
    history = JobHistory(MonoMs(0), {})
    history.sample(MonoMs(3 * EVERY_MS), {EventType.STARTED: 5, EventType.SUBMITTED: 4}, LEVELS)
    assert history.series()["submitted"] == [4, 0, 0]
    history.sample(MonoMs(1_000 * EVERY_MS), {EventType.SUBMITTED: 6}, LEVELS)
    assert (len(history.series()["submitted"]), sum(history.series()["submitted"])) == (POINTS_MAX, 2)
    assert history.until_ms == 1_000 * EVERY_MS


def test_a_level_counts_only_if_it_was_kept_from_one_point_to_the_next() -> None:
    history = JobHistory(MonoMs(0), {})
    assert history.most("replicas") == 0
    for point, replicas in enumerate([3, 3, 4, 3, 2], start=1):
        history.sample(MonoMs(point * EVERY_MS), {}, LEVELS | {"replicas": replicas})
    assert history.most("replicas") == 3


def test_the_day_has_the_most_that_ran_in_each_ten_minutes() -> None:
    history = JobHistory(MonoMs(0), {})
    for at_ms in range(EVERY_MS, (DAY_POINTS_MAX + 1) * DAY_EVERY_MS, EVERY_MS):
        history.sample(MonoMs(at_ms), {}, LEVELS | {"running": at_ms // EVERY_MS})
    points = DAY_EVERY_MS // EVERY_MS
    assert history.most_running() == [points * (bucket + 1) for bucket in range(DAY_POINTS_MAX)]
    history.sample(MonoMs((DAY_POINTS_MAX + 1) * DAY_EVERY_MS), {}, LEVELS)
    assert len(history.most_running()) == DAY_POINTS_MAX
