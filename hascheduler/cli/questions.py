"""Asks before something is done. Where nobody can answer, ``--yes`` has to say it."""

import sys

import typer

from hascheduler.cli.printable import printable
from hascheduler.errors import InvalidInput


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def agreed(question: str, *, yes: bool) -> bool:
    """What the user says; `InvalidInput` when there is no terminal to ask on."""
    if yes:
        return True
    if not can_ask():
        raise InvalidInput(("--yes",), f"nobody is here to ask: {question}", "--yes where there is no terminal")
    return typer.confirm(printable(question))
