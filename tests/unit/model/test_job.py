"""The table of a job's life, the back-off between its attempts, and the end of retries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, TRANSITIONS, JobState, Move, fire_job_id, may_follow
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import JITTER_THOUSANDTHS, RetryPolicy


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


POLICY = RetryPolicy(attempts_max=6, backoff_ms=2_000, backoff_factor=2_000, backoff_max_ms=10_000)


def test_the_pause_doubles_up_to_its_maximum_and_is_shortened_by_a_fifth_at_most() -> None:
    for failures, most_ms in enumerate([2_000, 4_000, 8_000, 10_000, 10_000], start=1):
        assert most_ms * (1_000 - JITTER_THOUSANDTHS) // 1_000 <= POLICY.pause_ms("job:1", failures) <= most_ms


def test_the_jitter_is_the_same_in_every_process_and_differs_between_jobs() -> None:
    pauses = [POLICY.pause_ms(f"job:{n}", 1) for n in range(100)]
    assert pauses == [POLICY.pause_ms(f"job:{n}", 1) for n in range(100)]
    assert len(set(pauses)) > 50
    assert max(pauses) - min(pauses) > 300


@given(st.integers(0, 10**7), st.integers(0, 10_000), st.integers(0, 10**7), st.integers(1, 10**6), st.text())
def test_no_policy_makes_the_pause_longer_than_its_maximum_or_slow_to_compute(
    backoff_ms: int, factor: int, max_ms: int, failures: int, job_id: str
) -> None:
    assert (
        0
        <= RetryPolicy(
            attempts_max=10**7, backoff_ms=backoff_ms, backoff_factor=factor, backoff_max_ms=max_ms
        ).pause_ms(job_id, failures)
        <= max_ms
    )


def test_retries_end_with_the_tries_or_with_the_time() -> None:
    assert POLICY.retry_at_ms("j", 6, 0, None) is None
    at_ms = POLICY.retry_at_ms("j", 5, 1_000, None)
    assert at_ms == 1_000 + POLICY.pause_ms("j", 5)
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms) is None
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms + 1) == at_ms
    assert POLICY.retry_at_ms("j", 1, 1_000, None, pause_ms=7) == 1_007


def test_the_total_timeout_counts_from_the_first_start() -> None:
    assert Definition(name="d").end_of(5) is None
    assert Definition(name="d", total_timeout_ms=10).end_of(None) is None
    assert Definition(name="d", total_timeout_ms=10).end_of(5) == 15
