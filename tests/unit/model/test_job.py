"""The table of a job's life."""

import pytest

from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, TRANSITIONS, JobState, Move, fire_job_id, may_follow


def test_every_move_has_one_row() -> None:
    assert set(TRANSITIONS) == set(Move)
    assert all(row.move is move and row.sources and row.targets for move, row in TRANSITIONS.items())


def test_a_state_is_live_or_terminal() -> None:
    assert set(JobState) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert OCCUPYING < LIVE


def test_nothing_follows_a_terminal_state_but_a_new_life_of_a_job_that_did_not_succeed() -> None:
    again = [row for row in TRANSITIONS.values() if row.sources & TERMINAL]
    assert [(row.move, row.sources, row.targets, row.who) for row in again] == [
        (Move.REVIVE, frozenset({JobState.FAILED, JobState.CANCELLED}), frozenset({JobState.PENDING}), "API")
    ]


def test_every_live_state_leads_to_an_end_and_every_state_is_reached() -> None:
    for before in LIVE:
        assert any(may_follow(before, after) for after in TERMINAL)
    reached = {JobState.PENDING}.union(*(row.targets for row in TRANSITIONS.values()))
    assert reached == set(JobState)


def test_a_slot_is_taken_only_by_a_claim_and_kept_only_by_a_start() -> None:
    for move, row in TRANSITIONS.items():
        if row.targets & OCCUPYING:
            assert move in {Move.CLAIM, Move.START}
    assert TRANSITIONS[Move.CLAIM].sources == {JobState.PENDING}
    assert TRANSITIONS[Move.START].sources == {JobState.DISPATCHED}


@pytest.mark.parametrize("move", [Move.START, Move.FINISH, Move.GIVE_BACK, Move.STOP, Move.REQUEUE, Move.RECALL])
def test_only_an_attempt_that_holds_a_slot_is_worked_on(move: Move) -> None:
    assert TRANSITIONS[move].sources <= OCCUPYING


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        ("pending", "dispatched", True),
        ("pending", "running", False),
        ("pending", "succeeded", False),
        ("pending", "cancelled", True),
        ("pending", "failed", True),
        ("dispatched", "pending", True),
        ("dispatched", "succeeded", False),
        ("running", "pending", True),
        ("running", "dispatched", False),
        ("running", "cancelled", True),
        ("succeeded", "pending", False),
        ("cancelled", "running", False),
    ],
)
def test_which_state_may_follow_which(before: str, after: str, may: bool) -> None:
    assert may_follow(JobState(before), JobState(after)) is may


def test_a_fire_has_one_id() -> None:
    assert fire_job_id("tick", 1_700_000_000_000) == "fire:tick:1700000000000"
