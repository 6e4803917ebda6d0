"""Processors: which jobs two of them could both run."""

from itertools import product

import pytest

from hascheduler.model.processor import overlap, supports

SETS = [frozenset(each) for each in ((), ("*",), ("a",), ("a", "b"), ("b", "c"), ("a", "*"))]


@pytest.mark.parametrize(("mine", "others"), list(product(SETS, SETS)))
def test_two_overlap_where_one_runs_what_the_other_names(mine: frozenset[str], others: frozenset[str]) -> None:
    expected = any(supports(others, name) for name in mine) or any(supports(mine, name) for name in others)
    assert overlap(mine, others) == expected
