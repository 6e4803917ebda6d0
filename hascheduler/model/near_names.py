"""What somebody may have meant who wrote a name that is not known: fields, parameters, settings, commands."""

from collections.abc import Collection
from difflib import get_close_matches

_NAME_LENGTH_MAX = 64
"""Longer ones resemble nothing that is known, and comparing them would take long."""


def expected_name(given: str, known: Collection[str], otherwise: str = "") -> str:
    """The one of ``known`` that is nearest to ``given``; where none is near, ``otherwise``, or else all of them."""
    near = near_names(given, known, 1)
    if near:
        return near[0]
    if otherwise:
        return otherwise
    return f"one of {', '.join(known)}" if known else "none"


def near_names(given: str, known: Collection[str], count_max: int) -> list[str]:
    """Those of ``known`` that resemble ``given``, the nearest first."""
    return get_close_matches(given, known, count_max) if len(given) <= _NAME_LENGTH_MAX else []
