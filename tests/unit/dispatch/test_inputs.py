"""Which inputs of the core can wait for others: how a dispatched job gets on, and nothing that a decision waits for."""

import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Requeue, Settlement
from hascheduler.dispatch.inputs import Input, ProcessorLost, Settled, TermBegan, TransportSeen, TrustLost, can_wait
from hascheduler.mirror.changes import DefinitionGone, DefinitionSeen, JobGone, JobSeen, ProcessorSeen, ScheduleSeen
from hascheduler.model.job import JobState
from hascheduler.schema.definition import Definition
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_processor, make_schedule, running, wall
from tests.unit.dispatch.scene import Scene, jobs, processors, settled

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


def test_an_end_can_wait_where_no_job_waits_for_one() -> None:
    scene = Scene(*processors("p"), *jobs(make_job("a", target="a"), make_job("b", target="b")))
    assert len(scene.began.decisions) == 2
    assert not scene.core.awaits_ends
    for ended in (JobGone("a", JobState.SUCCEEDED), JobGone("b")):
        assert can_wait(ended, ends_too=not scene.core.awaits_ends)
        step = scene.at(0, ended)
        assert (step.decisions, step.sends) == ((), ())


def test_the_end_of_what_a_schedule_made_can_not_wait() -> None:
    assert not can_wait(JobGone("fire:tick:1000", JobState.FAILED), ends_too=True)
    assert not can_wait(JobGone("trigger:tick:abc"), ends_too=True)


def test_the_end_of_a_dependency_is_awaited() -> None:
    scene = Scene(*processors("p"), *jobs(running("a", "p"), make_job("b", target="b", waits_for=("a",))))
    assert scene.began.decisions == ()
    assert scene.core.awaits_ends
    assert scene.at(0, JobGone("a", JobState.SUCCEEDED)).decisions == (Dispatch("b", 1, "p"),)
    scene.at(0, JobGone("b", JobState.CANCELLED))
    assert not scene.core.awaits_ends


def test_the_end_of_what_holds_a_lock_is_awaited() -> None:
    git = DefinitionSeen(Definition(name="git", conflict_group="git"))
    held, waiting = running("a", "p", definition="git"), make_job("b", definition="git")
    scene = Scene(*processors("p"), git, *jobs(held, waiting))
    assert scene.began.decisions == ()
    assert scene.core.awaits_ends
    assert scene.at(0, JobGone("a", JobState.SUCCEEDED)).decisions == (Dispatch("b", 1, "p"),)
