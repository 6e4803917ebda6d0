"""`compact` keeps everything of a frozen dataclass but the run-time guard, and most values of it share a part."""

import copy
import pickle
from dataclasses import dataclass, field, fields, replace

import pytest

from hascheduler.model.job import JobRef
from hascheduler.model.values.frozen import compact
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Trigger


@compact("count", "notes")
@dataclass(frozen=True, slots=True)
class Value:
    """What a value is."""

    name: str
    count: int = 3
    place: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def doubled(self) -> int:
        return 2 * self.count


def test_a_compact_value_is_created_and_compared_as_a_frozen_one() -> None:
    assert Value("a") == Value("a", 3) == Value(name="a", count=3, place=None, notes=())
    assert Value("a") != Value("a", 4)
    assert Value("a", place=1) != Value("a")
    assert Value("a") != object()
    assert hash(Value("a")) == hash(Value("a", 3))
    assert replace(Value("a", place=7), count=5) == Value("a", 5, 7)
    assert repr(Value("a", 1, 2, ("n",))) == "Value(name='a', count=1, place=2, notes=('n',))"
    assert Value.__doc__ == "What a value is."
    assert [each.name for each in fields(Value)] == ["name", "count", "place", "notes"]


def test_each_field_reads_as_it_was_set() -> None:
    value = Value("a", 1, 2, ("n",))
    assert (value.name, value.count, value.place, value.notes, value.doubled) == ("a", 1, 2, ("n",), 2)
    match value:
        case Value(name, count, place, notes):
            assert (name, count, place, notes) == ("a", 1, 2, ("n",))


@pytest.mark.parametrize("value", [Value("a", 7, 1, ("n",)), Value("a")])
def test_a_compact_value_can_be_copied_and_sent(value: Value) -> None:
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_values_without_seldom_fields_share_what_they_keep_of_them() -> None:
    assert Value("a")._seldom is Value("b", 3, 9)._seldom  # type: ignore[attr-defined]
    assert Value("a", 4)._seldom is not Value("b", 4)._seldom  # type: ignore[attr-defined]


def test_missing_and_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Value()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Value("a", other=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Value("a").other = 1  # type: ignore[attr-defined]


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

    for refused in (Checked, Demanding, Uncompared):
        with pytest.raises(AssertionError, match=refused.__name__):
            compact("name")(refused)


def test_the_values_that_there_are_most_of_stay_small() -> None:
    """A mirror may have a million of each; see docs/explanation/sizing.md."""
    sizes = {each: each.__basicsize__ for each in (JobRef, ScheduleRef, Trigger, FireCounts)}
    assert sizes[JobRef] <= 168
    assert sizes[ScheduleRef] <= 96
    assert sizes[Trigger] <= 32
    assert sizes[FireCounts] <= 32
