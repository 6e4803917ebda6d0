"""Checks that a database can hold a document, and copies it: neither its writer nor a reader can change it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from hascheduler.errors import InvalidInput

T = TypeVar("T")

_LARGEST = 2**63 - 1
NESTED_MAX = 178
"""Objects and lists within each other, without the document itself; MongoDB takes 178 or 179, by the kind of write."""


def stored_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``document`` as a database would give it back; `InvalidInput` where it could not hold it."""
    return {_key(key): _stored(value, NESTED_MAX) for key, value in document.items()}


def stored_value(value: Any) -> Any:
    return _stored(value, NESTED_MAX)


def copied(stored: T) -> T:
    """A copy of what is stored, which its reader may change."""
    copy: Any = stored
    if isinstance(stored, dict):
        copy = {key: copied(item) for key, item in stored.items()}
    elif isinstance(stored, list):
        copy = [copied(item) for item in stored]
    return cast(T, copy)


def _stored(value: Any, deeper: int) -> Any:
    match value:
        case str():
            return _text(value)
        case None | bool() | float() | datetime():
            return value
        case int():
            if not -_LARGEST - 1 <= value <= _LARGEST:
                raise _refused("an integer has more than 64 bits")
            return int(value)
        case Mapping() | list() | tuple() if deeper == 0:
            raise _refused("nested too deeply")
        case Mapping():
            return {_key(key): _stored(item, deeper - 1) for key, item in value.items()}
        case list() | tuple():
            return [_stored(item, deeper - 1) for item in value]
        case _:
            raise _refused(f"a {type(value).__name__} has no stored form")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _refused("a name that is not a text")
    if "\0" in key:
        raise _refused("a name holds the character NUL")
    return _text(key)


def _text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _refused("a text holds half a surrogate pair") from None
    return str(text)


def _refused(problem: str) -> InvalidInput:
    return InvalidInput(("document",), f"can't be stored: {problem}", "JSON with 64-bit integers")
