"""When the dispatcher decides, and what becomes of decisions: they come back, are repeated, lost, or taken over."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, Fire, Requeue, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import (
    Input,
    Settled,
    Step,
    TermBegan,
    TrustLost,
    can_wait,
)
from hascheduler.dispatch.settlements import classify_outcome, freeing
from hascheduler.mirror.changes import (
    JobGone,
    JobSeen,
    ProcessorSeen,
    ScheduleGone,
    ScheduleSeen,
)
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from tests.factories import make_fire
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_processor, make_schedule, running, wall
from tests.unit.dispatch.scene import DOUBT_MS, ECHO_MS, Scene, jobs, processors, settled


def test_nothing_is_decided_after_trust_is_lost() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    step = scene.at(1_000, *jobs(make_job("j")), TrustLost())
    assert step == Step()
    assert scene.at(60_000) == Step()
    assert scene.core.occupied("p") == 0


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
    assert scene.core.state.pool.occupants("p") == [first.job_id]


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


CLAIM = Dispatch("a", 1, "p")


@pytest.mark.parametrize(
    ("seen", "may"),
    [
        (JobSeen(dispatched("a", "p")), True),
        (JobSeen(running("a", "p")), True),
        (JobSeen(make_job("a")), False),
        (JobSeen(running("a", "p", cancel_requested_at_ms=wall(0))), False),
        (JobSeen(dispatched("a", "p", cancel_requested_at_ms=wall(0))), False),
        (JobGone("a", JobState.SUCCEEDED), False),
        (Settled(CLAIM, Settlement.DONE), True),
        (Settled(CLAIM, Settlement.LOST), False),
        (Settled(CLAIM, Settlement.UNKNOWN), False),
        (Settled(Requeue("a", 1, "lost"), Settlement.DONE), False),
        (Settled(fire("tick", wall(1_000)), Settlement.DONE), False),
        (ProcessorSeen(make_processor("p")), False),
        (TrustLost(), False),
    ],
)
def test_how_a_dispatched_job_gets_on_can_wait_and_nothing_else(seen: Input, may: bool) -> None:
    assert can_wait(seen) is may


@pytest.mark.parametrize("early", [Settlement.DONE, Settlement.LOST])
def test_what_becomes_of_a_decision_is_what_becomes_of_its_last_copy(early: Settlement) -> None:
    """The first one is done without a majority, and may be lost with its primary; or it came before an edit."""
    scene = Scene(ScheduleSeen(make_schedule("s", every_ms=3_600_000)))
    first = scene.at(3_600_000)
    again = scene.at(3_600_000 + ECHO_MS)
    assert [type(each) for each in first.decisions] == [Fire]
    assert again.decisions == first.decisions
    step = scene.at(3_600_100 + ECHO_MS, *settled(first.decisions, early))
    assert (step.settled, step.decisions, step.refetch) == ((), (), ())
    assert scene.at(3_600_200 + ECHO_MS, *settled(again.decisions)).settled == again.decisions


def test_a_job_that_was_taken_back_with_its_fire_keeps_its_slot_until_both_are_decided_again() -> None:
    """Both are in the journal: a successor would apply them, and give the slot beside the one that has it by then."""
    scene = Scene(*processors("p", slots=1), ScheduleSeen(make_schedule("s", every_ms=3_600_000)))
    began = scene.at(3_600_000)
    move = next(decision for decision in began.decisions if isinstance(decision, Dispatch))
    scene.at(3_600_100, *settled([decision for decision in began.decisions if decision != move]))
    step = scene.at(3_600_200, *settled([move], Settlement.LOST), *jobs(make_job("other")))
    assert (step.decisions, step.settled) == ((), ())
    assert scene.core.occupied("p") == 1
    again = scene.at(3_600_200 + ECHO_MS)
    assert (again.decisions, again.retried) == (began.decisions, True)


def test_decisions_that_were_applied_again_are_not_decided_again() -> None:
    schedule = make_schedule("s", every_ms=1_000)
    first = fire("s", wall(1_000))
    reapplied = (Dispatch("a", 1, "p"), first, Dispatch(first.job_id, 1, "p"), Requeue("b", 1, "processor lost"))
    scene = Scene(
        ScheduleSeen(schedule), *processors("p", slots=9), *jobs(make_job("a"), running("b", "p")), leading=False
    )
    step = scene.at(1_500, TermBegan(2, reapplied))
    assert step.decisions == ()
    # The job that the first inserted has not been seen yet, but its slot is spoken for.
    assert (scene.core.occupied("p"), step.refetch) == (2, (first.job_id,))
    assert scene.at(1_600, JobSeen(fired_job(schedule, wall(1_000)))).decisions == ()
    assert scene.core.occupied("p") == 2
    step = scene.at(1_700, *jobs(make_job("b", rev=4, attempt=1)))
    assert step.decisions == (Dispatch("b", 2, "p"),)
    assert step.settled == (Requeue("b", 1, "processor lost"),)


DONE, LOST, UNKNOWN = Settlement.DONE, Settlement.LOST, Settlement.UNKNOWN
RECORD = {"number": 1, "processor": "p", "outcome": "lost", "error": "died"}


def document(state: str, attempt: int, *records: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"state": state, "attempt": attempt, "processor": None, "error": None, "attempts": list(records), **fields}


@pytest.mark.parametrize(
    ("decision", "job", "settlement"),
    [
        (Dispatch("j", 1, "p"), None, LOST),
        (Dispatch("j", 1, "p"), document("dispatched", 1, processor="p"), DONE),
        (Dispatch("j", 1, "p"), document("running", 1, processor="p"), DONE),
        (Dispatch("j", 1, "p"), document("running", 1, processor="q"), LOST),
        (Dispatch("j", 1, "p"), document("succeeded", 1, {**RECORD, "outcome": "succeeded"}), DONE),
        (Dispatch("j", 1, "p"), document("dispatched", 2, RECORD, processor="q"), DONE),
        (Dispatch("j", 1, "q"), document("dispatched", 2, RECORD, processor="q"), LOST),
        (Dispatch("j", 1, "p"), document("pending", 0), UNKNOWN),
        (Dispatch("j", 2, "p"), document("pending", 1, RECORD), UNKNOWN),
        (Dispatch("j", 2, "p"), document("pending", 0), LOST),
        (Dispatch("j", 1, "p"), document("cancelled", 0), LOST),
        (Dispatch("j", 1, "p"), document("cancelled", 1, {**RECORD, "outcome": "cancelled"}), LOST),
        (Requeue("j", 1, "died"), None, LOST),
        (Requeue("j", 1, "died"), document("pending", 1, RECORD), DONE),
        (Requeue("j", 1, "died"), document("running", 2, RECORD, processor="q"), DONE),
        (Requeue("j", 1, "died"), document("failed", 2, RECORD, {**RECORD, "number": 2}, error="died"), DONE),
        (Requeue("j", 1, "died"), document("failed", 1, RECORD, error="died"), LOST),
        (Requeue("j", 1, "died"), document("pending", 1, {**RECORD, "outcome": "given_back"}), LOST),
        (Requeue("j", 1, "died"), document("running", 1, processor="p"), UNKNOWN),
        (Requeue("j", 1, "died"), document("succeeded", 1, {**RECORD, "outcome": "succeeded"}), LOST),
        (Fail("j", 1, "used up"), None, LOST),
        (Fail("j", 1, "used up"), document("failed", 1, error="used up"), DONE),
        (Fail("j", 1, "used up"), document("failed", 1, error="ValueError"), LOST),
        (Fail("j", 1, "used up"), document("failed", 2, error="used up"), LOST),
        (Fail("j", 1, "used up"), document("pending", 1, RECORD), UNKNOWN),
        (Fail("j", 1, "used up"), document("succeeded", 1), LOST),
        (Fail("j", 1, "used up"), {"state": [], "attempts": "by hand"}, LOST),
    ],
)
def test_the_document_settles_the_decision(
    decision: Dispatch | Requeue | Fail, job: dict[str, Any] | None, settlement: Settlement
) -> None:
    assert classify_outcome(decision, job) is settlement


def test_what_gives_a_slot_back_is_carried_out_first_unless_the_batch_has_something_for_its_job_before() -> None:
    back, used_up = Requeue("lost", 1, "died"), Fail("hopeless", 3, "used up")
    batch: list[Decision] = [
        Dispatch("next", 1, "p"),
        back,
        Dispatch("lost", 2, "p"),
        Requeue("lost", 2, "died"),
        Dispatch("again", 1, "p"),
        Requeue("again", 1, "died"),
        make_fire(1),
        Cancel(make_fire(1).job_id, 0, "replaced"),
        used_up,
    ]
    assert freeing(batch) == [back, used_up]


def test_the_job_of_a_refused_fire_is_forgotten_and_the_next_time_fires() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    [fire] = first.decisions
    assert isinstance(fire, Fire)
    assert scene.core.pending() == 1
    step = scene.at(1_010, *settled(first.decisions, Settlement.REFUSED))
    assert scene.core.pending() == 0
    assert step.settled == ()
    # The stream shows the cursor, and there is nothing else to wait for.
    step = scene.at(1_020, ScheduleSeen(make_schedule("s", cursor_ms=fire.nominal_ms)))
    assert step.settled == (fire,)
    assert [each.nominal_ms for each in scene.at(2_000).decisions if isinstance(each, Fire)] == [wall(2_000)]


def test_the_time_after_a_refused_one_does_not_wait_for_the_stream() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.REFUSED))
    [fire] = scene.at(2_000).decisions
    assert isinstance(fire, Fire)
    assert (fire.nominal_ms, fire.basis.cursor_ms) == (wall(2_000), wall(1_000))


def test_a_slot_that_was_promised_to_a_refused_fire_is_free_when_the_reading_has_told() -> None:
    scene = Scene(*processors("p", slots=1), ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    fire, dispatch = first.decisions
    assert isinstance(fire, Fire)
    assert isinstance(dispatch, Dispatch)
    step = scene.at(1_010, *settled([fire], Settlement.REFUSED), *settled([dispatch], Settlement.LOST))
    assert step.refetch == (dispatch.job_id,)
    scene.at(1_020, JobGone(dispatch.job_id))
    assert scene.core.occupied("p") == 0


def test_a_fire_that_was_decided_again_is_over_when_it_is_refused_with_a_majority() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.UNKNOWN))
    again = scene.at(100_000)
    assert again.retried
    step = scene.at(100_010, *settled(first.decisions, Settlement.REFUSED))
    assert step.settled == first.decisions


def test_what_follows_a_lost_time_is_lost_with_it_and_both_are_decided_again() -> None:
    """The schedule was paused when the first was applied, and resumed when the second was."""
    scene = Scene(ScheduleSeen(make_schedule("s", every_ms=1_000)))
    first, second = scene.at(1_000).decisions[0], scene.at(2_000).decisions[0]
    step = scene.at(2_100, *settled([first], Settlement.LOST))
    assert (set(step.settled), step.decisions) == ({first, second}, ())
    assert scene.at(2_100 + DOUBT_MS).decisions[:2] == (first, second)
