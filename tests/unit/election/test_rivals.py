"""N electors on one compare-and-set lease, with delays, pauses and lost answers in any order.

The simulated candidates have clocks that run equally fast and read differently, and whatever may happen to a write
happens: it is carried out late, or its answer never comes. What must hold: terms grow with every change of holder, no
term has two holders, and at no instant do two candidates trust the lease.
"""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.election.elector import ElectionConfig, Elector, LeaseAnswer, LeaseAttempt
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs, WallMs
from tests.tiers import examples

LEASE_MS, DEADLINE_MS, RETRY_MS = 1_000, 600, 100
LONGEST_DELAY_MS = 2_500
UNTIL_MS = 15_000


class Rivals:
    """One run; ``seed`` is all it depends on. A ``careless`` store forgets to compare before it sets."""

    def __init__(self, seed: int, *, careless: bool = False) -> None:
        self._random = Random(seed)
        self._careless = careless
        candidates = self._random.randint(2, 5)
        self._now = 0
        self._order = count()
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._lease: LeaseRecord | None = None
        self._offsets = [self._random.randint(0, 10**6) for _ in range(candidates)]
        self._electors = [
            Elector(ElectionConfig("s", f"c{i}", "", LEASE_MS, DEADLINE_MS, RETRY_MS), self._mono(i))
            for i in range(candidates)
        ]
        self._alive = [True] * candidates
        self.holders: dict[int, str] = {}

    def play(self) -> None:
        for i in range(len(self._electors)):
            self._observe(i, None)
            self._after(0, lambda i=i: self._turn(i))  # type: ignore[misc]
        while self._agenda:
            self._now, _, happen = heapq.heappop(self._agenda)
            happen()
            trusting = [i for i in range(len(self._electors)) if self._electors[i].leads(self._mono(i))]
            assert len(trusting) <= 1, f"{trusting} trust the lease at {self._now}"

    @property
    def extinct(self) -> bool:
        return not any(self._alive)

    def _turn(self, i: int) -> None:
        if self._now > UNTIL_MS or not self._alive[i]:
            return
        elector = self._electors[i]
        fate = self._random.choices(["go", "pause", "release", "die"], [300, 10, 3, 1])[0]
        if fate == "die":
            self._alive[i] = False
            return
        if fate == "release":
            attempt = elector.release(self._mono(i), WallMs(0))
        else:
            attempt = elector.next_attempt(self._mono(i), WallMs(0))
        # A pause falls between the decision to write and the write, where it hurts most.
        delay = self._delay() if fate == "pause" else self._random.randint(0, 30)
        if attempt is not None:
            began = self._mono(i)
            self._after(delay, lambda: self._write(i, attempt, began))
        else:
            self._after(max(delay, RETRY_MS), lambda: self._turn(i))

    def _write(self, i: int, attempt: LeaseAttempt, began: MonoMs) -> None:
        won = self._careless or self._lease == attempt.expected
        if won:
            self._carry_out(attempt)
        answer = LeaseAnswer.WON if won else LeaseAnswer.LOST
        if self._random.random() < 0.1:
            answer = LeaseAnswer.UNKNOWN
        delay = self._delay() if self._random.random() < 0.1 else 5
        self._after(delay, lambda: self._conclude(i, attempt, answer, began))

    def _conclude(self, i: int, attempt: LeaseAttempt, answer: LeaseAnswer, began: MonoMs) -> None:
        elector = self._electors[i]
        released = not attempt.proposed.holder
        if answer is LeaseAnswer.LOST:
            elector.observe(self._lease, self._mono(i))
        if released and answer is LeaseAnswer.WON:
            elector.observe(attempt.proposed, self._mono(i))
        elif not released:
            elector.concluded(attempt, answer, began, self._mono(i))
        self._after(RETRY_MS, lambda: self._turn(i))

    def _carry_out(self, attempt: LeaseAttempt) -> None:
        before, self._lease = self._lease, attempt.proposed
        if before is not None:
            assert attempt.proposed.term >= before.term
            if attempt.proposed.holder not in ("", before.holder):
                assert attempt.proposed.term > before.term
        if attempt.proposed.holder:
            holder = self.holders.setdefault(attempt.proposed.term, attempt.proposed.holder)
            assert holder == attempt.proposed.holder, f"term {attempt.proposed.term} has two holders"
        for i in range(len(self._electors)):
            # The stream keeps the order: nobody is told of a version before an earlier one.
            self._after(self._random.randint(0, 40), lambda i=i, record=self._lease: self._observe(i, record))  # type: ignore[misc]

    def _observe(self, i: int, record: LeaseRecord | None) -> None:
        if self._alive[i]:
            self._electors[i].observe(record, self._mono(i))

    def _after(self, delay_ms: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self._now + delay_ms, next(self._order), happen))

    def _delay(self) -> int:
        return self._random.randint(0, LONGEST_DELAY_MS)

    def _mono(self, i: int) -> MonoMs:
        return MonoMs(self._now + self._offsets[i])


@given(st.integers(0, 2**32))
@settings(max_examples=examples(150))
def test_terms_have_one_holder_and_no_two_candidates_trust_the_lease(seed: int) -> None:
    rivals = Rivals(seed)
    rivals.play()
    assert rivals.holders or rivals.extinct


def test_planted_a_store_that_does_not_compare_before_it_sets_is_found_out() -> None:
    assert any(breaks(seed) for seed in range(100))


def breaks(seed: int) -> bool:
    try:
        Rivals(seed, careless=True).play()
    except AssertionError:
        return True
    return False
