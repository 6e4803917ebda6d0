"""Resources as people write them, and which jobs two processors could both run."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.processor import overlap, supports
from hascheduler.model.resources import AMOUNT_MAX, RESOURCE_NAMES_MAX, format_resources, parse_resources

SETS = [frozenset(each) for each in ((), ("*",), ("a",), ("a", "b"), ("b", "c"), ("a", "*"))]


@pytest.mark.parametrize(("mine", "others"), list(product(SETS, SETS)))
def test_two_overlap_where_one_runs_what_the_other_names(mine: frozenset[str], others: frozenset[str]) -> None:
    expected = any(supports(others, name) for name in mine) or any(supports(mine, name) for name in others)
    assert overlap(mine, others) == expected


NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,62}\Z").filter(lambda name: name != "slots")


@pytest.mark.parametrize(
    ("text", "vector"), [("", ()), ("  ", ()), ("cpu=8", (("cpu", 8),)), (" gpu = 1 , cpu=8", (("cpu", 8), ("gpu", 1)))]
)
def test_a_list_of_amounts_is_a_vector(text: str, vector: tuple[tuple[str, int], ...]) -> None:
    assert parse_resources(text) == vector


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu", "'cpu' is no amount"),
        ("cpu=8,", "'' is no amount"),
        ("cpu=", "cpu: ''"),
        ("cpu=many", "cpu: 'many'"),
        ("cpu=-1", "cpu: '-1'"),
        ("cpu=0", "cpu: 0"),
        ("cpu=1.5", "cpu: '1.5'"),
        ("cpu=²", "cpu: '²'"),
        (f"cpu={AMOUNT_MAX + 1}", f"cpu: {AMOUNT_MAX + 1}"),
        ("cpu=" + "9" * 5_000, "cpu: '999"),
        ("cpu=1,cpu=2", "'cpu' is named twice"),
        ("slots=3", "'slots' is no name"),
        ("a b=3", "'a b' is no name"),
        ("=3", "'' is no name"),
        (",".join(f"r{n}=1" for n in range(RESOURCE_NAMES_MAX + 1)), "17 resources"),
    ],
)
def test_a_malformed_list_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_resources(text, ("--resources",))
    assert refused.value.path == ("--resources",)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


@given(st.dictionaries(NAMES, st.integers(1, AMOUNT_MAX), max_size=RESOURCE_NAMES_MAX))
def test_a_formatted_vector_is_parsed_back(amounts: dict[str, int]) -> None:
    assert dict(parse_resources(format_resources(amounts))) == amounts
