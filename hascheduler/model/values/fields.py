"""Reads single fields of stored documents, which may have been written by hand; a wrong value is an `InvalidInput`."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeGuard

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs

Document = Mapping[str, Any]
"""A stored document, or its fields."""

INTEGER_MAX: Final = 2**53 - 1
"""Enough for every count and instant; sums of them still fit the 64 bits of a stored integer."""
ID_CHARACTERS_MAX = 320
"""A dispatch message (4 KiB of JSON) must hold any job's id, and a journal entry (16 MiB) those of a whole step."""
NAME_CHARACTERS_MAX = 256
"""The longest name of a schedule: the ids of the jobs that it fires are longer than its name."""
_INTEGER_MIN: Final = -INTEGER_MAX


def as_document(value: object) -> dict[str, Any] | None:
    """Return the object that is stored there; None if it is not an object.

    It is nearly always a dictionary: checking for any `Mapping` takes ten times as long.
    """
    if isinstance(value, dict):
        return value
    return dict(value) if isinstance(value, Mapping) else None


def identifier(id: object, *, longest: int = ID_CHARACTERS_MAX) -> str:
    if not isinstance(id, str) or not id:
        raise InvalidInput(("_id",), f"a {type(id).__name__}", "a text")
    if len(id) > longest:
        raise InvalidInput(("_id",), f"{len(id)} characters long", f"at most {longest}")
    return id


def text(fields: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = fields.get(name) if isinstance(fields, dict) else fields.get(name)  # noqa: RUF034  # as in `integer`
    if type(value) is str and value:  # nearly always: there are many documents
        return value
    if not isinstance(value, str) or not (value or empty):
        raise InvalidInput((name,), wrong(fields, name), "a text")
    return value


def shared_text(fields: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    """Return the text as `text` does, as one object for equal texts: the driver makes a new one for each document."""
    return shared(str(text(fields, name, empty=empty)))  # BSON has other types of text too


def text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name) if isinstance(fields, dict) else fields.get(name)  # noqa: RUF034  # as in `integer`
    return None if value is None else text(fields, name)


def integer(fields: Mapping[str, Any], name: str, *, default: int | None = None) -> int:
    # Compiled code looks up in half the time if it knows the type to be a dictionary.
    value = fields.get(name, default) if isinstance(fields, dict) else fields.get(name, default)  # noqa: RUF034
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput((name,), wrong(fields, name), "an integer")
    # The driver's class for 64-bit integers takes half as much memory again, and there may be a million.
    number = value if type(value) is int else int(value)
    if not _INTEGER_MIN <= number <= INTEGER_MAX:
        raise InvalidInput((name,), f"{value}", "an integer of at most 53 bits")
    return number


def positive(fields: Mapping[str, Any], name: str) -> int:
    value = integer(fields, name)
    if value < 1:
        raise InvalidInput((name,), f"{value}", "at least 1")
    return value


def not_negative(fields: Mapping[str, Any], name: str, *, default: int | None = None) -> int:
    value = integer(fields, name, default=default)
    if value < 0:
        raise InvalidInput((name,), f"{value}", "at least 0")
    return value


def is_integer(value: object) -> TypeGuard[int]:
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int)):  # nearly always an int
        return False
    return -INTEGER_MAX <= value <= INTEGER_MAX


@lru_cache(16_384)
def shared(value: str) -> str:
    """Return one object for equal texts.

    Not `sys.intern`, which in Python 3.12 keeps a text for good: there is no limit to the keys of jobs.
    """
    return value


@lru_cache(1_024)
def shared_instant(at_ms: int) -> Any:
    """Return one object for equal instants that are read in succession: jobs made together have the same.

    `Any`, because compiled code that knows it has an integer makes a new object of it.
    """
    return WallMs(at_ms)


def instant_or_none(fields: Mapping[str, Any], name: str) -> WallMs | None:
    value = fields.get(name) if isinstance(fields, dict) else fields.get(name)  # noqa: RUF034  # as in `integer`
    return None if value is None else WallMs(integer(fields, name))


def wrong(fields: Mapping[str, Any], name: str) -> str:
    """Return a text that quotes the invalid value in the field."""
    return f"{str(fields[name])[:64]!r} ({type(fields[name]).__name__})" if name in fields else "missing"
