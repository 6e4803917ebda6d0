"""Frozen dataclasses of which a process makes very many: `fast_frozen` ones cost less time, `compact` ones less memory.

The type checker still treats such a class as frozen, but its fields are set directly, and no assignment is refused.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, fields, make_dataclass
from operator import attrgetter
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)
_MADE_HERE = frozenset({"__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"})
_SELDOM = "_seldom"


def fast_frozen(frozen: _Class) -> _Class:
    """Leave out the run-time guard of each field; goes above ``@dataclass(frozen=True, slots=True)``.

    For values that are made hundreds of thousands of times a minute. A frozen dataclass sets every field through
    `object.__setattr__`, which is most of the cost of a value with many fields: a mirror folds a job's four events in
    76 µs with it and in 61 µs without.
    """
    assert not hasattr(frozen, "__post_init__"), f"{frozen.__name__} has a __post_init__, which would not be called"
    same = make_dataclass(frozen.__name__, [(each.name, each.type, each) for each in fields(frozen)])
    frozen.__init__ = same.__init__  # type: ignore[misc]
    del frozen.__setattr__, frozen.__delattr__
    return frozen


def compact(*seldom: str) -> Callable[[_Class], _Class]:
    """Store the ``seldom`` set fields apart; goes above ``@dataclass(frozen=True, slots=True)``.

    Each of those fields has a default that can be shared. There are up to a million such values, and each field is 8
    bytes.

    ::

        value ─► the fields that differ from value to value
              └► one tuple of the seldom set ones, shared by all values that set none of them

    Users of the class see the original frozen dataclass: its constructor, comparison, ``replace``, ``repr`` and types.
    A seldom set field takes some 40 ns to read, the others as long as before.
    """

    def compacted(frozen: _Class) -> _Class:
        assert not hasattr(frozen, "__post_init__"), f"{frozen.__name__} has a __post_init__, which would not be called"
        defaults = {each.name: each.default for each in fields(frozen)}
        assert MISSING not in (defaults[name] for name in seldom), f"{frozen.__name__}: a seldom field has no default"
        assert all(each.compare and each.hash is None for each in fields(frozen)), (
            f"{frozen.__name__}: a field is not compared"
        )
        names = tuple(defaults)
        often = tuple(name for name in names if name not in seldom)
        kept = _kept_apart(frozen.__name__, seldom)
        left_out = {*names, *_MADE_HERE, "__slots__", "__dict__", "__weakref__"}
        body = {name: value for name, value in vars(frozen).items() if name not in left_out}
        body |= {
            "__slots__": (*often, _SELDOM),
            "__init__": _constructor(names, defaults, often, kept(*(defaults[name] for name in seldom))),
            **_as_values(attrgetter(*often, _SELDOM), attrgetter(*names)),
            **{name: property(attrgetter(f"{_SELDOM}.{name}")) for name in seldom},
        }
        return type(frozen)(frozen.__name__, frozen.__bases__, body)

    return compacted


def _kept_apart(of: str, names: tuple[str, ...]) -> Any:
    return namedtuple(f"{of}Seldom", names)  # its fields are not known before


def _constructor(names: tuple[str, ...], defaults: dict[str, Any], often: tuple[str, ...], unset: Any) -> Any:
    """Return a constructor made from text, as dataclasses do: a loop over its arguments takes three times as long."""
    arguments = ", ".join(name if defaults[name] is MISSING else f"{name}=_{name}" for name in names)
    lines = [f"def __init__(self, {arguments}):", *(f"    self.{name} = {name}" for name in often)]
    values = "".join(f"{name}, " for name in type(unset)._fields)
    lines += [
        f"    seldom = ({values})",
        f"    self.{_SELDOM} = _unset if seldom == _unset else _kept(seldom)",
    ]
    known = {f"_{name}": default for name, default in defaults.items()} | {
        "_unset": unset,
        "_kept": type(unset)._make,
    }
    made: dict[str, Any] = {}
    exec("\n".join(lines), known, made)  # noqa: S102  # all names come from this source
    return made["__init__"]


def _as_values(stored: Callable[[Any], Any], values: Callable[[Any], Any]) -> dict[str, Any]:
    def equals(value: Any, other: object) -> Any:
        return stored(value) == stored(other) if other.__class__ is value.__class__ else NotImplemented

    def hashed(value: Any) -> int:
        return hash(stored(value))

    def reduced(value: Any) -> Any:
        return value.__class__, values(value)

    return {"__eq__": equals, "__hash__": hashed, "__reduce__": reduced}
