"""How an elector holds its lease, loses it, and gives it up."""

import pytest

from hascheduler.election.elector import Elector, LeaseAnswer
from tests.unit.election.candidates import (
    DEADLINE_MS,
    LEASE_MS,
    RETRY_MS,
    START,
    WALL,
    at,
    attempt_of,
    candidate,
    config,
    leader,
    lease,
)

# Leading


def test_trust_counts_from_the_start_of_the_write() -> None:
    elector = candidate(None)
    attempt = attempt_of(elector, 0)
    elector.concluded(attempt, LeaseAnswer.WON, at(0), at(4_000))
    assert elector.term == 1
    assert elector.leads(at(DEADLINE_MS - 1))
    assert not elector.leads(at(DEADLINE_MS))


def test_a_win_that_comes_after_the_deadline_is_worth_nothing() -> None:
    elector = candidate(None)
    attempt = attempt_of(elector, 0)
    elector.concluded(attempt, LeaseAnswer.WON, at(0), at(DEADLINE_MS + 1))
    assert not elector.leads(at(DEADLINE_MS + 1))


def test_a_leader_renews_once_a_retry_period() -> None:
    elector = leader()
    for turn in range(1, 20):
        now = turn * RETRY_MS
        assert elector.next_attempt(at(now - 1), WALL) is None
        attempt = attempt_of(elector, now)
        assert attempt.expected == elector.record
        assert attempt.proposed.renewals == attempt.expected.renewals + 1  # type: ignore[union-attr]
        assert attempt.proposed.term == 1
        assert attempt.proposed.acquired_at_ms == elector.record.acquired_at_ms  # type: ignore[union-attr]
        elector.concluded(attempt, LeaseAnswer.WON, at(now), at(now + 20))
        assert elector.leads(at(now + DEADLINE_MS - 1))
        assert not elector.leads(at(now + DEADLINE_MS))


@pytest.mark.parametrize("answer", [LeaseAnswer.UNKNOWN, LeaseAnswer.LOST])
def test_without_a_won_renewal_trust_stands_to_its_deadline_and_no_longer(answer: LeaseAnswer) -> None:
    elector = leader()
    for now in range(RETRY_MS, DEADLINE_MS, RETRY_MS):
        elector.concluded(attempt_of(elector, now), answer, at(now), at(now + 20))
        assert elector.leads(at(now + 20))
    assert not elector.leads(at(DEADLINE_MS))
    assert elector.next_attempt(at(DEADLINE_MS), WALL) is None


def test_a_leader_whose_trust_has_lapsed_takes_its_own_lease_in_a_new_term() -> None:
    elector = leader()
    assert elector.next_attempt(at(DEADLINE_MS), WALL) is None
    attempt = attempt_of(elector, DEADLINE_MS + RETRY_MS)
    assert attempt.expected == elector.record
    assert attempt.proposed.term == 2


def test_a_renewal_whose_answer_never_came_is_recognised_in_the_stream() -> None:
    elector = leader()
    renewal = attempt_of(elector, RETRY_MS)
    elector.concluded(renewal, LeaseAnswer.UNKNOWN, at(RETRY_MS), at(RETRY_MS + 500))
    elector.observe(renewal.proposed, at(RETRY_MS + 600))
    assert elector.leads(at(RETRY_MS + 600))
    assert not elector.leads(at(DEADLINE_MS))
    assert attempt_of(elector, 2 * RETRY_MS).expected == renewal.proposed


def test_a_take_over_whose_answer_never_came_is_not_believed_but_tried_again() -> None:
    elector = candidate(lease(term=5))
    taken = attempt_of(elector, LEASE_MS)
    elector.concluded(taken, LeaseAnswer.UNKNOWN, at(LEASE_MS), at(LEASE_MS + 500))
    elector.observe(taken.proposed, at(LEASE_MS + 600))
    assert not elector.leads(at(LEASE_MS + 600))
    again = attempt_of(elector, LEASE_MS + RETRY_MS)
    assert again.expected == taken.proposed
    assert again.proposed.term == 7


def test_ones_own_older_records_in_the_stream_change_nothing() -> None:
    elector = leader()
    first = elector.record
    renewal = attempt_of(elector, RETRY_MS)
    elector.concluded(renewal, LeaseAnswer.WON, at(RETRY_MS), at(RETRY_MS + 20))
    elector.observe(first, at(RETRY_MS + 30))
    assert elector.leads(at(RETRY_MS + 30))
    assert elector.record == renewal.proposed


def test_seeing_another_holder_ends_the_leadership() -> None:
    elector = leader()
    elector.observe(lease("other", term=2, renewals=1), at(500))
    assert not elector.leads(at(500))
    assert elector.next_attempt(at(500 + LEASE_MS - 1), WALL) is None


def test_a_win_that_another_has_overtaken_is_not_believed() -> None:
    elector = candidate(None)
    attempt = attempt_of(elector, 0)
    elector.observe(lease("other", term=2, renewals=1), at(10))
    elector.concluded(attempt, LeaseAnswer.WON, at(0), at(20))
    assert not elector.leads(at(20))


def test_a_leader_that_met_another_in_the_journal_stops_and_takes_a_higher_term() -> None:
    elector = leader()
    elector.observe_term(9)
    elector.step_down()
    assert not elector.leads(at(100))
    assert attempt_of(elector, RETRY_MS).proposed.term == 10


# Giving up


def test_only_the_holder_has_something_to_release() -> None:
    for elector in (Elector(config(), START), candidate(None), candidate(lease())):
        assert elector.release(at(0), WALL) is None


def test_a_released_lease_is_taken_by_others_at_once_while_the_releaser_rests() -> None:
    elector = leader()
    released = elector.release(at(500), WALL)
    assert released is not None
    assert not elector.leads(at(500))
    assert (released.proposed.holder, released.proposed.endpoint, released.proposed.term) == ("", "", 1)
    assert released.proposed.renewals == released.expected.renewals + 1  # type: ignore[union-attr]
    standby = Elector(config("standby"), START)
    standby.observe(released.expected, at(400))
    assert standby.next_attempt(at(500), WALL) is None
    for one in (elector, standby):
        one.observe(released.proposed, at(510))
    assert attempt_of(standby, 510).proposed.term == 2
    assert elector.next_attempt(at(500 + 2 * RETRY_MS - 1), WALL) is None
    assert attempt_of(elector, 500 + 2 * RETRY_MS).proposed.term == 2
