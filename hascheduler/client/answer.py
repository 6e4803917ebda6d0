"""An answer: the JSON as the replica sent it, with typed values as attributes.

::

    schedule = scheduler.schedules.get("nightly")
    schedule.next_at              # datetime(2030, 1, 2, 2, 30, tzinfo=UTC)
    schedule.trigger.jitter       # timedelta(seconds=30)
    schedule["next_at"]           # "2030-01-02T02:30:00Z", as in the API's reference

The JSON keeps the fields that a newer release adds, so an answer that is edited and sent back loses nothing. Fields
that an older release does not send read as empty: None, 0, False or without items.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from hascheduler.model.values.instants import parse_duration

Json = Any
"""Any value that JSON can hold."""
Read = Callable[[Any], Any]


def as_it_is(value: Any) -> Any:
    return value


class Answer(dict[str, Any]):
    """A JSON object with the attributes that its class declares; `hascheduler.client.answers` has the classes.

    An attribute named like a Python keyword or a method of a dictionary ends with ``_``: ``from_``, ``items_``.
    """

    __slots__ = ()

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return the answer itself, the whole JSON."""
        return self

    if not TYPE_CHECKING:  # else a checker would accept any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"{name!r} can't be set: answers are read-only")

        def __getattr__(self, name: str) -> Any:
            read = _readers(type(self)).get(name)
            if read is None:
                raise AttributeError(f"{type(self).__name__} has no {name!r}")
            value = self.get(name.removesuffix("_"))
            try:
                return read(value)
            except (TypeError, ValueError, AttributeError) as error:
                raise AttributeError(f"{name!r} of the answer is {value!r:.64}, which can't be read") from error


@cache
def _readers(kind: type[Answer]) -> Mapping[str, Read]:
    return {name: _reader(annotation) for name, annotation in get_type_hints(kind).items()}


def _reader(annotation: Any) -> Read:
    """Return a function that makes a value of that type from JSON."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is datetime:
        return datetime.fromisoformat
    if annotation is timedelta:
        return lambda text: timedelta(milliseconds=parse_duration(text))
    if annotation in (int, float, str, bool):
        return lambda value: annotation() if value is None else value
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, Answer):
        return lambda value: annotation({} if value is None else value)
    if origin is tuple:
        read = _reader(inner[0])
        return lambda items: tuple(map(read, items or ()))
    if origin is Mapping:
        read = _reader(inner[1])
        return lambda items: {name: read(value) for name, value in (items or {}).items()}
    if origin in (Union, UnionType):
        return _union_reader([one for one in inner if one is not NoneType])
    return as_it_is


def _union_reader(options: list[Any]) -> Read:
    """Return a function that reads None, the only other option, or the option whose ``type`` the answer has."""
    if len(options) == 1:
        read = _reader(options[0])
        return lambda value: None if value is None else read(value)
    types = {one: get_type_hints(one).get("type") for one in options if issubclass(get_origin(one) or one, Answer)}
    by_type = {name: one for one, kind in types.items() for name in get_args(kind)}
    return lambda value: by_type.get(str(value.get("type")), Answer)(value) if isinstance(value, dict) else value
