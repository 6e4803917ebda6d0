"""`fast_frozen` keeps everything of a frozen dataclass but the run-time guard."""

import copy
import pickle
from dataclasses import dataclass, field, replace

import pytest

from hascheduler.model.values.frozen import fast_frozen


@fast_frozen
@dataclass(frozen=True, slots=True)
class Value:
    name: str
    count: int = 3
    notes: list[str] = field(default_factory=list, compare=False)


def test_a_fast_frozen_value_is_created_and_compared_as_a_frozen_one() -> None:
    assert Value("a") == Value("a", 3) == Value(name="a", count=3, notes=["not compared"])
    assert Value("a") != Value("a", 4)
    assert hash(Value("a")) == hash(Value("a", 3))
    assert replace(Value("a"), count=5) == Value("a", 5)
    assert repr(Value("a", 1, ["n"])) == "Value(name='a', count=1, notes=['n'])"
    assert copy.copy(Value("a", 7)) == pickle.loads(pickle.dumps(Value("a", 7))) == Value("a", 7)


def test_each_value_has_its_own_mutable_default() -> None:
    assert Value("a").notes is not Value("a").notes


def test_missing_and_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Value()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Value("a", other=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Value("a").other = 1  # type: ignore[attr-defined]


def test_a_class_with_a_post_init_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        name: str

        def __post_init__(self) -> None:
            raise AssertionError

    with pytest.raises(AssertionError, match="Checked has a __post_init__"):
        fast_frozen(Checked)
