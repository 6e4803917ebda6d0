"""Deadlines: what they do to jobs, and in which order they come."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Dispatch, Fail, Requeue
from hascheduler.dispatch.explanation import Explanation, Overdue
from hascheduler.dispatch.inputs import Input
from hascheduler.mirror.changes import DefinitionSeen, JobGone, JobSeen, LaneSeen, ProcessorGone
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import Criterion, criteria
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.retry import RetryPolicy
from tests.unit.dispatch.nouns import make_job, running, wall
from tests.unit.dispatch.scene import CONFIG, Scene, jobs, processors

GRACE_MS = CONFIG.timeout_grace_ms


def define(**limits: Any) -> Input:
    return DefinitionSeen(Definition(name="log", rev=1, retry=RetryPolicy(attempts_max=3), **limits))


def test_a_job_that_has_not_begun_in_time_expires() -> None:
    scene = Scene(*jobs(make_job("a", expires_at_ms=wall(100))))
    assert scene.began.wake_at_ms == wall(100)
    assert scene.at(99).decisions == ()
    assert scene.at(100).decisions == (Fail("a", 0, "expired before it started"),)


def test_an_attempt_whose_processor_does_not_end_it_is_given_to_another() -> None:
    scene = Scene(*processors("p"), define(timeout_ms=1_000), *jobs(running("a", "p", started_at_ms=wall(0))))
    assert scene.at(1_000 + GRACE_MS - 1).decisions == ()
    assert scene.at(1_000 + GRACE_MS).decisions == (Requeue("a", 1, "timed out"),)


def test_an_attempt_whose_thread_goes_on_is_its_processor_s_to_end_until_that_is_lost() -> None:
    overdue: Any = {"overdue_attempt": 1, "overdue_since_ms": wall(1_000)}
    define_both = define(timeout_ms=1_000, total_timeout_ms=5_000)
    runs = running("a", "p", started_at_ms=wall(0), first_started_at_ms=wall(0))
    scene = Scene(*processors("p"), define_both, *jobs(runs))
    marked = JobSeen(replace(runs, rev=runs.rev + 1, **overdue))
    assert scene.at(1_000, marked).decisions == ()
    found = scene.at(20_000)
    assert (found.decisions, scene.core.explain("a", wall(20_000))) == (
        (),
        Explanation("a", "running", "p", overdue=Overdue(1, wall(1_000))),
    )
    assert scene.at(20_001, ProcessorGone("p")).decisions == (Requeue("a", 1, "processor lost"),)


def test_the_total_timeout_ends_a_job_that_runs_and_one_that_waits_for_its_next_try() -> None:
    runs = running("a", "p", started_at_ms=wall(0), first_started_at_ms=wall(0))
    waits = make_job("b", attempt=1, first_started_at_ms=wall(0), retry_at_ms=wall(10**6), failures=1)
    scene = Scene(*processors("p"), define(total_timeout_ms=5_000), *jobs(runs, waits))
    assert scene.at(5_000).decisions == (Fail("b", 1, "timed out in all (1 try)"),)
    assert scene.at(5_000 + GRACE_MS, JobGone("b")).decisions == (Fail("a", 1, "timed out in all (1 try)"),)


def test_a_processor_whose_clock_is_ahead_gets_no_more_time_and_one_behind_no_less() -> None:
    ahead = running("a", "p", started_at_ms=wall(10**7))
    behind = running("b", "p", started_at_ms=wall(-(10**7)), dispatched_at_ms=wall(0))
    scene = Scene(*processors("p"), define(timeout_ms=1_000), *jobs(ahead, behind))
    assert scene.at(1_000 + GRACE_MS - 1).decisions == ()
    assert {d.job_id for d in scene.at(1_000 + GRACE_MS).decisions if isinstance(d, Requeue)} == {"a", "b"}


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


@pytest.mark.parametrize("policy", ["score,deadline", "fairness,deadline", "tier,deadline", "aged_priority,deadline"])
def test_the_deadline_decides_where_the_criteria_before_it_leave_jobs_equal(policy: str) -> None:
    waiting = (expiring("late", 90_000, sequence=1), expiring("soon", 30_000, sequence=2))
    assert order_of(scene_of(*waiting, policy=policy), 2) == ["soon", "late"]


def test_why_names_the_deadlines_that_decide() -> None:
    waiting = (expiring("soon", 30_000, sequence=2), expiring("late", 90_000, sequence=1), expiring("never", None))
    scene = scene_of(*waiting)
    for id, ahead, shown in (("late", 1, "in 90 s"), ("never", 2, "none")):
        explanation = scene.why(id, 0)
        position = explanation.position
        assert position is not None
        assert (position.ahead, position.first, position.deciding) == (ahead, "soon", Criterion.DEADLINE)
        [value, _] = position.criteria
        assert (value.criterion, value.value, value.first) == (Criterion.DEADLINE, shown, "in 30 s")


def test_jobs_of_one_aged_priority_go_by_their_deadlines_whatever_their_ages() -> None:
    """Both have waited for less than the minute after which a priority grows."""
    old = expiring("old", 90_000, submitted_at_ms=wall(-50_000))
    assert order_of(scene_of(old, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["young", "old"]
    older = expiring("old", 90_000, submitted_at_ms=wall(-70_000))
    assert order_of(scene_of(older, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["old", "young"]
