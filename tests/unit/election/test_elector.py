"""When an elector challenges, and how it holds and loses its lease; which replica should lead which shard."""

from collections import Counter
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.election.elector import ElectionConfig, Elector, LeaseAnswer
from hascheduler.election.preferences import candidates_of, preferred_leaders
from hascheduler.errors import InvalidInput
from hascheduler.model.leadership import LeaseRecord
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


@pytest.mark.parametrize(
    ("id", "times", "fits"),
    [
        ("me", (10_000, 6_000, 1_000), True),
        ("", (10_000, 6_000, 1_000), False),
        ("me", (10_000, 10_000, 1_000), False),
        ("me", (10_000, 12_000, 1_000), False),
        ("me", (10_000, 6_000, 5_000), False),
        ("me", (10_000, 6_001, 5_000), True),
        ("me", (10_000, 6_000, 0), False),
        ("me", (10_000, 6_000, -1), False),
    ],
)
def test_a_candidate_has_an_id_and_its_times_are_checked_against_each_other(
    id: str, times: tuple[int, int, int], fits: bool
) -> None:
    with nullcontext() if fits else pytest.raises(InvalidInput):
        ElectionConfig("default", id, "", *times)


def test_what_is_not_known_yet_is_looked_for_in_a_retry_period() -> None:
    elector = Elector(config(), START)
    assert elector.wake_at_ms(at(0)) == at(RETRY_MS)
    assert elector.next_attempt(at(100_000), WALL) is None


@pytest.mark.parametrize(
    ("record", "waited_ms", "tries"),
    [
        (lease(), 0, False),
        (lease(), LEASE_MS - 1, False),
        (lease(), LEASE_MS, True),
        (lease(holder=""), 0, True),
        # The longer of the two durations: the holder may have been started with other settings.
        (lease(lease_duration_ms=20_000), 19_999, False),
        (lease(lease_duration_ms=20_000), 20_000, True),
        (lease(lease_duration_ms=1), LEASE_MS - 1, False),
        (lease(lease_duration_ms=-5), LEASE_MS, True),
        # What another's clock said is nobody's business.
        (lease(renewed_at_ms=0), LEASE_MS - 1, False),
        (lease(renewed_at_ms=WALL + 10**9), LEASE_MS, True),
        # One's own name in a lease one does not trust: nobody else renews it.
        (lease(holder="me"), 0, True),
    ],
)
def test_a_lease_is_challenged_when_it_is_free(record: LeaseRecord, waited_ms: int, tries: bool) -> None:
    elector = candidate(record)
    assert (elector.next_attempt(at(waited_ms), WALL) is not None) is tries


def test_a_lease_that_was_set_back_by_hand_is_read_anew_and_challenged() -> None:
    elector = candidate(lease(term=50, renewals=900))
    restored = lease(term=40, renewals=3)
    elector.observe(restored, at(0))
    attempt = attempt_of(elector, LEASE_MS)
    elector.observe(restored, at(LEASE_MS + 5))  # the read after the lost write: older than what is known
    elector.concluded(attempt, LeaseAnswer.LOST, at(LEASE_MS), at(LEASE_MS + 10))
    assert not elector.observed
    elector.observe(restored, at(LEASE_MS + 20))
    again = attempt_of(elector, 2 * LEASE_MS + 20)
    assert again.expected == restored
    assert again.proposed.term == 51


def test_the_lease_of_a_dead_holder_need_not_be_waited_for() -> None:
    elector = candidate(lease("other"))
    assert elector.next_attempt(at(10), WALL) is None
    elector.holder_died("other", at(0))
    assert elector.wake_at_ms(at(10)) <= at(10)
    assert attempt_of(elector, 10).proposed.term == 6


def test_a_candidate_that_is_not_preferred_lets_others_be_first_with_a_free_lease() -> None:
    for record in (None, lease("")):
        elector = candidate(record)
        elector.challenge_delay_ms = 100
        assert elector.next_attempt(at(99), WALL) is None
        assert elector.wake_at_ms(at(0)) == at(100)
        assert attempt_of(elector, 100).expected == record


def test_a_suspected_leader_is_challenged_by_it_before_the_suspicion_ends() -> None:
    elector = candidate(lease("other"))
    elector.challenge_delay_ms = 100
    elector.holder_stalled("other", at(2_000))
    assert elector.next_attempt(at(2_099), WALL) is None
    assert attempt_of(elector, 2_100).proposed.term == 6


def test_a_leader_renews_without_delay() -> None:
    elector = leader()
    assert elector.wake_at_ms(at(5)) == at(RETRY_MS)
    elector.challenge_delay_ms = 5_000
    assert attempt_of(elector, RETRY_MS).proposed.renewals == 1


def test_trust_counts_from_the_start_of_the_write() -> None:
    elector = candidate(None)
    attempt = attempt_of(elector, 0)
    elector.concluded(attempt, LeaseAnswer.WON, at(0), at(4_000))
    assert elector.term == 1
    assert elector.leads(at(DEADLINE_MS - 1))
    assert not elector.leads(at(DEADLINE_MS))


@pytest.mark.parametrize("answer", [LeaseAnswer.UNKNOWN, LeaseAnswer.LOST])
def test_without_a_won_renewal_trust_stands_to_its_deadline_and_no_longer(answer: LeaseAnswer) -> None:
    elector = leader()
    for now in range(RETRY_MS, DEADLINE_MS, RETRY_MS):
        elector.concluded(attempt_of(elector, now), answer, at(now), at(now + 20))
        assert elector.leads(at(now + 20))
    assert not elector.leads(at(DEADLINE_MS))
    assert elector.next_attempt(at(DEADLINE_MS), WALL) is None


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


NAMES = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=8)
SHARDS = st.integers(1, 24).map(lambda count: [f"{index:04d}" for index in range(count)])


@given(SHARDS, NAMES)
def test_leaders_are_spread_evenly_and_each_replica_is_somewhere_in_each_order(
    shards: list[str], replicas: set[str]
) -> None:
    assert preferred_leaders(shards, ()) == dict.fromkeys(shards, ())
    orders = preferred_leaders(shards, replicas)
    assert list(orders) == shards
    assert all(sorted(order) == sorted(replicas) for order in orders.values())
    led = Counter(order[0] for order in orders.values())
    assert max(led.values()) - min(led.get(replica, 0) for replica in replicas) <= 1


@given(SHARDS, NAMES, st.integers(2, 5))
def test_each_shard_is_led_by_its_candidates_or_all_that_live_and_all_are_candidates_of_the_home(
    shards: list[str], replicas: set[str], most: int
) -> None:
    candidates = candidates_of(shards, replicas, most)
    assert set(candidates[shards[0]]) == replicas
    for shard in shards[1:]:
        assert len(set(candidates[shard])) == len(candidates[shard]) == min(most, len(replicas))
    assert all(set(order) == replicas for order in candidates_of(shards, replicas, 0).values())
    orders = preferred_leaders(shards, replicas, most)
    assert {shard: set(order) for shard, order in orders.items()} == {
        shard: set(order) for shard, order in candidates.items()
    }


@given(SHARDS, NAMES, st.integers(2, 5), st.data())
def test_lists_that_differ_leave_no_shard_without_one_that_takes_itself_for_a_candidate(
    shards: list[str], replicas: set[str], most: int, data: st.DataObject
) -> None:
    """Whatever else a replica sees, it sees itself: the first of all for a shard is among the first of any list."""
    taken: Counter[str] = Counter()
    for name in replicas:
        seen = data.draw(st.sets(st.sampled_from(sorted(replicas)))) | {name}
        candidates = candidates_of(shards, seen, most)
        taken.update(shard for shard in shards if name in candidates[shard])
    assert all(taken[shard] >= min(most, len(replicas)) for shard in shards)


def test_a_record_older_than_the_known_one_is_ignored() -> None:
    newest = lease(term=6, renewals=9)
    elector = candidate(newest)
    for older in (
        lease(term=6, renewals=8),
        lease("third", term=5, renewals=100),
        lease(holder="", term=6, renewals=1),
    ):
        elector.observe(older, at(5_000))
    assert elector.record == newest
    assert elector.next_attempt(at(5_000), WALL) is None
    assert elector.next_attempt(at(LEASE_MS), WALL) is not None


def test_the_one_who_was_faster_is_left_alone_for_a_whole_lease() -> None:
    elector = candidate(lease())
    attempt = attempt_of(elector, LEASE_MS)
    elector.observe(lease("third", term=6, renewals=1), at(LEASE_MS + 5))
    elector.concluded(attempt, LeaseAnswer.LOST, at(LEASE_MS), at(LEASE_MS + 10))
    assert not elector.leads(at(LEASE_MS + 10))
    assert elector.next_attempt(at(2 * LEASE_MS + 4), WALL) is None
    assert attempt_of(elector, 2 * LEASE_MS + 5).proposed.term == 7


def test_the_term_exceeds_whatever_the_journal_has_shown() -> None:
    elector = candidate(lease(term=5))
    elector.observe_term(40)
    assert attempt_of(elector, LEASE_MS).proposed.term == 41


def test_a_deleted_lease_is_free_at_once_and_never_lowers_the_term() -> None:
    elector = candidate(lease(term=12))
    elector.observe(None, at(100))
    attempt = attempt_of(elector, 100)
    assert attempt.expected is None
    assert attempt.proposed.term == 13


def test_another_holder_is_not_dead_because_one_was() -> None:
    elector = candidate(lease("other"))
    elector.holder_died("other", at(0))
    elector.observe(lease("third", term=6), at(10))
    assert elector.next_attempt(at(10), WALL) is None
    assert elector.next_attempt(at(10 + LEASE_MS - 1), WALL) is None


def test_a_win_that_comes_after_the_deadline_is_worth_nothing() -> None:
    elector = candidate(None)
    attempt = attempt_of(elector, 0)
    elector.concluded(attempt, LeaseAnswer.WON, at(0), at(DEADLINE_MS + 1))
    assert not elector.leads(at(DEADLINE_MS + 1))


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
