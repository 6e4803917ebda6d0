"""Jobs that wait for others: without a slot, until the last of them has succeeded, or never."""

import pytest

from hascheduler.dispatch.decisions import Dispatch, Fail
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Input, TermBegan, TrustLost
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.job import JobState
from tests.unit.dispatch.nouns import make_job, running, wall
from tests.unit.dispatch.scene import Scene, jobs, processors

OK, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def waiting(id: str = "w", *on: str, ignores: bool = False) -> Input:
    return JobSeen(make_job(id, waits_for=on or ("a", "b"), ignores_failures=ignores))


def scene_of(*facts: Input) -> Scene:
    return Scene(*processors("p", slots=4), *jobs(running("a", "p"), running("b", "p")), *facts)


def test_it_takes_no_slot_and_goes_on_in_the_step_that_tells_of_the_last_one() -> None:
    scene = scene_of(waiting())
    assert scene.began.decisions == ()
    assert scene.core.occupied("p") == 2
    assert scene.at(1, JobGone("a", OK)).decisions == ()
    assert scene.at(2, JobGone("b", OK)).decisions == (Dispatch("w", 1, "p"),)


def test_it_does_not_hold_up_others() -> None:
    scene = scene_of(waiting(), *jobs(make_job("z")))
    assert scene.began.decisions == (Dispatch("z", 1, "p"),)


@pytest.mark.parametrize(("state", "said"), [(FAILED, "failed"), (CANCELLED, "was cancelled")])
def test_one_that_fails_or_is_cancelled_ends_it(state: JobState, said: str) -> None:
    scene = scene_of(waiting())
    assert scene.at(1, JobGone("b", state)).decisions == (Fail("w", 0, f"its dependency b {said}"),)


@pytest.mark.parametrize("state", [FAILED, CANCELLED])
def test_where_that_is_to_be_ignored_it_goes_on_when_all_have_ended(state: JobState) -> None:
    scene = scene_of(waiting(ignores=True))
    assert scene.at(1, JobGone("a", state)).decisions == ()
    assert scene.at(2, JobGone("b", OK)).decisions == (Dispatch("w", 1, "p"),)


def test_a_diamond_runs_its_corners_in_order() -> None:
    scene = Scene(*processors("p", slots=4), *jobs(running("a", "p")), waiting("l", "a"), waiting("r", "a"))
    scene.at(1, waiting("end", "l", "r"))
    assert scene.at(2, JobGone("a", OK)).decisions == (Dispatch("l", 1, "p"), Dispatch("r", 1, "p"))
    assert scene.at(3, JobGone("l", OK)).decisions == ()
    assert scene.at(4, JobGone("r", OK)).decisions == (Dispatch("end", 1, "p"),)


def test_a_failure_goes_down_the_whole_chain() -> None:
    scene = Scene(*processors("p"), *jobs(running("a", "p")), waiting("b", "a"), waiting("c", "b"))
    assert scene.at(1, JobGone("a", FAILED)).decisions == (Fail("b", 0, "its dependency a failed"),)
    assert scene.at(2, JobGone("b", FAILED)).decisions == (Fail("c", 0, "its dependency b failed"),)


def test_what_is_not_known_as_live_is_read_once_and_by_a_leader_alone() -> None:
    scene = Scene(*processors("p"), waiting("w", "gone"), leading=False)
    assert scene.at(0).refetch == ()
    assert scene.at(1, TermBegan(1)).refetch == ("gone",)
    assert scene.at(2).refetch == ()
    assert scene.at(3, JobGone("gone", OK)).decisions == (Dispatch("w", 1, "p"),)


def test_what_had_failed_before_is_found_by_that_reading() -> None:
    scene = Scene(*processors("p"), waiting("w", "gone"))
    assert scene.began.refetch == ("gone",)
    assert scene.at(1, JobGone("gone", FAILED)).decisions == (Fail("w", 0, "its dependency gone failed"),)


def test_what_was_deleted_long_ago_had_succeeded() -> None:
    scene = Scene(*processors("p"), waiting("w", "gone"))
    assert scene.at(1, JobGone("gone")).decisions == (Dispatch("w", 1, "p"),)


def test_one_that_comes_after_it_in_a_snapshot_is_not_read_but_waited_for() -> None:
    scene = Scene(*processors("p", slots=4), waiting("w", "a"), *jobs(running("a", "p")))
    assert scene.began.refetch == ()
    assert scene.at(1, JobGone("a", OK)).decisions == (Dispatch("w", 1, "p"),)


def test_a_new_leader_fails_what_the_old_one_had_not_yet() -> None:
    scene = Scene(*processors("p", slots=4), *jobs(running("a", "p")), waiting("w", "a"), leading=False)
    assert scene.at(1, JobGone("a", FAILED)).decisions == ()
    assert scene.at(2, TermBegan(1)).decisions == (Fail("w", 0, "its dependency a failed"),)
    assert scene.at(3, TrustLost()).decisions == ()
    assert scene.at(4, TermBegan(2)).decisions == (Fail("w", 0, "its dependency a failed"),)


def test_later_versions_wait_for_nothing_new() -> None:
    scene = scene_of(waiting("w", "a"))
    scene.at(1, JobGone("a", OK))
    again = make_job("w", rev=2, priority=9, waits_for=("a",))
    scene.at(2, TrustLost(), JobSeen(again))
    assert scene.at(3, TermBegan(2)).decisions == (Dispatch("w", 1, "p"),)


def test_one_that_is_cancelled_waits_no_longer() -> None:
    scene = scene_of(waiting())
    scene.at(1, JobGone("w", CANCELLED))
    assert scene.at(2, JobGone("a", FAILED), JobGone("b", OK)).decisions == ()


def test_why_says_what_it_waits_for_and_no_other_tenants_jobs() -> None:
    scene = scene_of(waiting())
    explanation = scene.core.explain("w", wall(1))
    assert explanation is not None
    [block] = explanation.blocks
    assert (block.rule, block.because) == (BlockReason.DEPENDENCY, "'a', 'b' have yet to succeed")
    explanation = scene.core.explain("w", wall(1), only="another")
    assert explanation is not None
    assert "'a'" not in explanation.blocks[0].because
    assert explanation.blocks[0].numbers["jobs"] == ["a job of another tenant"] * 2


def test_a_replica_that_was_told_of_a_mind_knows_what_is_still_waited_for() -> None:
    scene = scene_of(waiting())
    scene.at(1, JobGone("a", OK))
    other = Scene(*scene.core.state_snapshot(wall(2)), leading=False)
    assert other.at(3, JobGone("b", OK)).decisions == scene.at(3, JobGone("b", OK)).decisions != ()
