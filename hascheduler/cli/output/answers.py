"""Printing: a command returns an answer, ``-o`` selects the form, ``--watch`` asks repeatedly."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from hascheduler.cli.environment import access
from hascheduler.cli.options import Command, InContext, Url, option, widened
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.instants import Utc, set_utc
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.output.tables import choosing
from hascheduler.cli.output.yaml_text import as_yaml
from hascheduler.cli.replica import as_cli_errors, replica
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.values.error_texts import quoted

Answer = Mapping[str, Any]
Picture = Callable[[Any], RenderableType]


class OutputForm(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    """The form that files of `hascheduler apply` have."""
    NAME = "name"
    WIDE = "wide"
    """Text with all columns."""

    @property
    def is_for_programs(self) -> bool:
        return self in (OutputForm.JSON, OutputForm.YAML)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command's output: the answer for programs, the picture for people, and the exit status."""

    answer: Answer
    picture: RenderableType | list[Any] | None
    """The items of a list are printed one by one, so that their lines of text can be copied."""
    status: int = 0


_OUTPUT = Annotated[
    OutputForm | None, option("-o,--output", "Output format; yaml: as in files", show_default=OutputForm.TEXT.value)
]
_AS_JSON = Annotated[bool, option("--json", "Same as -o json", hidden=True)]
_AS_YAML = Annotated[bool, option("--yaml", "Same as -o yaml", hidden=True)]
_WIDE = Annotated[bool, option("--wide", "Show all columns, even if lines get long")]
_COLUMNS = Annotated[str | None, option("--columns NAME,…", "Show only these columns")]
_PRINTED: dict[str, tuple[Any, Any]] = {
    "output": (_OUTPUT, None),
    "as_json": (_AS_JSON, False),
    "as_yaml": (_AS_YAML, False),
    "utc": (Utc, False),
}


def asks(picture: Picture | None = None, **how: Any) -> Callable[[Command], Command]:
    """Return the decorator of `prints` for a command that takes the replica at ``--url`` as ``scheduler``."""

    def widen(command: Command) -> Command:
        def run(*, url: str | None, in_context: str | None, **values: Any) -> Any:
            with replica(access(url, in_context)) as scheduler:
                return command(scheduler=scheduler, **values)

        asking = widened(command, run, {"url": (Url, None), "in_context": (InContext, None)}, {"scheduler"})
        return prints(picture, **how)(asking)

    return widen


def prints(
    picture: Picture | None = None,
    *,
    tables: int = 0,
    watch_s: float = 0,
    manifest: Callable[[Any], str] = as_yaml,
    name: str = "name",
) -> Callable[[Command], Command]:
    """Return a decorator that makes a command of a function that returns an answer, or a `Shown`.

    ``picture`` draws an answer. A command that shows ``tables`` has ``--wide``, one that shows a single table has
    ``--columns``, and one with ``watch_s`` has ``--watch``, which asks again after that many seconds. ``manifest``
    makes the YAML of one answer, which the field ``name`` identifies. The command gets ``output`` if it has an argument
    of that name.
    """
    more = dict(_PRINTED)
    if watch_s:
        again = option("--watch", f"Repeat every {watch_s:g} s, until Ctrl-C")
        more["watch"] = (Annotated[bool, again], False)
    more |= {"wide": (_WIDE, False)} if tables else {}
    more |= {"columns": (_COLUMNS, None)} if tables == 1 else {}

    def widen(command: Command) -> Command:
        def run(*, output: OutputForm | None, as_json: bool, as_yaml: bool, utc: bool, **values: Any) -> None:
            form = OutputForm.JSON if as_json else OutputForm.YAML if as_yaml else output or _default(values)
            watched, wide, columns = (values.pop(each, None) for each in ("watch", "wide", "columns"))
            if watched and form not in (OutputForm.TEXT, OutputForm.WIDE):
                problem = f"cannot be combined with {'--json' if as_json else f'-o {form}'}"
                raise InvalidInput(("--watch",), problem, "only one of them")
            if utc:
                set_utc(True)
            if "output" in wanted:
                values["output"] = form

            def shown() -> Shown:
                answer = command(**values)
                if isinstance(answer, Shown):
                    return answer
                return Shown(answer, picture(answer) if picture and not form.is_for_programs else None)

            with choosing(columns, wide=bool(wide) or form is OutputForm.WIDE):
                if watched:
                    _watch(shown, watch_s)
                now = shown()
                _print(now, form, manifest, name)
            if now.status:
                raise typer.Exit(now.status)

        wanted = command.__annotations__
        return widened(command, run, more, {"output"})

    return widen


def _default(given: Mapping[str, Any]) -> OutputForm:
    """Return the form that the context of a command with these options sets."""
    output = access(given.get("url"), given.get("in_context")).output or OutputForm.TEXT
    if output not in [*OutputForm]:
        raise InvalidInput(("context", "output"), quoted(output), f"one of {', '.join(OutputForm)}")
    return OutputForm(output)


def _print(shown: Shown, form: OutputForm, manifest: Callable[[Any], str], name: str) -> None:
    answer = shown.answer
    items = answer.get("items", [answer])
    pictures = shown.picture if isinstance(shown.picture, list) else [shown.picture]
    match form:
        case OutputForm.JSON:
            print_json(answer)
        case OutputForm.YAML:
            typer.echo("---\n".join(map(manifest, items)), nl=False)
        case OutputForm.NAME if all(name in one for one in items):
            for one in items:
                typer.echo(one_printable_line(one[name]))
        case _:
            for picture in pictures:
                if picture is not None:
                    console().print(picture, soft_wrap=isinstance(picture, str | Text))


def _watch(shown: Callable[[], Shown], every_s: float) -> None:
    """Show pictures repeatedly, until Ctrl-C."""

    def picture() -> RenderableType:
        return Group(*found) if isinstance(found := shown().picture, list) else found or ""

    with Live(picture(), console=console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every_s)
            try:
                with as_cli_errors():
                    live.update(picture(), refresh=True)
            except WorldError as error:  # the replica may come back, and the user watches for that
                live.update(Text(str(error), style="red"), refresh=True)
