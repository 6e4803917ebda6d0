"""The options that commands share, and commands whose options no signature spells out."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from hascheduler.errors import InvalidInput

Complete = Callable[[Any, list[str], str], list[str]]


def option(spec: str, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """Return a `typer.Option`; ``spec`` is what help shows: its flags with commas, then a blank and its metavar."""
    flags, _, metavar = spec.partition(" ")
    return typer.Option(*flags.split(","), metavar=metavar or None, help=help, autocompletion=complete, **more)


def argument(metavar: str, help: str, complete: Complete | None = None) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False, autocompletion=complete)


def text_option(spec: str, help: str, complete: Complete | None = None, *, many: bool = False) -> Any:
    """Return the annotation of a text option, which is a list if it may be repeated."""
    kind: Any = list[str] if many else str
    return Annotated[kind | None, option(spec, help, complete)]


Url = Annotated[
    str | None,
    option(
        "--url URL", "Any replica, or several with commas [env var: HASCHEDULER_URL; default: http://127.0.0.1:8080]"
    ),
]


def complete_context(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Return the names of contexts, none if their file is damaged: an error would garble the user's line."""
    from hascheduler.contexts import read_contexts  # brings ssl, which no help needs

    with suppress(InvalidInput):
        return [name for name in read_contexts().named if name.startswith(incomplete)]
    return []


InContext = Annotated[
    str | None,
    option(
        "--context NAME", "Context to use, see `hascheduler context` [env var: HASCHEDULER_CONTEXT]", complete_context
    ),
]
Yes = Annotated[bool, option("--yes,-y", "Do not ask for confirmation")]
DryRun = Annotated[bool, option("--dry-run", "Show what would be done without doing it")]
Because = Annotated[str | None, option("--because TEXT", "Reason, shown to others")]
IdempotencyKey = Annotated[
    str | None, option("--idempotency-key TEXT", "Key of the request; a repeated request creates no second job")
]
LabelFilter = Annotated[list[str] | None, option("--label KEY=VALUE", "Only with this label; repeatable")]

Command = Callable[..., Any]
Options = Mapping[str, Any]
"""The annotation of each option (a type and its ``typer.Option``) by name."""

Given = Mapping[str, Any]
"""The values of the given options."""


def keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_parameters(run: Command, parameters: Iterable[inspect.Parameter], help: str | None) -> Command:
    """Return ``run``, disguised for typer as a function with these parameters and this help."""
    listed = list(parameters)
    run.__doc__ = help
    run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return run


def widened(command: Command, run: Command, more: Mapping[str, tuple[Any, Any]], made: Collection[str] = ()) -> Command:
    """Return ``run`` with the help and options of ``command``, and with ``more``: an annotation and a default by name.

    ``made`` are arguments of ``command`` that ``run`` makes, so no option is needed.
    """
    own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name not in made]
    flags = [keyword(name, annotation, default) for name, (annotation, default) in more.items()]
    run.__dict__.update(command.__dict__)
    return with_parameters(run, [*own, *flags], command.__doc__)


def with_options(argument: str, options: Options) -> Callable[[Command], Command]:
    """Return the command with all of ``options``; its argument ``argument`` gets the given ones."""

    def widen(command: Command) -> Command:
        def run(**values: Any) -> Any:
            offered = {name: values.pop(name) for name in options}
            given = {name: value for name, value in offered.items() if value not in (None, [])}
            return command(**values, **{argument: given})

        return widened(command, run, {name: (annotation, None) for name, annotation in options.items()}, {argument})

    return widen
