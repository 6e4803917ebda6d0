"""The criterion ``deadline``: the earliest ``expires_at`` first, jobs without one last, ties by the next criteria."""

from typing import Any

import pytest

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.mirror.changes import JobGone, JobSeen, LaneSeen
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.lane import Lane
from hascheduler.model.policy import Criterion, criteria
from tests.unit.dispatch.nouns import make_job, wall
from tests.unit.dispatch.scene import Scene, jobs, processors


def scene_of(*waiting: JobRef, policy: str = "deadline", lanes: tuple[Lane, ...] = ()) -> Scene:
    """A leader with one slot, which a job ``runs`` has, and these that wait."""
    scene = Scene(*map(LaneSeen, lanes), *processors("p", slots=1), policy=PolicyConfig(criteria(policy)))
    scene.at(0, *jobs(make_job("runs")))
    scene.at(0, *jobs(*waiting))
    return scene


def order_of(scene: Scene, count: int) -> list[str]:
    """The jobs that get the one slot, one after the other, at the second 0."""
    order, ended = [], "runs"
    for _ in range(count):
        [dispatch] = scene.at(0, JobGone(ended, JobState.SUCCEEDED)).decisions
        assert isinstance(dispatch, Dispatch)
        ended = dispatch.job_id
        order.append(ended)
    return order


def expiring(id: str, after_ms: int | None, **rest: Any) -> JobRef:
    return make_job(id, target=id, expires_at_ms=None if after_ms is None else wall(after_ms), **rest)


def test_the_job_that_expires_first_goes_first_and_one_that_never_does_goes_last() -> None:
    waiting = (expiring("never", None, priority=10), expiring("late", 90_000), expiring("soon", 30_000, sequence=9))
    assert order_of(scene_of(*waiting), 3) == ["soon", "late", "never"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("deadline", ["old", "young"]), ("deadline,score", ["young", "old"]), ("deadline,fairness", ["old", "young"])],
)
def test_the_next_criterion_decides_among_equal_deadlines(policy: str, expected: list[str]) -> None:
    waiting = (expiring("young", 60_000, sequence=2, priority=9), expiring("old", 60_000, sequence=1, priority=1))
    assert order_of(scene_of(*waiting, policy=policy), 2) == expected


@pytest.mark.parametrize("policy", ["score,deadline", "fairness,deadline", "tier,deadline", "aged_priority,deadline"])
def test_the_deadline_decides_where_the_criteria_before_it_leave_jobs_equal(policy: str) -> None:
    waiting = (expiring("late", 90_000, sequence=1), expiring("soon", 30_000, sequence=2))
    assert order_of(scene_of(*waiting, policy=policy), 2) == ["soon", "late"]


def test_jobs_of_one_aged_priority_go_by_their_deadlines_whatever_their_ages() -> None:
    """Both have waited for less than the minute after which a priority grows."""
    old = expiring("old", 90_000, submitted_at_ms=wall(-50_000))
    assert order_of(scene_of(old, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["young", "old"]
    older = expiring("old", 90_000, submitted_at_ms=wall(-70_000))
    assert order_of(scene_of(older, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["old", "young"]


def test_a_deadline_that_changes_moves_the_job() -> None:
    scene = scene_of(expiring("a", 60_000), expiring("b", 50_000))
    scene.at(0, JobSeen(expiring("a", 40_000, rev=2)))
    assert order_of(scene, 2) == ["a", "b"]


def test_a_lane_may_order_its_own_jobs_by_deadline() -> None:
    lane = Lane("default", criteria=criteria("deadline"))
    waiting = (expiring("old", None), expiring("soon", 30_000, sequence=2))
    assert order_of(scene_of(*waiting, policy="lane,arrival", lanes=(lane,)), 2) == ["soon", "old"]


def test_why_names_the_deadlines_that_decide() -> None:
    waiting = (expiring("soon", 30_000, sequence=2), expiring("late", 90_000, sequence=1), expiring("never", None))
    scene = scene_of(*waiting)
    for id, ahead, shown in (("late", 1, "in 90 s"), ("never", 2, "none")):
        explanation = scene.core.explain(id, wall(0))
        assert explanation is not None
        position = explanation.position
        assert position is not None
        assert (position.ahead, position.first, position.deciding) == (ahead, "soon", Criterion.DEADLINE)
        [value, _] = position.values
        assert (value.criterion, value.value, value.first) == (Criterion.DEADLINE, shown, "in 30 s")


def test_a_score_is_told_in_points() -> None:
    """1,024 for a step of priority, 16 for a second, 500 for the only slot that could run it."""
    jobs = (expiring("x", None, priority=5), expiring("y", None, priority=4, sequence=2))
    explanation = scene_of(*jobs, policy="score,arrival").core.explain("y", wall(1_250))
    assert explanation is not None
    assert explanation.position is not None
    [value, _] = explanation.position.values
    assert (value.value, value.first) == ("4 116 points", "5 140 points")
