"""Strict JSON: reads a text into a value that can be stored and read back unchanged, or names each place that is wrong.

jiter reads, and one walk refuses what it lets through. Refused: duplicate keys, NaN and infinities, numbers that become
infinite, integers beyond 64 bits, nesting deeper than 32, texts with lone surrogates, keys that begin with ``$``
(MongoDB's operators) or hold NUL. Only a refused body is read a second time, by a slower reader that finds the
path of each fault.
"""

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import jiter

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, Path, error_text
from hascheduler.errors import InvalidInput

DEPTH_MAX = 32
VALUES_MAX = 20_000
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_INTEGER_LENGTH_MAX = 21  # no longer integer, sign included, fits into 64 bits
_INFINITE = (math.inf, -math.inf)


class MalformedJson(Exception):
    """A text that is not JSON at all. The message names where and why."""


class UnstorableJson(Exception):
    """A JSON text with places that can't be stored as they are."""

    def __init__(self, errors: list[InvalidInput]) -> None:
        super().__init__(error_text(errors[0]))
        self.errors = errors


class Oversized(Exception):
    """A text over a limit of the reader, which the message names."""


def read_json(body: bytes, values_max: int = VALUES_MAX) -> Any:
    """Return the value of ``body``, or raise `MalformedJson`, `UnstorableJson` or `Oversized`."""
    # A body of "[]," alone holds a list every three bytes, which keeps any parser busy: counting first costs little.
    if _marks(body) > values_max and _marks_outside_texts(body, values_max) > values_max:
        raise Oversized(f"more than {values_max} values and keys")
    try:
        value = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as error:
        _refuse_faults(body)
        raise MalformedJson(str(error)) from None
    if not _is_clean(value):
        _refuse_faults(body)
    return value


def _marks(text: bytes) -> int:
    """Return the size of ``text``: two for an object or a list, one for each key and each further value."""
    return 2 * (text.count(b"[") + text.count(b"{")) + text.count(b",") + text.count(b":")


def _marks_outside_texts(body: bytes, enough: int) -> int:
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    texts = plain.count(b'"') // 2
    # Each text but the outermost has a mark of its own next to it, so a body with many texts needs no splitting.
    return texts if texts > enough + 1 else _marks(b"".join(plain.split(b'"')[::2]))


def _is_clean(value: Any) -> bool:
    """Return True if `_faults` finds nothing: level by level and without paths, as nearly every body is clean."""
    level: list[Any] = [[value]]
    for _ in range(DEPTH_MAX + 1):
        inner: list[Any] = []
        for container in level:
            items = container
            if type(container) is dict:
                for key in container:
                    if key[:1] == "$" or "\0" in key:
                        return False
                items = container.values()
            for one in items:
                kind = type(one)
                if kind is dict or kind is list:
                    inner.append(one)
                elif (kind is int and not _INTEGER_MIN <= one <= _INTEGER_MAX) or (kind is float and one in _INFINITE):
                    return False
        if not inner:
            return True
        level = inner
    return False


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object as written, with its duplicate keys."""

    __slots__ = ()


def _refuse_faults(body: bytes) -> None:
    """Raise `UnstorableJson` with the path of each fault, if there is one and ``body`` is JSON."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_Pairs, parse_int=lambda text: int(text[: _INTEGER_LENGTH_MAX + 1])
        )
        errors = list(islice(_faults(value, ()), ERRORS_SHOWN_MAX))
    except RecursionError:
        errors = [_too_deep(())]
    except ValueError:
        return
    if errors:
        raise UnstorableJson(errors)


def _faults(value: Any, path: Path) -> Iterator[InvalidInput]:
    if isinstance(value, _Pairs | list) and len(path) >= DEPTH_MAX:
        yield _too_deep(path)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _faults(item, (*path, place))
    elif isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            here = (*path, key)
            if key in seen:
                yield InvalidInput(here, "the key is repeated", "each key once")
            elif not _is_unicode(key):
                yield InvalidInput(here, "the key contains half of a surrogate pair", "Unicode text")
            elif key.startswith("$"):
                yield InvalidInput(here, "the key begins with $", "keys that do not begin with $")
            elif "\0" in key:
                yield InvalidInput(here, "the key contains NUL", "keys without NUL")
            seen.add(key)
            yield from _faults(item, here)
    elif isinstance(value, str) and not _is_unicode(value):
        yield InvalidInput(path, "contains half of a surrogate pair", "Unicode text")
    elif isinstance(value, int) and not _INTEGER_MIN <= value <= _INTEGER_MAX:
        yield InvalidInput(path, "the integer does not fit into 64 bits", "a 64-bit integer, or a text")
    elif isinstance(value, float) and not math.isfinite(value):
        yield InvalidInput(path, f"{value} is not a JSON number", "a finite number")


def _too_deep(path: Path) -> InvalidInput:
    return InvalidInput(path, "nested too deeply", f"at most {DEPTH_MAX} levels")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
