"""`fast_frozen` and `compact` keep everything of a frozen dataclass but the run-time guard."""

import copy
import pickle
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from hascheduler.model.job import JobRef
from hascheduler.model.values.frozen import compact, fast_frozen
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Trigger


@fast_frozen
@dataclass(frozen=True, slots=True)
class Fast:
    """What a value is."""

    name: str
    count: int = 3
    place: int | None = None
    notes: tuple[str, ...] = ()


@compact("count", "notes")
@dataclass(frozen=True, slots=True)
class Compact:
    """What a value is."""

    name: str
    count: int = 3
    place: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def doubled(self) -> int:
        return 2 * self.count


@fast_frozen
@dataclass(frozen=True, slots=True)
class Noted:
    name: str
    notes: list[str] = field(default_factory=list, compare=False)


both = pytest.mark.parametrize("value", [Fast, Compact])


@both
def test_a_value_is_created_and_compared_as_a_frozen_one(value: Any) -> None:
    assert value("a") == value("a", 3) == value(name="a", count=3, place=None, notes=())
    assert value("a") != value("a", 4)
    assert value("a", place=1) != value("a")
    assert value("a") != object()
    assert hash(value("a")) == hash(value("a", 3))
    assert replace(value("a", place=7), count=5) == value("a", 5, 7)
    assert repr(value("a", 1, 2, ("n",))) == f"{value.__name__}(name='a', count=1, place=2, notes=('n',))"
    assert value.__doc__ == "What a value is."
    assert [each.name for each in fields(value)] == ["name", "count", "place", "notes"]
    for one in (value("a", 7, 1, ("n",)), value("a")):
        assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one


@both
def test_missing_and_unknown_arguments_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        value()
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        value("a", other=1)
    with pytest.raises(AttributeError):
        value("a").other = 1


def test_each_value_has_its_own_mutable_default_and_what_is_not_compared_is_not() -> None:
    assert Noted("a").notes is not Noted("a").notes
    assert Noted("a") == Noted("a", ["not compared"])


def test_each_field_of_a_compact_value_reads_as_it_was_set() -> None:
    value = Compact("a", 1, 2, ("n",))
    assert (value.name, value.count, value.place, value.notes, value.doubled) == ("a", 1, 2, ("n",), 2)
    match value:
        case Compact(name, count, place, notes):
            assert (name, count, place, notes) == ("a", 1, 2, ("n",))


def test_values_without_seldom_fields_share_what_they_keep_of_them() -> None:
    assert Compact("a")._seldom is Compact("b", 3, 9)._seldom  # type: ignore[attr-defined]
    assert Compact("a", 4)._seldom is not Compact("b", 4)._seldom  # type: ignore[attr-defined]


def test_classes_that_would_not_be_what_they_were_are_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        name: str = ""

        def __post_init__(self) -> None:
            raise AssertionError

    @dataclass(frozen=True, slots=True)
    class Demanding:
        name: str

    @dataclass(frozen=True, slots=True)
    class Uncompared:
        name: str = field(default="", compare=False)

    with pytest.raises(AssertionError, match="Checked has a __post_init__"):
        fast_frozen(Checked)
    for refused in (Checked, Demanding, Uncompared):
        with pytest.raises(AssertionError, match=refused.__name__):
            compact("name")(refused)


def test_the_values_that_there_are_most_of_stay_small() -> None:
    """A mirror may have a million of each; see docs/operations/capacity.md."""
    sizes = {each: each.__basicsize__ for each in (JobRef, ScheduleRef, Trigger, FireCounts)}
    assert sizes[JobRef] <= 168
    assert sizes[ScheduleRef] <= 96
    assert sizes[Trigger] <= 32
    assert sizes[FireCounts] <= 32
