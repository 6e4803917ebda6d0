"""The options that say when a schedule fires, and the trigger of a request that they make.

What their texts mean is not looked at here: the replica judges, or, where none is asked,
`hascheduler.cli.input.trigger_bodies`.
"""

from contextlib import suppress
from typing import Annotated, Any

import typer

from hascheduler.cli.options import Given, Options
from hascheduler.errors import InvalidInput
from hascheduler.model.instants import parse_instant

NONE = "none"
"""What is given for an option in an edit to go back to its default."""

_PATTERNS = ("cron", "every", "at")

TRIGGER: Options = {
    "cron": Annotated[
        str | None,
        typer.Option(
            "--cron", metavar="EXPR", help="Wall times: 5 fields, or 6 with seconds last; or @daily and such."
        ),
    ],
    "timezone": Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Of --cron, such as Europe/Paris; default UTC.")
    ],
    "every": Annotated[
        str | None, typer.Option("--every", metavar="SPAN", help="An interval, such as 10s, 1m30s or 200ms.")
    ],
    "anchor": Annotated[
        str | None,
        typer.Option("--anchor", metavar="INSTANT", help="Counts the intervals from here; default: its creation."),
    ],
    "at": Annotated[
        list[str] | None,
        typer.Option("--at", metavar="INSTANT", help="Once, such as 2030-01-31T09:30:00Z; again for more times."),
    ],
    "jitter": Annotated[
        str | None, typer.Option("--jitter", metavar="SPAN", help="Delay each fire by a fixed part of this span.")
    ],
    "start_at": Annotated[str | None, typer.Option("--start-at", metavar="INSTANT", help="Nothing before.")],
    "end_at": Annotated[str | None, typer.Option("--end-at", metavar="INSTANT", help="Nothing after.")],
    "max_fires": Annotated[str | None, typer.Option("--max-fires", metavar="N", help="Nothing after so many fires.")],
    "exclude": Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="FROM/TO", help="Leave out what lies between; again for more."),
    ],
}


def new_trigger(given: Given) -> dict[str, Any]:
    """A whole trigger; `InvalidInput` unless exactly one pattern is given."""
    if not any(name in given for name in _PATTERNS):
        raise InvalidInput(("--cron",), "no times are given", "one of --cron, --every and --at")
    trigger = changed_trigger(given)
    if "timezone" in trigger and "cron" not in given:
        raise InvalidInput(("--timezone",), "is for wall times", "--cron beside it")
    if "anchor" in trigger and "every" not in given:
        raise InvalidInput(("--anchor",), "is for intervals", "--every beside it")
    return trigger


def changed_trigger(given: Given) -> dict[str, Any]:
    """Those parts of a trigger that are given, as a merge patch; empty for none."""
    patterns = [name for name in _PATTERNS if name in given]
    if len(patterns) > 1:
        flags = " and ".join(f"--{name}" for name in patterns)
        raise InvalidInput((f"--{patterns[1]}",), f"{flags} can't be had together", "one of them")
    trigger: dict[str, Any] = {}
    if "cron" in given:
        trigger |= {"type": "cron", "expression": given["cron"]}
    elif "every" in given:
        trigger |= {"type": "interval", "every": given["every"]}
    elif "at" in given:
        trigger |= _at(given["at"])
    for name in ("timezone", "anchor", "jitter", "start_at", "end_at"):
        if name in given:
            trigger[name] = or_none(given[name])
    if "max_fires" in given:
        trigger["max_fires"] = whole_or_none("--max-fires", given["max_fires"])
    if "exclude" in given:
        trigger["exclude"] = None if given["exclude"] == [NONE] else [_window(text) for text in given["exclude"]]
    return trigger


def or_none(text: str) -> str | None:
    return None if text == NONE else text


def whole_or_none(flag: str, text: str) -> int | None:
    """The number that ``text`` is, or None for ``none``; `InvalidInput` at ``flag``."""
    if text == NONE:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput((flag,), f"{text[:64]!r} is not a whole number", "digits") from None


def _at(texts: list[str]) -> dict[str, Any]:
    if len(texts) == 1:
        return {"type": "once", "at": texts[0]}
    with suppress(InvalidInput):  # whoever reads the trigger says it better, with the index
        texts = sorted(texts, key=parse_instant)
    return {"type": "times", "at": texts}


def _window(text: str) -> dict[str, str]:
    start, slash, end = text.partition("/")
    if not slash:
        raise InvalidInput(("--exclude",), f"{text[:64]!r} is not FROM/TO", "two instants with a slash between")
    return {"from": start, "to": end}
