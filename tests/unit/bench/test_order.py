"""The share of pairs that happened in order, against counting them all."""

from itertools import combinations
from random import Random

import pytest

from tests.bench.order import pairs_in_order, percent_in_order


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        ([], 100),
        ([(1, "a"), (2, "b"), (3, "c")], 100),
        ([(1, "c"), (2, "b"), (3, "a")], 0),
        ([(1, "b"), (2, "a"), (3, "c")], 66.67),
        ([(1, "b"), (1, "a")], 100),
        ([(1, "a"), (2, "a")], 100),
        ([(1, "a"), (1, "b"), (2, "a")], 0),
    ],
)
def test_pairs_at_one_instant_or_of_one_key_are_in_no_order(started: list[tuple[int, str]], expected: float) -> None:
    assert percent_in_order(started) == expected


def test_it_equals_looking_at_each_pair() -> None:
    chance = Random(7)
    started = [(chance.randrange(60), chance.randrange(11)) for _ in range(400)]
    right = wrong = 0
    for (at, key), (other_at, other_key) in combinations(started, 2):
        right += (at - other_at) * (key - other_key) > 0
        wrong += (at - other_at) * (key - other_key) < 0
    assert pairs_in_order(started) == (right, wrong)
