"""The options that commands share, and a way to pass many of them to a command as one mapping."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

DEFAULT_URL = "http://127.0.0.1:8080"

Url = Annotated[str, typer.Option("--url", envvar="HASCHEDULER_URL", help="Any replica", show_default=True)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
AsYaml = Annotated[bool, typer.Option("--yaml", help="Print it as a document for `hascheduler apply`.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show it again every second, until Ctrl-C.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
LabelFilter = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Only those with this label; again for more."),
]

Owner = Annotated[
    str | None,
    typer.Option("--owner", metavar="NAME", help="Whose `apply` may prune it; none: nobody's."),
]

Options = Mapping[str, Any]
"""An option's annotation (a type and its ``typer.Option``) by its name."""

Given = Mapping[str, Any]
"""The values of those options that were given."""


def widened(
    command: Callable[..., None], run: Callable[..., None], more: Mapping[str, tuple[Any, Any]]
) -> Callable[..., None]:
    """``run`` with the help and the options of ``command``, and with ``more``: an annotation and a default by name."""
    own = inspect.signature(command).parameters.values()
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in more.items()
    ]
    parameters = [*own, *flags]
    run.__dict__.update(command.__dict__)
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def with_options(argument: str, options: Options) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The command with all of ``options``; it gets those that were given as its argument ``argument``."""

    def widen(command: Callable[..., None]) -> Callable[..., None]:
        own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != argument]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in options.items()
        ]

        def run(**values: Any) -> None:
            offered = {name: values.pop(name) for name in options}
            given = {name: value for name, value in offered.items() if value not in (None, [])}
            command(**values, **{argument: given})

        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]  # what typer reads
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *more]}
        return run

    return widen
