"""When a leader counts as standing still, and what wrong suspicions cost. Spans are milliseconds of one clock."""

from dataclasses import dataclass, field, replace

import pytest

from hascheduler.election.elector import LeaseAnswer
from hascheduler.election.suspicion import UNANSWERED_MIN, Comeback, LeaderSuspicion
from hascheduler.model.leadership import LeaseRecord
from tests.unit.election.candidates import LEASE_MS, RETRY_MS, WALL, at, attempt_of, candidate, lease

AFTER_MS = 2_000
REST_MS = 600_000


@dataclass
class Standby:
    """A suspicion, the lease as it stands, and a world that beats once in a retry period."""

    after_ms: int = AFTER_MS
    id: str = "me"
    now: int = 0
    lease: LeaseRecord = field(default_factory=lease)
    silent: set[str] = field(default_factory=set)
    deaf: bool = False
    replicas: tuple[str, ...] = ("other", "third")
    comebacks: list[Comeback] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.suspicion = LeaderSuspicion(self.id, self.after_ms, RETRY_MS)
        self.sees(self.lease)
        self.suspicion.stream_seen(at(self.now), at(self.now))
        self.suspicion.greeted()

    def sees(self, record: LeaseRecord | None) -> None:
        if record is not None:
            self.lease = record
        self.suspicion.lease_seen(record, at(self.now))

    def beat_of(self, replica: str) -> None:
        comeback = self.suspicion.sign_seen(replica, at(self.now))
        if comeback is not None:
            self.comebacks.append(comeback)

    def lives(self, for_ms: int, every_ms: int = RETRY_MS) -> "Standby":
        """That time passes. All beat that are not silent, the leader renews; a beat of its own comes back at once."""
        end = self.now + for_ms
        while self.now < end:
            self.now += min(every_ms, end - self.now)
            for replica in self.replicas:
                if replica not in self.silent:
                    self.beat_of(replica)
                    if replica == self.lease.holder:
                        self.sees(replace(self.lease, renewals=self.lease.renewals + 1))
            if not self.deaf:
                self.suspicion.stream_seen(at(self.now), at(self.now))
        return self

    def stops(self, replica: str = "other") -> "Standby":
        self.silent.add(replica)
        for _ in range(UNANSWERED_MIN):
            self.suspicion.unanswered()
        return self

    def goes_on(self, replica: str = "other") -> None:
        self.silent.discard(replica)
        self.beat_of(replica)

    def followed_by(self, successor: str) -> None:
        self.sees(lease(successor, self.lease.term + 1, self.lease.renewals + 1))
        self.suspicion.greeted()

    def suspects(self) -> bool:
        return self.suspicion.is_stalled(at(self.now))

    def resting_ms(self) -> int:
        return self.suspicion.resting_ms(at(self.now))


def on_time() -> Standby:
    return Standby().lives(10 * RETRY_MS)


def test_a_leader_that_stood_still_is_suspected_after_the_threshold_and_not_before() -> None:
    standby = on_time().stops()
    assert not standby.lives(AFTER_MS - 1, 100).suspects()
    assert standby.lives(1).suspects()


@pytest.mark.parametrize(
    "record",
    [lease(holder=""), lease(holder="me"), lease(endpoint="")],  # type: ignore[arg-type]
)
def test_a_lease_without_another_process_behind_it_is_suspected_by_none(record: LeaseRecord) -> None:
    standby = on_time()
    standby.sees(record)
    assert not standby.stops().lives(LEASE_MS, 100).suspects()


def test_a_process_that_answers_does_not_stand_still() -> None:
    standby = on_time().stops()
    standby.lives(AFTER_MS, 100).suspicion.greeted()
    assert not standby.suspects()
    standby.suspicion.unanswered()
    assert not standby.suspects(), "one unanswered connection proves nothing"
    standby.suspicion.unanswered()
    assert standby.suspects()


def test_a_replica_whose_own_beats_do_not_come_back_suspects_none() -> None:
    standby = on_time().stops()
    standby.deaf = True
    assert not standby.lives(LEASE_MS, 100).suspects()


def test_a_leader_that_is_usually_late_is_waited_for_longer_and_forgiven_after_ten_minutes() -> None:
    standby = on_time()
    standby.silent.add("other")
    standby.lives(1_800, 100)
    standby.goes_on()
    assert standby.suspicion.threshold_ms(at(standby.now)) == 1_800 * 7 // 4
    assert not standby.stops().lives(1_800 * 7 // 4 - 1, 50).suspects()
    assert standby.lives(1).suspects()
    standby.goes_on()
    standby.lives(601_000)
    assert standby.suspicion.threshold_ms(at(standby.now)) == AFTER_MS


def followed(standby: Standby, leader: str, successor: str, *, back_after_ms: int) -> None:
    """``leader`` stands still, ``successor`` takes its lease early, and it goes on so much later."""
    standby.stops(leader).lives(AFTER_MS, 100)
    assert standby.suspects() or standby.resting_ms()
    standby.followed_by(successor)
    standby.lives(back_after_ms, 50)
    standby.goes_on(leader)


def late_once(standby: Standby, replica: str) -> None:
    standby.silent.add(replica)
    standby.lives(1_600, 100)
    standby.goes_on(replica)


def test_one_that_is_soon_back_in_a_cluster_that_was_late_was_followed_needlessly_and_none_is_for_ten_minutes() -> None:
    standby = on_time()
    late_once(standby, "third")
    followed(standby, "other", "third", back_after_ms=100)
    assert (standby.comebacks, standby.resting_ms()) == ([Comeback.WRONG], REST_MS)
    standby.stops("third").lives(LEASE_MS, 100)
    assert not standby.suspects()


def test_the_rest_doubles_with_each_wrong_suspicion_up_to_sixteen_times() -> None:
    standby = on_time()
    rests = []
    for _ in range(6):
        late_once(standby, "third")
        leader, successor = standby.lease.holder, {"other": "third", "third": "other"}[standby.lease.holder]
        standby.lives(3 * RETRY_MS)
        standby.now += standby.resting_ms()
        standby.suspicion.stream_seen(at(standby.now), at(standby.now))
        standby.lives(5 * RETRY_MS)
        late_once(standby, "third")
        standby.lives(2 * RETRY_MS)
        standby.stops(leader).lives(5_000, 100)
        standby.followed_by(successor)
        standby.lives(100, 50)
        standby.goes_on(leader)
        rests.append(standby.resting_ms() // REST_MS)
    assert rests == [1, 2, 4, 8, 16, 16]


def test_one_that_stood_still_alone_costs_nothing_thrice_in_ten_minutes() -> None:
    standby = on_time()
    for leader, successor in (("other", "third"), ("third", "other"), ("other", "third")):
        followed(standby, leader, successor, back_after_ms=100)
        standby.lives(5 * RETRY_MS)
    assert (standby.comebacks, standby.resting_ms()) == (3 * [Comeback.RIGHT], 0)
    followed(standby, "third", "other", back_after_ms=100)
    assert (standby.comebacks[3:], standby.resting_ms()) == ([Comeback.WRONG], REST_MS)


def test_one_that_is_late_again_within_a_minute_was_short_of_cpu_all_the_time() -> None:
    standby = on_time()
    followed(standby, "other", "third", back_after_ms=100)
    standby.lives(30_000)
    late_once(standby, "other")
    assert standby.comebacks == [Comeback.RIGHT, Comeback.WRONG]
    assert standby.resting_ms() == REST_MS


def test_a_leader_that_was_followed_spares_its_successor_for_a_minute_and_no_other() -> None:
    standby = Standby(lease=lease("me"))
    standby.lives(10 * RETRY_MS)
    standby.followed_by("third")
    standby.lives(10 * RETRY_MS)
    assert not standby.stops("third").lives(AFTER_MS, 100).suspects()
    standby.goes_on("third")
    standby.lives(50_000)
    assert standby.stops("third").lives(2 * AFTER_MS, 100).suspects()

    standby = Standby(lease=lease("me"))
    standby.followed_by("third")
    standby.followed_by("other")
    standby.lives(10 * RETRY_MS)
    assert standby.stops("other").lives(AFTER_MS, 100).suspects()


def test_a_suspected_holder_is_challenged_at_once_and_only_in_the_version_that_was_seen() -> None:
    held = lease(term=5, renewals=7)
    elector = candidate(held)
    assert elector.next_attempt(at(3_000), WALL) is None
    elector.holder_stalled("other", at(3_000))
    assert elector.wake_at_ms(at(3_000)) <= at(3_000)
    attempt = attempt_of(elector, 3_000)
    assert (attempt.expected, attempt.proposed.term) == (held, 6)
    elector.concluded(attempt, LeaseAnswer.LOST, at(3_000), at(3_005))
    elector.observe(lease(term=5, renewals=8), at(3_010))
    assert elector.next_attempt(at(3_010 + RETRY_MS), WALL) is None


def test_a_suspicion_of_another_than_the_holder_is_none_of_the_lease() -> None:
    elector = candidate(lease())
    elector.holder_stalled("third", at(3_000))
    assert elector.next_attempt(at(3_000), WALL) is None


def test_beats_that_are_on_time_raise_no_doubt() -> None:
    standby = on_time()
    assert standby.suspicion.doubtful_in_ms(at(standby.now)) == AFTER_MS * 5 // 8 > RETRY_MS
    standby.stops().lives(AFTER_MS * 5 // 8, 50)
    assert standby.suspicion.doubtful_in_ms(at(standby.now)) == 0
    assert standby.suspicion.suspicious_in_ms(at(standby.now)) == AFTER_MS - AFTER_MS * 5 // 8


def test_nought_is_never() -> None:
    standby = Standby(after_ms=0).lives(10 * RETRY_MS).stops()
    assert not standby.lives(LEASE_MS, 100).suspects()
    assert standby.suspicion.doubtful_in_ms(at(standby.now)) is None


def test_where_its_own_beats_were_interrupted_the_count_begins_again() -> None:
    standby = on_time().stops()
    standby.deaf = True
    standby.lives(5_000, 100)
    standby.deaf = False
    assert not standby.lives(AFTER_MS, 100).suspects()
    assert standby.lives(100).suspects()
