"""Every command with its options; an option that many commands take is explained once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import typer

from docs.generate.markdown import code, fenced, head, prose
from hascheduler.cli.app import app
from hascheduler.settings import PREFIX

_INTRO = """\
`hascheduler COMMAND --help` shows one command with all its options. An option is explained at the first command that
takes it, or under [Shared options](#shared-options) if many do; later commands only list it. Durations are texts such
as `90s`, instants are RFC 3339.

| exit status | means |
|---|---|
| 0 | done |
| 1 | failure: no answer, a failed job, a finding |
| 2 | wrong usage, or a database that a process cannot start with; one line says what is wrong and what is expected |
| 130 | Ctrl-C |
"""
_SHARED_BY = 5
"""Options of at least this many commands are explained at the top of the page."""

_TAKE_ALL_SETTINGS = (("serve",), ("processor",))


class _Option(NamedTuple):
    names: str
    """As the help shows them, such as ``--wait SPAN``."""

    help: str

    @property
    def short(self) -> str:
        return self.names.split()[0].rstrip(",")

    @property
    def is_setting(self) -> bool:
        return self.help.startswith(PREFIX)

    @property
    def is_filter(self) -> bool:
        return self.help.startswith("Only ")

    @property
    def may_be_shared(self) -> bool:
        return self.names.startswith("-") and not self.is_setting


class _Command(NamedTuple):
    words: tuple[str, ...]
    help: str
    example: str
    options: tuple[_Option, ...]


def page() -> str:
    root, *commands = _commands(typer.main.get_command(app), (), None)
    uses = Counter(option for command in commands for option in command.options if option.may_be_shared)
    shared = list(dict.fromkeys((*root.options, *(option for option, count in uses.items() if count >= _SHARED_BY))))
    of_most = {option for option, count in uses.items() if count > len(commands) / 2}
    parts = [
        head("Command line", "hascheduler/cli", _INTRO),
        "## Shared options\n",
        _bullets(option for option in shared if not option.is_filter),
        f"Most commands take {', '.join(sorted(code(option.short) for option in of_most))}; only this list has them.\n",
        "### Filters of jobs and schedules\n",
        _bullets(option for option in shared if option.is_filter),
    ]
    explained = set(shared)
    for command in commands:
        level = "##" if len(command.words) == 1 else "###"
        parts += [f"{level} {' '.join(command.words)}\n", prose(command.help) + "\n"]
        parts += _options(command, explained, of_most)
        if command.example != f"hascheduler {' '.join(command.words)}" and command.example:
            parts.append(fenced(command.example))
        explained |= {option for option in command.options if not option.is_setting}
    return "\n".join(parts)


def _options(command: _Command, explained: set[_Option], of_most: set[_Option]) -> Iterator[str]:
    own = [option for option in command.options if option not in explained and not option.is_setting]
    known = [code(option.short) for option in command.options if option in explained - of_most]
    settings = [code(option.short) for option in command.options if option.is_setting]
    if own:
        yield _bullets(own)
    if known:
        yield f"Also {', '.join(known)}.\n"
    if command.words in _TAKE_ALL_SETTINGS:
        yield "Each [setting](settings.md) is an option.\n"
    elif settings:
        yield f"[Settings](settings.md) as options: {', '.join(settings)}.\n"


def _bullets(options: Iterable[_Option]) -> str:
    return "\n".join(f"- {code(option.names)}: {prose(option.help)}" for option in options) + "\n"


def _commands(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[_Command]:
    context = command.context_class(command, info_name=words[-1] if words else "hascheduler", parent=parent)
    yield _Command(words, _text(command), _example(command.epilog or ""), tuple(_taken(command, context)))
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name), (*words, name), context)


def _taken(command: Any, context: Any) -> Iterator[_Option]:
    for parameter in command.get_params(context):
        record = None if getattr(parameter, "hidden", False) else parameter.get_help_record(context)
        if record and record[0] != "--help":
            yield _Option(record[0], " ".join(record[1].split()))


def _text(command: Any) -> str:
    """Return the help without its paragraph on settings, which have their own page."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.startswith("Each setting is an option"))


def _example(epilog: str) -> str:
    """Return the first example of a command's help, with the lines that continue it."""
    lines = [line for line in epilog.splitlines() if line.startswith("  ")]
    return "\n".join(line.strip() for line in lines[:1])
