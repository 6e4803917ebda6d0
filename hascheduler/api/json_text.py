"""Strict JSON: a text in, a value that can be stored and read back unchanged out, or each place that is wrong.

Refused although Python's reader would take it: NaN and infinities, numbers that become infinite, integers beyond
64 bits, duplicate keys, nesting deeper than 32, texts with lone surrogates, keys that begin with ``$`` (MongoDB's
operators) or hold NUL.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from hascheduler.api.problems import ERRORS_SHOWN_MAX, FieldError, Path

DEPTH_MAX = 32
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_INTEGER_DIGITS_MAX = 20  # more can't be 64 bits, and reading thousands of digits is slow and refused by Python
_TOO_DEEP = FieldError((), "nested too deeply", f"at most {DEPTH_MAX} levels")


class MalformedJson(Exception):
    """Not JSON at all; the text says where and why."""


class UnstorableJson(Exception):
    """JSON, but some places of it can't be kept as they are."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(str(errors[0]))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class _Pairs:
    """An object as it was written, duplicate keys and all."""

    pairs: list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class _HugeInteger:
    digits: int


def read_json(body: bytes) -> Any:
    """The value of ``body``; raises `MalformedJson` or `UnstorableJson`."""
    try:
        raw = json.loads(body.decode("utf-8"), object_pairs_hook=_Pairs, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise MalformedJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise UnstorableJson([_TOO_DEEP]) from None
    errors: list[FieldError] = []
    value = _checked(raw, (), errors)
    if errors:
        raise UnstorableJson(errors)
    return value


def _integer(text: str) -> int | _HugeInteger:
    return int(text) if len(text) <= _INTEGER_DIGITS_MAX else _HugeInteger(len(text.lstrip("-")))


def _checked(value: Any, path: Path, errors: list[FieldError]) -> Any:
    if len(errors) >= ERRORS_SHOWN_MAX:
        return None
    match value:
        case _Pairs() | list() if len(path) >= DEPTH_MAX:
            errors.append(FieldError(path, _TOO_DEEP.problem, _TOO_DEEP.expected))
        case _Pairs(pairs):
            return _checked_object(pairs, path, errors)
        case list():
            return [_checked(item, (*path, index), errors) for index, item in enumerate(value)]
        case str() if not _is_unicode(value):
            errors.append(FieldError(path, "holds half of a surrogate pair", "Unicode text"))
        case _HugeInteger(digits):
            errors.append(FieldError(path, f"an integer of {digits} digits", "a 64-bit integer, or a text"))
        case bool():
            return value
        case int() if not _INTEGER_MIN <= value <= _INTEGER_MAX:
            errors.append(FieldError(path, f"{value} does not fit into 64 bits", "a 64-bit integer, or a text"))
        case float() if not math.isfinite(value):
            errors.append(FieldError(path, f"{value} is not a JSON number", "a finite number"))
    return value


def _checked_object(pairs: list[tuple[str, Any]], path: Path, errors: list[FieldError]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in pairs:
        here = (*path, key)
        if key in result:
            errors.append(FieldError(here, "the key is there twice", "each key once"))
        elif not _is_unicode(key):
            errors.append(FieldError(here, "the key holds half of a surrogate pair", "Unicode text"))
        elif key.startswith("$"):
            errors.append(FieldError(here, "the key begins with $", "keys that begin otherwise"))
        elif "\0" in key:
            errors.append(FieldError(here, "the key holds NUL", "keys without NUL"))
        result[key] = _checked(item, here, errors)
    return result


def _is_unicode(text: str) -> bool:
    # The common case costs nothing: ASCII is marked on the string.
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
