"""How a decision is settled by the document that it met."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, Requeue, Settlement
from hascheduler.dispatch.settlements import classify_outcome, freeing
from tests.factories import make_fire

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
