"""What was promised, and when it counts as come back."""

import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, JobMove, Requeue, Settlement
from hascheduler.dispatch.ledger import Ledger
from hascheduler.model.job import JobRef, JobState
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_schedule, running, wall

FIRE = fire("s", wall(1_000))
DISPATCH = Dispatch("j", 1, "p")


def ledger_of(*decisions: Decision, at: int = 0) -> Ledger:
    ledger = Ledger()
    for decision in decisions:
        ledger.promise(decision, wall(at))
    return ledger


def test_a_fire_is_settled_only_when_its_job_and_the_cursor_were_seen() -> None:
    for job_first in (True, False):
        ledger = ledger_of(FIRE)
        tells = [
            lambda ledger=ledger: ledger.job_seen(make_job(FIRE.job_id)),
            lambda ledger=ledger: ledger.schedule_seen(make_schedule("s", cursor_ms=wall(1_000))),
        ]
        first, second = tells if job_first else reversed(tells)
        first()
        assert ledger.take_settled() == ()
        second()
        assert ledger.take_settled() == (FIRE,)
        assert len(ledger) == 0


def test_a_later_cursor_covers_earlier_fires_and_an_earlier_one_does_not() -> None:
    later = fire("s", wall(2_000))
    ledger = ledger_of(FIRE, later)
    ledger.job_seen(make_job(FIRE.job_id))
    ledger.job_seen(make_job(later.job_id))
    ledger.schedule_seen(make_schedule("s", cursor_ms=wall(999)))
    ledger.schedule_seen(make_schedule("other", cursor_ms=wall(9_999)))
    assert ledger.take_settled() == ()
    ledger.schedule_seen(make_schedule("s", cursor_ms=wall(1_000)))
    assert ledger.take_settled() == (FIRE,)
    ledger.schedule_seen(make_schedule("s", cursor_ms=wall(5_000)))
    assert ledger.take_settled() == (later,)


def test_a_fire_is_not_settled_by_a_job_that_is_not_there() -> None:
    """A read may come before the insert; only the job itself, or a repeat with a majority, ends the promise."""
    ledger = ledger_of(FIRE)
    ledger.schedule_seen(make_schedule("s", cursor_ms=wall(1_000)))
    ledger.job_gone(FIRE.job_id)
    assert ledger.take_settled() == ()
    assert ledger.unseen_fires() == [FIRE.job_id]


def test_the_end_of_the_schedule_stands_for_its_cursor() -> None:
    ledger = ledger_of(FIRE)
    ledger.schedule_gone("s")
    assert ledger.take_settled() == ()
    ledger.job_seen(make_job(FIRE.job_id))
    assert ledger.take_settled() == (FIRE,)


def test_a_move_is_lost_only_where_its_job_was_seen() -> None:
    move = Dispatch(FIRE.job_id, 1, "p")
    ledger = ledger_of(FIRE, move)
    assert not ledger.settle(move, Settlement.LOST)
    assert ledger.move(FIRE.job_id) == move
    ledger.job_seen(make_job(FIRE.job_id))
    assert ledger.settle(move, Settlement.LOST)
    assert ledger.move(FIRE.job_id) is None


def test_a_job_exists_only_as_a_promise_until_it_is_seen() -> None:
    ledger = ledger_of(FIRE)
    assert ledger.unseen_fires() == [FIRE.job_id]
    ledger.job_seen(make_job(FIRE.job_id))
    assert ledger.unseen_fires() == []
    assert not ledger.is_unseen_fire("stranger")


@pytest.mark.parametrize(
    ("move", "job", "shown"),
    [
        (DISPATCH, make_job("j"), False),
        (DISPATCH, dispatched("j", "p"), True),
        (DISPATCH, running("j", "p"), True),
        (DISPATCH, dispatched("j", "another"), True),
        (DISPATCH, make_job("j", attempt=1), True),
        (DISPATCH, dispatched("j", "p", attempt=2), True),
        (Requeue("j", 1, "lost"), running("j", "p"), False),
        (Requeue("j", 1, "lost"), make_job("j", attempt=1), True),
        (Requeue("j", 1, "lost"), make_job("j", attempt=0), False),
        (Requeue("j", 1, "lost"), dispatched("j", "p", attempt=2), True),
        (Fail("j", 2, "used up"), running("j", "p", attempt=2), False),
        (Fail("j", 2, "used up"), make_job("j", attempt=2), False),
        (Fail("j", 2, "used up"), dispatched("j", "p", attempt=3), True),
        (Fail("j", 2, "used up"), make_job("j", attempt=2, state=JobState.FAILED), True),
    ],
)
def test_a_move_is_settled_when_the_job_shows_it_or_is_past_it(move: JobMove, job: JobRef, shown: bool) -> None:
    ledger = ledger_of(move)
    ledger.job_seen(job)
    assert ledger.take_settled() == ((move,) if shown else ())
    assert ledger.move("j") == (None if shown else move)


@pytest.mark.parametrize("move", [DISPATCH, Requeue("j", 1, "lost"), Fail("j", 1, "used up")])
def test_a_job_that_is_gone_settles_whatever_was_promised(move: JobMove) -> None:
    ledger = ledger_of(move)
    ledger.job_gone("j")
    assert ledger.take_settled() == (move,)


@pytest.mark.parametrize("decision", [FIRE, DISPATCH])
@pytest.mark.parametrize(
    ("settlement", "retried", "ends"),
    [
        (Settlement.DONE, False, False),
        (Settlement.UNKNOWN, False, False),
        (Settlement.LOST, False, True),
        (Settlement.UNKNOWN, True, False),
        (Settlement.LOST, True, True),
    ],
)
def test_what_an_application_says_about_the_promise(
    decision: Decision, settlement: Settlement, retried: bool, ends: bool
) -> None:
    ledger = ledger_of(decision)
    if retried:
        assert ledger.take_overdue(wall(0), wall(5_000), 10) == [decision]
    assert ledger.settle(decision, settlement) is ends
    assert ledger.take_settled() == ((decision,) if ends else ())


def test_a_durable_answer_to_a_repeated_decision_ends_a_fire_but_a_move_waits_for_its_job() -> None:
    """The fired job may have ended and never be shown; a job that was moved is read, and keeps its slot until then."""
    ledger = ledger_of(FIRE, DISPATCH)
    ledger.take_overdue(wall(0), wall(5_000), 10)
    assert ledger.settle(FIRE, Settlement.DONE)
    assert not ledger.settle(DISPATCH, Settlement.DONE)
    assert ledger.is_retried(DISPATCH)
    assert ledger.move("j") == DISPATCH
    ledger.job_gone("j")
    assert ledger.take_settled() == (FIRE, DISPATCH)
    assert not ledger.is_retried(DISPATCH)


@pytest.mark.parametrize("settlement", Settlement)
def test_a_decision_that_was_seen_before_it_was_applied_is_settled_again(settlement: Settlement) -> None:
    """Its entry may have been journaled after the promise had ended, and must not stay open for ever."""
    ledger = ledger_of(DISPATCH)
    ledger.job_gone("j")
    assert ledger.take_settled() == (DISPATCH,)
    assert ledger.settle(DISPATCH, settlement) is False
    assert ledger.take_settled() == (DISPATCH,)


def test_the_overdue_are_handed_out_oldest_first_and_again_after_as_long() -> None:
    ledger = ledger_of(FIRE, at=0)
    ledger.promise(DISPATCH, wall(100))
    assert ledger.oldest_at() == wall(0)
    assert ledger.take_overdue(wall(-1), wall(4_999), 10) == []
    assert ledger.take_overdue(wall(100), wall(5_100), 1) == [FIRE]
    assert ledger.oldest_at() == wall(100)
    assert ledger.take_overdue(wall(100), wall(5_100), 1) == [DISPATCH]
    assert ledger.take_overdue(wall(100), wall(5_100), 1) == []
    assert ledger.take_overdue(wall(5_100), wall(10_100), 10) == [FIRE, DISPATCH]


def test_what_is_cleared_is_neither_promised_nor_settled() -> None:
    ledger = ledger_of(FIRE, DISPATCH)
    ledger.job_gone("j")
    ledger.clear()
    assert (len(ledger), ledger.take_settled(), ledger.moves(), ledger.unseen_fires()) == (0, (), [], [])
    assert ledger.oldest_at() is None
