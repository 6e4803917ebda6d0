"""Every command with its help, as the command itself gives it."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from docs.generate.markdown import fenced, head
from hascheduler.cli.app import app

_WIDTH = 100
_INTRO = """\
`hascheduler COMMAND --help` shows the same. Commands that ask a replica take `--url` or `HASCHEDULER_URL`, and a token
from `HASCHEDULER_TOKEN` or `HASCHEDULER_TOKEN_FILE`. `--json` prints one JSON document for programs.

| exit status | means |
|---|---|
| 0 | it was done |
| 1 | the world: no answer, a job that failed, a finding |
| 2 | the caller, or a database that a process can't start with: one line says what is wrong, and what would be right |
| 130 | Ctrl-C |

`hascheduler serve` and `hascheduler processor` take [settings](settings.md) as options; they are left out here.
"""
_TAKE_SETTINGS = ("serve", "processor")


def page() -> str:
    root = typer.main.get_command(app)
    parts = [head("Command line", "hascheduler/cli", _INTRO)]
    for words, text in _helps(root, ("hascheduler",), None):
        level = "##" if len(words) <= 2 else "###"
        parts += [f"{level} {' '.join(words)}\n", fenced(_without_settings(words, text))]
    return "\n".join(parts)


def _helps(
    command: Any, words: tuple[str, ...], parent: Any, called: str = ""
) -> Iterator[tuple[tuple[str, ...], str]]:
    context = command.context_class(
        command, info_name=called or words[-1], parent=parent, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    yield words, command.get_help(context)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            if isinstance(command, TyperGroup):
                yield from _helps(command.get_command(context, name), (*words, name), context)
            else:  # a command that has commands besides: its arguments are none of theirs
                yield from _helps(command.get_command(context, name), (*words, name), parent, f"{words[-1]} {name}")


def _without_settings(words: tuple[str, ...], text: str) -> str:
    if words[-1] not in _TAKE_SETTINGS or len(words) != 2:
        return text
    blocks = re.split(r"(?m)^(?=  --)", text)
    return "".join(block for block in blocks if "HASCHEDULER_" not in block or not block.startswith("  --"))
