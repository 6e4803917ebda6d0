"""Rates as options say them and as tables show them: ``100/1s``."""

from collections.abc import Mapping
from typing import Any

from hascheduler.cli.schedules.trigger_options import or_none, whole_or_none
from hascheduler.errors import InvalidInput


def rate_or_none(flag: str, text: str) -> dict[str, Any] | None:
    """The part of a request that ``N/SPAN`` is, None for ``none``; `InvalidInput` at ``flag``."""
    if or_none(text) is None:
        return None
    count, slash, per = text.partition("/")
    if not slash:
        raise InvalidInput((flag,), f"{text[:64]!r} is not N/SPAN", "such as 100/1s")
    return {"count": whole_or_none(flag, count), "per": per}


def rate_text(rate: Mapping[str, Any] | None) -> str:
    return "–" if rate is None else f"{rate['count']}/{rate['per']}"
