"""The command ``hascheduler context``: the named sets of URLs and credentials in this user's file."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import argument, complete_context, option
from hascheduler.cli.output.answers import Answer, OutputForm, prints
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.contexts import Context, Contexts, checked_token, read_contexts, write_contexts
from hascheduler.errors import InvalidInput

Name = Annotated[str, argument("NAME", "The context", complete_context)]
NameOrNone = Annotated[str | None, argument("NAME", "The context; default: the one in use", complete_context)]


def _table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        "": lambda one: "*" if one["current"] else "",
        **plain("name"),
        "urls": lambda one: "\n".join(one["urls"]),
        **plain("token", "output", CA="ca_file"),
    }
    none = "There are no contexts: hascheduler context set NAME --url URL"
    return table_of("", answer.get("items", [answer]), columns, ("CA", "output", "token"), none=none)


@prints(_table, tables=1)
def list_contexts() -> Answer:
    """List the contexts, and which one is in use."""
    contexts = read_contexts()
    return {"items": [_shown(name, contexts) for name in contexts.named]}


@prints(_table)
def show(name: NameOrNone = None) -> Answer:
    """Show a context, or the one in use. Its token is not shown."""
    contexts = read_contexts()
    return _shown(name or os.environ.get("HASCHEDULER_CONTEXT") or contexts.current, contexts)


def _shown(name: str, contexts: Contexts) -> Answer:
    one = contexts.get(name, "NAME")
    token = "set" if one.token else one.token_file or None
    rest = {"token": token, "ca_file": one.ca_file or None, "output": one.output or None}
    return {"name": name, "current": name == contexts.current, "urls": one.urls, **rest}


@example("hascheduler context use prod")
def use(name: Name) -> None:
    """Use a context from now on. HASCHEDULER_URL, --url and --context come before it."""
    contexts = read_contexts()
    contexts.get(name, "NAME")
    write_contexts(replace(contexts, current=name))
    hint = "; HASCHEDULER_URL is set and comes before it" if os.environ.get("HASCHEDULER_URL") else ""
    typer.echo(f"in use: {printable(name)}{hint}")


def _file(flag: str, help: str) -> Any:
    return option(f"{flag} FILE", help, exists=True, dir_okay=False)


@example(
    "hascheduler context set prod --url https://a.example,https://b.example --token-file ~/.hascheduler-token",
    "hascheduler context set prod --token-stdin < token",
)
def set_context(
    name: Annotated[str, argument("NAME", "The context")],
    *,
    url: Annotated[str | None, option("--url URL", "A replica, or several with commas")] = None,
    token_file: Annotated[Path | None, _file("--token-file", "File that holds the token")] = None,
    token_stdin: Annotated[bool, option("--token-stdin", "Store the token from standard input")] = False,
    ca_file: Annotated[Path | None, _file("--ca-file", "PEM authorities to verify replicas over HTTPS")] = None,
    output: Annotated[OutputForm | None, option("--output", "Output format of its commands")] = None,
) -> None:
    """Create a context, or change what is given.

    Only you can read the file: ~/.config/hascheduler/contexts.toml, or the one that HASCHEDULER_CONFIG names.
    """
    contexts = read_contexts()
    kept = contexts.named.get(check_name(name), Context())
    if token_file and token_stdin:
        raise InvalidInput(("--token-stdin",), "cannot be combined with --token-file", "only one of them")
    if token_file or token_stdin:
        kept = replace(kept, token="", token_file="")
    given: dict[str, Any] = {
        "urls": [each.strip() for each in url.split(",")] if url else [],
        "token": checked_token("--token-stdin", sys.stdin.read()) if token_stdin else None,
        "token_file": token_file and str(token_file.absolute()),
        "ca_file": ca_file and str(ca_file.absolute()),
        "output": output and output.value,
    }
    kept = replace(kept, **{field: value for field, value in given.items() if value})
    if not kept.urls:
        raise InvalidInput(("--url",), "is missing", "the URL of a replica, such as http://127.0.0.1:8080")
    write_contexts(replace(contexts, named={**contexts.named, name: kept}))
    typer.echo(f"set {name}" if name == contexts.current else f"set {name}; hascheduler context use {name} uses it")


def delete(name: Name) -> None:
    """Delete a context."""
    contexts = read_contexts()
    contexts.get(name, "NAME")
    named = {other: values for other, values in contexts.named.items() if other != name}
    write_contexts(Contexts("" if contexts.current == name else contexts.current, named))
    typer.echo(f"deleted {printable(name)}")
