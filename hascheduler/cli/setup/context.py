"""The command ``hascheduler context``: the named sets of URLs and credentials in this user's file."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import complete_context
from hascheduler.cli.output.answers import Answer, OutputForm, Shown, prints
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.contexts import Context, Contexts, checked_token, read_contexts, write_contexts
from hascheduler.errors import InvalidInput

_NONE = "There are no contexts: hascheduler context set NAME --url URL"
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The context", show_default=False, autocompletion=complete_context)
]


def _table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        "": lambda one: "*" if one["current"] else "",
        **plain("name"),
        "urls": lambda one: "\n".join(one["urls"]),
        **plain("token", "output", CA="ca_file"),
    }
    return table_of("", answer["items"], columns, ("CA", "output", "token"), none=_NONE)


@prints(_table, tables=1)
def list_contexts() -> Answer:
    """List the contexts, and which one is in use."""
    contexts = read_contexts()
    return {"items": [_shown(name, contexts) for name in contexts.named]}


def _shown(name: str, contexts: Contexts) -> dict[str, object]:
    """Return the context without its token: instead of it, "set" or the file that holds it."""
    one = contexts.get(name, "NAME")
    token = "set" if one.token else one.token_file or None
    rest = {"ca_file": one.ca_file or None, "output": one.output or None}
    return {"name": name, "current": name == contexts.current, "urls": one.urls, "token": token, **rest}


@example("hascheduler context use prod")
def use(name: Name) -> None:
    """Use a context from now on. HASCHEDULER_URL, --url and --context come before it."""
    contexts = read_contexts()
    contexts.get(name, "NAME")
    write_contexts(replace(contexts, current=name))
    typer.echo(f"in use: {printable(name)}")
    if os.environ.get("HASCHEDULER_URL"):
        typer.echo("hascheduler: HASCHEDULER_URL is set and comes before it", err=True)


@example(
    "hascheduler context set prod --url https://a.example,https://b.example --token-file ~/.hascheduler-token",
    "hascheduler context set prod --token-stdin < token",
)
def set_context(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The context", show_default=False)],
    *,
    urls: Annotated[
        list[str] | None, typer.Option("--url", metavar="URL", help="A replica; repeatable, or several with commas")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="File that holds the token")
    ] = None,
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Store the token from standard input")] = False,
    ca_file: Annotated[
        Path | None, typer.Option("--ca-file", metavar="FILE", help="PEM authorities to verify replicas over HTTPS")
    ] = None,
    output: Annotated[OutputForm | None, typer.Option("--output", help="Output format of its commands")] = None,
) -> None:
    """Create a context, or change what is given.

    The file is only for your eyes (mode 0600). HASCHEDULER_CONFIG names another one than
    ~/.config/hascheduler/contexts.toml.
    """
    check_name(name)
    contexts = read_contexts()
    kept = contexts.named.get(name, Context())
    if urls is not None:
        kept = replace(kept, urls=_checked(urls))
    if not kept.urls:
        raise InvalidInput(("--url",), "is missing", "the URL of a replica, such as http://127.0.0.1:8080")
    if token_file is not None and token_stdin:
        raise InvalidInput(("--token-stdin",), "cannot be combined with --token-file", "only one of them")
    if token_file is not None:
        kept = replace(kept, token="", token_file=_absolute("--token-file", token_file))
    if token_stdin:
        token = checked_token("--token-stdin", sys.stdin.read())
        kept = replace(kept, token=token or "", token_file="")
    if ca_file is not None:
        kept = replace(kept, ca_file=_absolute("--ca-file", ca_file))
    if output is not None:
        kept = replace(kept, output=output.value)
    write_contexts(replace(contexts, named={**contexts.named, name: kept}))
    typer.echo(f"set {name}" if name == contexts.current else f"set {name}; hascheduler context use {name} uses it")


def _checked(urls: list[str]) -> list[str]:
    from hascheduler.client.exchange import Exchange

    try:
        Exchange(urls, None, 0)
    except InvalidInput as error:
        raise InvalidInput(("--url",), error.problem, error.expected) from None
    return [url.strip() for several in urls for url in several.split(",")]


def _absolute(option: str, file: Path) -> str:
    """Return the path as it is from every folder; raise `InvalidInput` if no file is there."""
    if not file.is_file():
        raise InvalidInput((option,), f"{file} is not a file", "an existing file")
    return str(file.absolute())


@prints()
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Default: the one in use", autocompletion=complete_context),
    ] = None,
) -> Shown:
    """Show a context, or the one in use. Its token is not shown."""
    contexts = read_contexts()
    name = name or os.environ.get("HASCHEDULER_CONTEXT") or contexts.current
    if not name:
        raise InvalidInput(("NAME",), "no context is in use", "a name, or hascheduler context use NAME")
    shown = _shown(name, contexts)
    return Shown(shown, _table({"items": [shown]}))


def delete(name: Name) -> None:
    """Delete a context."""
    contexts = read_contexts()
    contexts.get(name, "NAME")
    named = {other: values for other, values in contexts.named.items() if other != name}
    write_contexts(Contexts("" if contexts.current == name else contexts.current, named))
    typer.echo(f"deleted {printable(name)}")
