"""What `hascheduler.api.http.limits` promises, as a table and for any history of parties that come and go."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.api.http.limits import Holding, Limit, NoRoom, Party, Slot, address_party, limits
from hascheduler.telemetry.metrics_http import POOLS, HttpMetrics


def greedy(limit: Limit, party: Party) -> int:
    """How much it gets that takes all it can."""
    with suppress(NoRoom):
        while True:
            limit.take((party,))
    return limit.held(party)


def test_parties_that_take_all_they_can_leave_half_of_what_they_found() -> None:
    limit = Limit("some", 64)
    assert [greedy(limit, ("token", str(number))) for number in range(7)] == [32, 16, 8, 4, 2, 1, 1]
    assert limit.free() == 0


def test_the_reserve_is_for_privileged_callers_alone() -> None:
    limit = Limit("some", 4, 2, retry_after_s=7)
    for name in "abcd":
        limit.take((("token", name),), privileged=name in "cd")
    for privileged in (False, True):
        with pytest.raises(NoRoom, match="there is no room for more some") as refused:
            limit.take((("token", "e"),), privileged=privileged)
        assert (refused.value.status_code, refused.value.reason) == (503, "full")
        assert refused.value.headers == {"Retry-After": "7"}


def test_a_request_gives_back_all_that_it_holds_and_is_charged_once_for_a_stream_of_several_shards() -> None:
    of_all = limits()
    holding = Holding(of_all, (("token", "t"),), HttpMetrics(), privileged=False)
    with holding.take("followers"), holding.take("followers"), holding.take("forwarded"), holding.take("forwarded"):
        assert [of_all[kind].in_use for kind in ("in_flight", "followers", "forwarded")] == [1, 1, 2]
    holding.hold_open("waits")
    assert holding.is_held_open
    assert [of_all[kind].in_use for kind in ("in_flight", "waits")] == [0, 1]
    holding.release()
    assert [limit.in_use for limit in of_all.values()] == [0] * len(of_all)


@pytest.mark.parametrize(
    ("one", "other", "is_one_party"),
    [
        ("127.0.0.1", "127.0.0.2", False), ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False), ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True), ("not:an:address", "not:an:address", True),
    ],
)  # fmt: skip
def test_which_addresses_are_one_party(one: str, other: str, is_one_party: bool) -> None:  # a case
    assert (address_party(one) == address_party(other)) == is_one_party


PARTIES: list[Party] = [("token", "a"), ("token", "b"), ("token", "c"), ("address", "1"), ("address", "2")]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sets(st.sampled_from(PARTIES), max_size=2), st.booleans(), st.integers(1, 9)),
        st.integers(0, 50),  # which slot is released
    ),
    max_size=120,
)


@given(st.integers(0, 40), st.integers(0, 10), STEPS)
def test_whatever_comes_and_goes_the_promises_hold(total: int, reserve: int, steps: list[object]) -> None:
    limit = Limit("some", total, min(reserve, total))
    slots: list[tuple[Slot, set[Party], int]] = []
    for step in steps:
        if isinstance(step, int):
            if slots:
                slots.pop(step % len(slots))[0].release()
        else:
            assert isinstance(step, tuple)
            parties, privileged, units = step
            free, held = limit.free(privileged=privileged), [limit.held(party) for party in parties]
            taken = None
            with suppress(NoRoom):
                taken = limit.take(tuple(parties), units, privileged=privileged)
            if taken is not None:
                slots.append((taken, parties, units))
                assert units <= free
            else:
                assert any(held) or units > free, "who holds nothing is refused only if there is no room"
        # The books balance.
        assert limit.in_use == sum(units for _, _, units in slots) <= total
        for party in PARTIES:
            assert limit.held(party) == sum(units for _, parties, units in slots if party in parties)
    for slot, _, _ in slots:
        slot.release()
    assert limit.in_use == 0


def test_the_refusals_of_every_limit_are_counted_from_the_beginning() -> None:
    assert {"connections", *limits()} == set(POOLS)
