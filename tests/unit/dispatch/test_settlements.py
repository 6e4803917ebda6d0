"""What becomes of decisions that were carried out, or could not be."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, Fire, Requeue, Settlement
from hascheduler.dispatch.settlements import classify_outcome, freeing
from hascheduler.mirror.changes import JobGone, ScheduleSeen
from tests.factories import make_fire
from tests.unit.dispatch.nouns import make_schedule, wall
from tests.unit.dispatch.scene import Scene, processors, settled

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
