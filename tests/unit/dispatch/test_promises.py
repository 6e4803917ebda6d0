"""What becomes of decisions: they come back, are repeated, are lost, or are taken over."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, Fire, Requeue, Settlement
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.dispatch.settlements import classify_outcome, freeing
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job
from tests.factories import make_fire
from tests.unit.dispatch.nouns import fire, make_job, make_schedule, running, wall
from tests.unit.dispatch.scene import ECHO_MS, Scene, jobs, processors, settled

# Promises that do not come back


def test_a_promise_that_does_not_come_back_is_decided_again_with_a_majority() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("j")))
    assert first.wake_at_ms == wall(100 + ECHO_MS)
    assert scene.at(99 + ECHO_MS, *settled(first.decisions)).decisions == ()
    again = scene.at(100 + ECHO_MS)
    assert again.decisions == first.decisions
    assert again.retried
    assert scene.at(101 + ECHO_MS).decisions == ()


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


# Taking over


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


# What the document says of them


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


# Fires that are refused, as no database can hold their job


def test_its_job_is_forgotten_and_the_next_time_fires() -> None:
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


def test_the_next_time_does_not_wait_for_the_stream() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.REFUSED))
    [fire] = scene.at(2_000).decisions
    assert isinstance(fire, Fire)
    assert (fire.nominal_ms, fire.basis.cursor_ms) == (wall(2_000), wall(1_000))


def test_a_slot_that_was_promised_to_it_is_free_when_the_reading_has_told() -> None:
    scene = Scene(*processors("p", slots=1), ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    fire, dispatch = first.decisions
    assert isinstance(fire, Fire)
    assert isinstance(dispatch, Dispatch)
    step = scene.at(1_010, *settled([fire], Settlement.REFUSED), *settled([dispatch], Settlement.LOST))
    assert step.refetch == (dispatch.job_id,)
    scene.at(1_020, JobGone(dispatch.job_id))
    assert scene.core.occupied("p") == 0


def test_one_that_was_decided_again_is_over_when_it_is_refused_with_a_majority() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.UNKNOWN))
    again = scene.at(100_000)
    assert again.retried
    step = scene.at(100_010, *settled(first.decisions, Settlement.REFUSED))
    assert step.settled == first.decisions
