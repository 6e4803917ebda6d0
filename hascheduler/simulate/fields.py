"""Checked access to the values of a scenario; what is wrong is an `InvalidInput` that names the place."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.durations import parse_duration
from hascheduler.model.fields import INTEGER_MAX
from hascheduler.model.resources import NO_RESOURCES, RESOURCE_NAMES_MAX, SLOTS, Resources, resources

Path = tuple[str | int, ...]
TEXT_CHARACTERS_MAX = 512
_SHOWN_MAX = 64


def an_object(value: object, path: Path, known: Collection[str]) -> Mapping[str, Any]:
    """``value``, which has no key but those ``known``."""
    if not isinstance(value, dict):
        raise InvalidInput(path, shown(value), "an object")
    for key in value:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            expected = close[0] if close else f"one of {', '.join(known)}"
            raise InvalidInput((*path, str(key)[:_SHOWN_MAX]), "unknown key", expected)
    return value


def names(value: object, path: Path, limit: int) -> Mapping[str, Any]:
    """An object whose keys are names; nothing where it is left out."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(path, shown(value), "an object of names")
    if len(value) > limit:
        raise InvalidInput(path, f"{len(value):,} names", f"at most {limit:,}")
    for key in value:
        text(key, (*path, str(key)[:_SHOWN_MAX]))
    return value


def a_list(value: object, path: Path, limit: int) -> list[Any]:
    """A list; an empty one where it is left out."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(path, shown(value), "a list")
    if len(value) > limit:
        raise InvalidInput(path, f"{len(value):,} items", f"at most {limit:,}")
    return value


def text(value: object, path: Path, *, empty: bool = False) -> str:
    if not isinstance(value, str):
        raise InvalidInput(path, shown(value), "a text")
    if not (value or empty):
        raise InvalidInput(path, "empty", "a text")
    if len(value) > TEXT_CHARACTERS_MAX:
        raise InvalidInput(path, f"{len(value):,} characters long", f"at most {TEXT_CHARACTERS_MAX}")
    return value


def integer(value: object, path: Path, least: int, most: int = INTEGER_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        expected = (
            f"a whole number from {least:,} on" if most == INTEGER_MAX else f"a whole number, {least} to {most:,}"
        )
        raise InvalidInput(path, shown(value), expected)
    return value


def flag(value: object, path: Path) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(path, shown(value), "true or false")
    return value


def span(value: object, path: Path, least_ms: int = 0) -> int:
    """Seconds as a number, or a duration such as ``"1m30s"``, in whole milliseconds."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        raise InvalidInput(path, f"{shown(value)} is negative", "seconds from 0 on")
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise InvalidInput(path, shown(value), "a number of seconds")
    span_ms = parse_duration(value, path)
    if span_ms < least_ms:
        raise InvalidInput(path, shown(value), f"at least {least_ms / 1_000:g} seconds")
    return span_ms


def amounts(value: object, path: Path) -> Resources:
    """Whole numbers by the names of resources; nothing where it is left out."""
    for name, amount in names(value, path, RESOURCE_NAMES_MAX).items():
        if name == SLOTS:
            raise InvalidInput((*path, name), "no name for a resource", "another name: every job takes one slot")
        integer(amount, (*path, name), 0)
    return resources(value) if isinstance(value, dict) else NO_RESOURCES


def shown(value: object) -> str:
    """``value`` in a few words; what holds other values is not looked into."""
    if value is None:
        return "missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > INTEGER_MAX:
        return "a number of too many digits"
    return repr(value)[:_SHOWN_MAX] if isinstance(value, str) else str(value)[:_SHOWN_MAX]
