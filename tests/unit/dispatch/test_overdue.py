"""Late schedules are found by the timers that are overdue, on the leader and on replicas that only follow."""

import random
from dataclasses import replace

import pytest

from hascheduler.dispatch.schedules.trouble import LATE_MS_MIN, is_late
from hascheduler.dispatch.timers import Timers
from hascheduler.mirror.changes import ScheduleSeen
from hascheduler.schema.trigger import Cron, Once, Trigger
from tests.unit.dispatch.nouns import make_schedule, wall
from tests.unit.dispatch.scene import Scene

HOUR, MINUTE = 3_600_000, 60_000


def test_names_that_come_before_an_instant_are_found_wherever_they_are_kept() -> None:
    seed = random.randrange(2**32)
    chance, timers, known = random.Random(seed), Timers(), dict[str, int]()
    for now in range(0, 2 * HOUR, MINUTE):
        for _ in range(50):
            name = str(chance.randrange(200))
            known[name] = now + chance.randrange(HOUR)
            timers.set(name, known[name])
        gone = str(chance.randrange(200))
        timers.clear(gone)
        known.pop(gone, None)
        expected = {name for name, at_ms in known.items() if at_ms < now}
        assert {*timers.before(now)} == expected, f"seed {seed}, {now} ms"
        if chance.random() < 0.3:
            for name, _ in timers.take_due(now, 20):
                del known[name]


@pytest.mark.parametrize("leading", [True, False])
def test_a_schedule_whose_times_are_not_decided_is_among_the_overdue(leading: bool) -> None:
    minutely = [make_schedule(f"s{number}", every_ms=MINUTE) for number in range(30)]
    idle = [make_schedule(f"h{number}", trigger=Trigger(Once(wall(HOUR)))) for number in range(30)]
    broken = make_schedule("broken", trigger=Trigger(Cron("nonsense")))
    scene = Scene(*map(ScheduleSeen, [*minutely, *idle, broken]), leading=leading)
    for minute in range(1, 9):
        moved = [replace(each, cursor_ms=wall(minute * MINUTE)) for each in minutely if each.name != "s7"]
        scene.at(minute * MINUTE, *map(ScheduleSeen, moved))
        now = wall(minute * MINUTE + 1_000)
        overdue = scene.core.state.times.overdue(now - LATE_MS_MIN)
        assert [each.name for each in overdue if is_late(each, {}, now)] == ([] if minute < 2 else ["s7"])
        assert "broken" in {each.name for each in overdue}
        assert not {each.name for each in overdue} & {each.name for each in idle}
