"""What `hascheduler.api.http.shares` promises, as a table and for any history of parties that come and go."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.api.http.shares import (
    TIMES_FREE,
    Party,
    Pool,
    PoolRefusal,
    PoolRequest,
    RefusalReason,
    Slot,
    address_party,
    token_party,
)
from hascheduler.api.middleware.pools import Pools
from hascheduler.telemetry.metrics_http import POOLS


def greedy(pool: Pool, party: Party) -> int:
    """How much it gets that takes all it can."""
    while isinstance(pool.admit(PoolRequest((party,))), Slot):
        pass
    return pool.held(party)


@pytest.mark.parametrize(
    ("total", "reserve", "token", "address"),
    [
        (0, 0, 0, 0),
        (1, 0, 1, 1),
        (2, 0, 1, 2),
        (3, 0, 2, 3),
        (4, 0, 2, 3),
        (100, 0, 50, 75),
        (320, 64, 128, 192),
        (8, 8, 0, 0),
    ],
)
def test_what_one_party_gets_alone(total: int, reserve: int, token: int, address: int) -> None:
    assert greedy(Pool("a", total, reserve), token_party("t")) == token
    assert greedy(Pool("a", total, reserve), address_party("127.0.0.1")) == address


def test_parties_that_take_all_they_can_leave_half_of_what_they_found() -> None:
    pool = Pool("a", 64)
    assert [greedy(pool, token_party(str(number))) for number in range(7)] == [32, 16, 8, 4, 2, 1, 1]
    assert pool.free() == 0


def test_the_reserve_is_for_privileged_uses_alone() -> None:
    pool = Pool("a", 4, 2, retry_after_s=7)
    for name in "ab":
        assert isinstance(pool.admit(PoolRequest((token_party(name),))), Slot)
    assert pool.admit(PoolRequest((token_party("c"),))) == PoolRefusal("a", RefusalReason.FULL, 7)
    for name in "cd":
        assert isinstance(pool.admit(PoolRequest((token_party(name),), privileged=True)), Slot)
    assert pool.admit(PoolRequest((token_party("e"),), privileged=True)) == PoolRefusal("a", RefusalReason.FULL, 7)


def test_a_slot_that_is_released_twice_is_given_back_once() -> None:
    pool = Pool("a", 2)
    slot, _ = pool.admit(PoolRequest((token_party("t"),))), pool.admit(PoolRequest((token_party("u"),)))
    assert isinstance(slot, Slot)
    slot.release()
    with slot:
        pass
    assert pool.in_use == 1


@pytest.mark.parametrize(
    ("one", "other", "is_one_party"),
    [
        ("127.0.0.1", "127.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("not:an:address", "not:an:address", True),
    ],
)
def test_which_addresses_are_one_party(one: str, other: str, is_one_party: bool) -> None:  # a case
    assert (address_party(one) == address_party(other)) == is_one_party


PARTIES = [token_party("a"), token_party("b"), token_party("c"), address_party("10.0.0.1"), address_party("10.0.0.2")]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sets(st.sampled_from(PARTIES), max_size=2), st.booleans(), st.integers(1, 9)),
        st.integers(0, 50),  # which slot is released
    ),
    max_size=120,
)


@given(st.integers(0, 40), st.integers(0, 10), STEPS)
def test_whatever_comes_and_goes_the_promises_hold(total: int, reserve: int, steps: list[object]) -> None:
    pool = Pool("a", total, min(reserve, total))
    slots: list[tuple[Slot, set[Party], int]] = []
    for step in steps:
        if isinstance(step, int):
            if slots:
                slots.pop(step % len(slots))[0].release()
        else:
            assert isinstance(step, tuple)
            parties, privileged, units = step
            free, held = pool.free(privileged=privileged), {party: pool.held(party) for party in parties}
            outcome = pool.admit(PoolRequest(tuple(parties), privileged), units)
            may = units <= free and all(not held[one] or held[one] < TIMES_FREE[one.kind] * free for one in parties)
            assert isinstance(outcome, Slot) == may
            if isinstance(outcome, Slot):
                slots.append((outcome, parties, units))
                assert privileged or pool.in_use <= total - min(reserve, total)
            elif not any(held.values()):
                assert units > free, "who holds nothing is refused only where there is no room"
        # The books balance.
        assert pool.in_use == sum(units for _, _, units in slots) <= total
        for party in PARTIES:
            assert pool.held(party) == sum(units for _, parties, units in slots if party in parties)
    for slot, _, _ in slots:
        slot.release()
    assert pool.in_use == 0
    assert not any(pool.held(party) for party in PARTIES)


def test_the_refusals_of_every_pool_are_counted_from_the_beginning() -> None:
    assert {"connections", *(field.name for field in fields(Pools))} == set(POOLS)
