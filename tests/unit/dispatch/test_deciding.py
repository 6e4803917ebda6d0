"""When the dispatcher decides, and what: fires and dispatches, scene by scene."""

from dataclasses import replace

from hascheduler.dispatch.decisions import Dispatch, Fire, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import (
    Input,
    ProcessorLost,
    Resynced,
    Settled,
    Step,
    TermBegan,
    TransportSeen,
    TrustLost,
)
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleGone, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_schedule, wall
from tests.unit.dispatch.scene import DOUBT_MS, ECHO_MS, Scene, jobs, processors, settled

# Who decides


def test_nothing_is_decided_before_a_term_has_begun() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *jobs(make_job("j")), *processors("p"), leading=False)
    step = scene.at(60_000, JobSeen(dispatched("k", "gone")), ProcessorLost("p", 1))
    assert step == Step()
    assert not scene.core.leading


def test_nothing_is_decided_after_trust_is_lost() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    step = scene.at(1_000, *jobs(make_job("j")), TrustLost())
    assert step == Step()
    assert scene.at(60_000) == Step()
    assert scene.core.occupied("p") == 0


def test_nothing_is_decided_after_a_resync_until_the_next_term() -> None:
    scene = Scene(*processors("p"))
    assert scene.at(100, Resynced(), *jobs(make_job("j")), *processors("p")) == Step()
    assert scene.at(200, TermBegan(2)).decisions == (Dispatch("j", 1, "p"),)


def test_promises_are_forgotten_with_the_trust_and_decided_again_in_the_next_term() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", every_ms=1_000)), *processors("p"))
    first = scene.at(1_000, *jobs(make_job("j")))
    assert len(first.decisions) == 3
    assert scene.at(1_100, TrustLost()) == Step()
    assert scene.core.occupied("p") == 0
    second = scene.at(1_200, TermBegan(2))
    assert second.decisions == first.decisions
    assert not second.retried


def test_a_job_that_was_only_promised_goes_with_the_trust() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    assert [type(d) for d in scene.at(1_000).decisions] == [Fire]
    scene.at(1_100, TrustLost())
    assert scene.at(1_200, ScheduleGone("s"), *processors("p"), TermBegan(2)).decisions == ()


def test_a_late_settlement_of_a_lost_term_changes_nothing() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("j")))
    scene.at(200, TrustLost())
    step = scene.at(300, *settled(first.decisions, Settlement.LOST))
    assert (step.decisions, step.refetch) == ((), ())


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


def test_it_wakes_for_the_next_nominal_time() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    assert scene.began.wake_at_ms == wall(1_000)


def test_a_fire_whose_job_is_known_already_makes_no_second_one() -> None:
    """An earlier leader inserted it, and the cursor did not follow."""
    schedule = make_schedule("s", cursor_ms=wall(0))
    job = replace(fired_job(schedule, wall(1_000)), rev=7, state=JobState.RUNNING, attempt=2, processor="p")
    scene = Scene(ScheduleSeen(schedule), *processors("p"), JobSeen(job))
    assert scene.at(1_000).decisions == (fire("s", wall(1_000)),)
    step = scene.at(1_100, ScheduleSeen(replace(schedule, cursor_ms=wall(1_000))))
    assert step.settled == (fire("s", wall(1_000)),)
    assert scene.core.occupied("p") == 1


def test_a_fire_that_lost_takes_its_provisional_job_back() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    first = fire("s", wall(1_000))
    assert scene.at(1_000).decisions == (first,)
    step = scene.at(1_100, ScheduleGone("s"), Settled(first, Settlement.LOST))
    assert step.settled == (first,)
    assert scene.at(1_200, *processors("p")).decisions == ()


def test_a_fire_that_lost_after_its_job_was_promised_has_the_job_read() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    first, dispatch = scene.at(1_000).decisions
    assert isinstance(first, Fire)
    step = scene.at(1_100, ScheduleGone("s"), *settled([first, dispatch], Settlement.LOST))
    assert step.refetch == (first.job_id,)
    assert scene.at(1_150).decisions == ()
    scene.at(1_200, JobGone(first.job_id))
    assert scene.at(1_200 + 2 * ECHO_MS).decisions == ()


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


def test_the_next_attempt_counts_on_from_the_last_where_the_stream_was_read_ahead() -> None:
    scene = Scene(*jobs(make_job("j")), leading=False)
    scene.at(100, *jobs(make_job("j", rev=4, attempt=1)))
    assert scene.at(200, *processors("p"), TermBegan(2)).decisions == (Dispatch("j", 2, "p"),)


def test_a_job_waits_for_its_time() -> None:
    scene = Scene(*processors("p"))
    step = scene.at(100, *jobs(make_job("j", not_before_ms=wall(700))))
    assert (step.decisions, step.wake_at_ms) == ((), wall(700))
    assert scene.at(699).decisions == ()
    assert scene.at(700).decisions == (Dispatch("j", 1, "p"),)


def test_a_cancelled_job_frees_its_slot() -> None:
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a"), make_job("b", sequence=1)))
    step = scene.at(200, JobGone("a"))
    assert step.settled == first.decisions
    assert step.decisions == (Dispatch("b", 1, "p"),)


def test_a_decision_that_ends_before_it_is_applied_is_settled_when_it_is() -> None:
    """The account of the journal opens an entry only once it is written, perhaps after the job was cancelled."""
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a")))
    scene.at(200, JobGone("a"))
    assert scene.at(300, *settled(first.decisions, Settlement.LOST)).settled == first.decisions


# The broker


def test_while_the_broker_blocks_nothing_is_dispatched_but_fires_go_on() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"), TransportSeen(False))
    step = scene.at(1_000, *jobs(make_job("j")))
    assert step.decisions == (fire("s", wall(1_000)),)
    step = scene.at(1_500, TransportSeen(True), *jobs(make_job(fire("s", wall(1_000)).job_id)))
    assert {type(d) for d in step.decisions} == {Dispatch}
    assert len(step.decisions) == 2


# Equal minds


def test_the_same_facts_lead_to_the_same_decisions() -> None:
    facts: list[Input] = [
        ScheduleSeen(make_schedule("s")), *processors("p", "q", slots=3),
        *jobs(*(make_job(f"j{i}", priority=i % 3, sequence=i) for i in range(9))),
    ]  # fmt: skip
    steps = [[scene.began, scene.at(1_000), scene.at(2_000, JobGone("j8"))] for scene in (Scene(*facts), Scene(*facts))]
    assert steps[0] == steps[1]
