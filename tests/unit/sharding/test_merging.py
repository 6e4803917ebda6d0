"""Pages that are merged of several shards, against a plain sort of all that they have."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.ports import ListPosition
from hascheduler.sharding.merging import Part, PlaceKey, key_of, merged, place_of, position_of

PLACES = st.lists(st.tuples(st.integers(0, 6), st.text("abc", min_size=1, max_size=3)), max_size=24, unique=True)
BOTH_ORDERS = pytest.mark.parametrize("newest_first", [False, True])


def bounded(
    mine: Sequence[PlaceKey], after: ListPosition | None, limit: int, newest_first: bool, data: st.DataObject
) -> Part[PlaceKey, PlaceKey]:
    """What one shard answers: it may end anywhere beyond ``after``, at a document that it has or at an instant."""
    start = key_of(after, newest_first=newest_first)
    left = sorted(mine, reverse=newest_first)
    if start is not None:
        left = [key for key in left if (key < start if newest_first else start < key)]
    taken = data.draw(st.integers(0, min(limit, len(left))), "taken")
    if taken == len(left) and (not left or data.draw(st.booleans(), "knows that this was all")):
        return Part([(key, key) for key in left], None)
    if taken:
        return Part([(key, key) for key in left[:taken]], left[taken - 1])
    # It met nothing that matches, and stops in front of an instant that is further than where it began.
    at_ms = left[0][0]
    edge = key_of(ListPosition(at_ms), newest_first=newest_first)
    assert edge is not None
    if start is None or (edge < start if newest_first else start < edge):
        return Part([], edge)
    return Part([(left[0], left[0])], left[0])


def walked(
    shards: Sequence[list[PlaceKey]], limit: int, newest_first: bool, data: st.DataObject, arriving: bool = False
) -> list[PlaceKey]:
    found: list[PlaceKey] = []
    after: ListPosition | None = None
    for number in count():
        assert number < 200, "it has no end"
        page = merged(
            [bounded(mine, after, limit, newest_first, data) for mine in shards], limit, newest_first=newest_first
        )
        assert len(page.found) <= limit
        found += page.entries
        if page.until is None:
            return found
        after = position_of(page.until)
        if arriving:
            shards[number % len(shards)].append(place_of(100 + number if newest_first else -100, f"new-{number}"))
    raise AssertionError


@BOTH_ORDERS
@given(PLACES, st.integers(1, 4), st.integers(1, 5), st.data())
def test_whoever_goes_on_meets_everything_once_and_in_order(
    newest_first: bool, places: list[tuple[int, str]], shard_count: int, limit: int, data: st.DataObject
) -> None:
    shards: list[list[PlaceKey]] = [[] for _ in range(shard_count)]
    for place in places:
        shards[data.draw(st.integers(0, shard_count - 1), "shard")].append(place_of(*place))
    everything = sorted((key for mine in shards for key in mine), reverse=newest_first)
    assert walked(shards, limit, newest_first, data, arriving=True) == everything


@BOTH_ORDERS
@given(PLACES, st.integers(2, 4), st.data())
def test_what_two_shards_have_by_one_id_is_parted_by_no_page_that_is_long_enough(
    newest_first: bool, places: list[tuple[int, str]], shard_count: int, data: st.DataObject
) -> None:
    shards: list[list[PlaceKey]] = [[] for _ in range(shard_count)]
    for place in places:
        for index in data.draw(st.sets(st.integers(0, shard_count - 1), min_size=1), "shards"):
            shards[index].append(place_of(*place))
    everything = sorted((key for mine in shards for key in mine), reverse=newest_first)
    found = walked(shards, shard_count, newest_first, data)
    assert sorted(found, reverse=newest_first) == everything
    assert sorted(set(walked(shards, 1, newest_first, data))) == sorted(set(everything))


def test_a_page_ends_where_the_first_shard_had_to_end() -> None:
    one = Part([(9, "9"), (8, "8"), (5, "5")], 5)
    other = Part([(7, "7"), (6, "6"), (4, "4"), (3, "3")], 3)
    assert merged([one, other], 9, newest_first=True) == Part([(n, f"{n}") for n in (9, 8, 7, 6, 5)], 5)
    assert merged([one, other], 2, newest_first=True) == Part([(9, "9"), (8, "8")], 8)


def test_it_was_all_when_it_was_all_of_each() -> None:
    assert merged([Part([("b", 1)], None), Part([("a", 2)], None)], 2) == Part([("a", 2), ("b", 1)], None)
    assert merged([Part([("b", 1)], None), Part([("a", 2)], None)], 1) == Part([("a", 2)], "a")


def test_a_shard_that_found_nothing_yet_ends_the_page_before_what_others_found() -> None:
    assert merged([Part([], 8), Part([(9, ""), (7, "")], None)], 5, newest_first=True) == Part([(9, "")], 8)


@BOTH_ORDERS
@pytest.mark.parametrize("position", [None, ListPosition(5), ListPosition(5, "a"), ListPosition(5, "")])
def test_a_position_is_the_same_after_it_was_a_key(newest_first: bool, position: ListPosition | None) -> None:
    assert position_of(key_of(position, newest_first=newest_first)) == position


def test_a_position_without_an_id_is_before_all_of_its_instant() -> None:
    newest, oldest = key_of(ListPosition(5), newest_first=True), key_of(ListPosition(5), newest_first=False)
    assert newest is not None
    assert oldest is not None
    assert oldest < place_of(5, "") < place_of(5, "\U0010ffff") < newest
