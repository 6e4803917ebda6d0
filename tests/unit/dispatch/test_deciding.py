"""When the dispatcher decides, and what: fires and dispatches, scene by scene."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Requeue, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import (
    Input,
    ProcessorLost,
    Settled,
    Step,
    TermBegan,
    TransportSeen,
    TrustLost,
    can_wait,
)
from hascheduler.mirror.changes import (
    DefinitionGone,
    JobGone,
    JobSeen,
    ProcessorSeen,
    ScheduleSeen,
)
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_processor, make_schedule, running, wall
from tests.unit.dispatch.scene import DOUBT_MS, Scene, jobs, processors, settled

# Who decides


def test_nothing_is_decided_after_trust_is_lost() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    step = scene.at(1_000, *jobs(make_job("j")), TrustLost())
    assert step == Step()
    assert scene.at(60_000) == Step()
    assert scene.core.occupied("p") == 0


# Fires and dispatches


def test_a_nominal_time_is_fired_once_and_its_job_goes_out_in_the_same_step() -> None:
    schedule = make_schedule("s")
    scene = Scene(ScheduleSeen(schedule), *processors("p"))
    step = scene.at(1_000)
    first = fire("s", wall(1_000))
    assert step.decisions == (first, Dispatch(first.job_id, 1, "p"))
    assert scene.at(1_100).decisions == ()
    job = fired_job(schedule, wall(1_000))
    step = scene.at(1_200, JobSeen(job), JobSeen(dispatched(job.id, "p")))
    assert step.settled == (Dispatch(job.id, 1, "p"),)
    step = scene.at(1_300, ScheduleSeen(replace(schedule, cursor_ms=wall(1_000))))
    assert step.settled == (first,)
    assert scene.at(1_999).decisions == ()
    assert [d for d in scene.at(2_000).decisions if isinstance(d, Fire)] == [fire("s", wall(2_000))]


def test_what_was_read_of_a_lost_fire_frees_no_slot_of_the_same_fire_decided_again() -> None:
    """An edit overtakes the fire: it is lost, its job is read, and meanwhile the same time is decided again."""
    schedule = make_schedule("s", every_ms=60_000)
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=1))
    first, dispatch = scene.at(60_000).decisions
    assert isinstance(first, Fire)
    edited = replace(schedule, rev=2, since_ms=WallMs(schedule.since_ms + 1))
    lost = scene.at(60_100, ScheduleSeen(edited), *settled([first, dispatch], Settlement.LOST))
    assert lost.refetch == (first.job_id,)
    again = (*lost.decisions, *scene.at(60_100 + DOUBT_MS).decisions)
    assert [type(decision) for decision in again] == [Fire, Dispatch]
    step = scene.at(60_200 + DOUBT_MS, JobGone(first.job_id), *jobs(make_job("j")))
    assert step.decisions == ()
    assert scene.core.occupants("p") == [first.job_id]


def test_a_step_is_bounded_and_the_rest_follows_at_once() -> None:
    seen = [make_job(f"j{i}") for i in range(5)]
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p", slots=100), fires_max=2, dispatches_max=3)
    step = scene.at(5_000, *jobs(*seen))
    assert [type(d) for d in step.decisions] == [Fire, Fire, Dispatch, Dispatch, Dispatch]
    assert step.wake_at_ms == wall(5_000)
    decided = [scene.at(5_000).decisions for _ in range(4)]
    assert [len(decisions) for decisions in decided] == [5, 2, 0, 0]


def test_a_dispatch_rides_with_the_fire_or_waits_until_the_job_is_seen() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p", slots=1))
    made = fire("s", wall(1_000))
    assert scene.at(1_000).decisions == (made, Dispatch(made.job_id, 1, "p"))
    waits = fire("s", wall(2_000))
    assert [type(each) for each in scene.at(2_000).decisions] == [Fire]
    assert scene.at(2_100, JobGone(made.job_id, JobState.SUCCEEDED)).decisions == ()
    found = scene.why(waits.job_id, 2_100)
    assert [block.rule for block in found.blocks] == [BlockReason.IN_DOUBT]
    assert scene.at(2_200, *jobs(make_job(waits.job_id))).decisions == (Dispatch(waits.job_id, 1, "p"),)


# The broker


def test_while_the_broker_blocks_nothing_is_dispatched_but_fires_go_on() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"), TransportSeen(False))
    step = scene.at(1_000, *jobs(make_job("j")))
    assert step.decisions == (fire("s", wall(1_000)),)
    step = scene.at(1_500, TransportSeen(True), *jobs(make_job(fire("s", wall(1_000)).job_id)))
    assert {type(d) for d in step.decisions} == {Dispatch}
    assert len(step.decisions) == 2


# Which inputs can wait for others


CLAIM = Dispatch("a", 1, "p")


@pytest.mark.parametrize(
    "seen", [JobSeen(dispatched("a", "p")), JobSeen(running("a", "p")), Settled(CLAIM, Settlement.DONE)]
)
def test_how_a_dispatched_job_gets_on_can_wait(seen: Input) -> None:
    assert can_wait(seen)


@pytest.mark.parametrize(
    "seen",
    [
        JobSeen(make_job("a")),
        JobSeen(running("a", "p", cancel_requested_at_ms=wall(0))),
        JobSeen(dispatched("a", "p", cancel_requested_at_ms=wall(0))),
        JobGone("a", JobState.SUCCEEDED),
        JobGone("a"),
        Settled(CLAIM, Settlement.LOST),
        Settled(CLAIM, Settlement.UNKNOWN),
        Settled(Requeue("a", 1, "lost"), Settlement.DONE),
        Settled(fire("tick", wall(1_000)), Settlement.DONE),
        ProcessorSeen(make_processor("p")),
        ProcessorLost("p", 1),
        ScheduleSeen(make_schedule("tick")),
        DefinitionGone("log"),
        TransportSeen(True),
        TermBegan(1),
        TrustLost(),
    ],
)
def test_what_a_decision_may_wait_for_can_not(seen: Input) -> None:
    assert not can_wait(seen)


def test_nothing_is_decided_because_of_what_can_wait() -> None:
    waiting = [make_job(id, target=id, submitted_at_ms=wall(at)) for at, id in enumerate("abcd")]
    scene = Scene(*processors("p"), *jobs(*waiting))
    claims: list[Decision] = list(scene.began.decisions)
    assert claims == [Dispatch("a", 1, "p"), Dispatch("b", 1, "p")]
    shown = jobs(*(state(id, "p", target=id) for state in (dispatched, running) for id in "ab"))
    for seen in [*settled(claims), *shown]:
        assert can_wait(seen)
        step = scene.at(0, seen)
        assert (step.decisions, step.sends, step.refetch) == ((), (), ())
    ended = JobGone("a", JobState.SUCCEEDED)
    assert scene.core.awaits_ends
    assert scene.at(0, ended).decisions == (Dispatch("c", 1, "p"),)
