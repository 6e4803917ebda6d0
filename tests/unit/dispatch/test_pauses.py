"""A pause holds back what it is meant to, and what comes after it is what comes after a time without a leader."""

import pytest

from hascheduler.dispatch.decisions import Dispatch, Fail, Fire, RecordVerdict
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import TermBegan, TrustLost
from hascheduler.mirror.changes import JobGone, PauseGone, PauseSeen, ProcessorGone, ProcessorSeen, ScheduleSeen
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.pause import EVERYTHING, StandingPause, drain_id
from hascheduler.schema.schedule import CatchUp, SchedulePolicy
from tests.unit.dispatch.nouns import make_job, make_processor, make_schedule, wall
from tests.unit.dispatch.scene import FAR, Scene, echo, jobs, processors, settled

ALL = StandingPause(id=EVERYTHING, rev=1, since_ms=wall(0), by="deployer", because="it burns")
SCHEDULES_ONLY = StandingPause(
    id=EVERYTHING, rev=1, since_ms=wall(0), by="deployer", because="it burns", schedules_only=True
)
P_IS_DRAINED = StandingPause(id=drain_id("p"), rev=1, since_ms=wall(0), by="deployer", because="its node is replaced")
POLICIES = [
    SchedulePolicy(grace_ms=grace_ms, catch_up=catch_up) for grace_ms in (500, 5_000, 3_600_000) for catch_up in CatchUp
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_after_a_pause_each_schedule_catches_up_as_after_a_time_without_a_leader(policy: SchedulePolicy) -> None:
    paused, leaderless = (Scene(ScheduleSeen(make_schedule("s", policy=policy))) for _ in range(2))
    paused.at(500, PauseSeen(ALL))
    leaderless.at(500, TrustLost())
    for span_ms in range(1_000, 10_000, 500):
        assert paused.at(span_ms).decisions == leaderless.at(span_ms).decisions == ()
    resumed = paused.at(9_700, PauseGone(EVERYTHING)).decisions
    assert resumed == leaderless.at(9_700, TermBegan(2)).decisions
    assert {type(each) for each in resumed} <= {Fire, RecordVerdict}
    assert resumed


def test_while_everything_is_paused_the_core_asks_to_be_woken_for_no_due_time() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    assert scene.began.wake_at_ms == wall(1_000)
    assert scene.at(0, PauseSeen(ALL)).wake_at_ms is None
    assert scene.at(5_000).wake_at_ms is None
    assert len(scene.at(5_000, PauseGone(EVERYTHING)).decisions) > 0


def test_no_job_is_dispatched_and_what_runs_goes_on() -> None:
    first, second = make_job("a"), make_job("b")
    scene = Scene(*processors("p", slots=1), *jobs(first))
    begun = scene.began
    scene.at(1, *settled(begun.decisions), *echo(begun, first))
    assert scene.at(2, PauseSeen(ALL), *jobs(second)).decisions == ()
    assert scene.at(3, JobGone("a", JobState.SUCCEEDED)).decisions == ()
    [dispatch] = scene.at(4, PauseGone(EVERYTHING)).decisions
    assert dispatch == Dispatch("b", 1, "p")


def test_a_pause_of_schedules_alone_leaves_jobs_to_be_dispatched() -> None:
    scene = Scene(PauseSeen(SCHEDULES_ONLY), *processors("p"), *jobs(make_job("a")), ScheduleSeen(make_schedule("s")))
    assert scene.began.decisions == (Dispatch("a", 1, "p"),)
    assert not any(isinstance(each, Fire) for each in scene.at(5_000).decisions)


def test_a_job_expires_while_everything_is_paused() -> None:
    scene = Scene(PauseSeen(ALL), *processors("p"), *jobs(make_job("a", expires_at_ms=wall(1_000))))
    assert scene.began.wake_at_ms == wall(1_000)
    assert [type(each) for each in scene.at(1_000).decisions] == [Fail]


def test_why_a_job_waits_says_who_paused_everything_and_why() -> None:
    scene = Scene(PauseSeen(ALL), *processors("p"), *jobs(make_job("a")))
    explanation = scene.why("a", 5)
    [block] = explanation.blocks
    assert (block.rule, block.unblocked_by) == (BlockReason.PAUSED, "hascheduler resume --all")
    assert block.because.startswith("everything is paused since ")
    assert block.because.endswith(" by deployer: it burns")
    assert explanation.position is not None
    assert explanation.position.ahead == 0


def test_a_pause_of_any_age_can_be_told() -> None:
    scene = Scene(
        PauseSeen(StandingPause(id=EVERYTHING, rev=1, since_ms=WallMs(2**53 - 1), by="deployer")), *jobs(make_job("a"))
    )
    assert scene.core.explain("a", wall(5)) is not None


# Drains


def test_a_drained_processor_gets_no_job_and_keeps_those_it_has() -> None:
    first, second = make_job("a"), make_job("b")
    scene = Scene(*processors("p", slots=2), *jobs(first))
    scene.at(1, *settled(scene.began.decisions), *echo(scene.began, first))
    assert scene.at(2, PauseSeen(P_IS_DRAINED), *jobs(second)).decisions == ()
    assert scene.core.occupants("p") == ["a"]
    assert scene.at(3, *processors("q")).decisions == (Dispatch("b", 1, "q"),)


def test_a_name_stays_drained_when_its_processor_starts_again() -> None:
    scene = Scene(PauseSeen(P_IS_DRAINED), ProcessorSeen(make_processor("p.1", name="p")), *jobs(make_job("a")))
    assert scene.began.decisions == ()
    assert scene.at(1, ProcessorGone("p.1"), ProcessorSeen(make_processor("p.2", name="p"))).decisions == ()
    assert scene.at(2, PauseGone(drain_id("p"))).decisions == (Dispatch("a", 1, "p.2"),)


def test_why_a_job_waits_names_the_drained_processor() -> None:
    scene = Scene(PauseSeen(P_IS_DRAINED), *processors("p"), *jobs(make_job("a")))
    explanation = scene.why("a", 5)
    [block] = explanation.blocks
    assert block.rule is BlockReason.UNSCHEDULABLE
    assert "p is drained since " in block.because
    assert block.because.endswith(" by deployer: its node is replaced")
    assert "undrained" in block.unblocked_by


def test_a_processor_that_ends_is_draining_all_the_same_when_its_name_is_undrained() -> None:
    scene = Scene(PauseSeen(P_IS_DRAINED), *processors("p", draining=True), *jobs(make_job("a")))
    assert scene.at(1, PauseGone(drain_id("p"))).decisions == ()
    assert wall(1) < FAR
