"""The commands on definitions."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.diffs import as_text, as_yaml
from hascheduler.cli.editing import edit_document
from hascheduler.cli.names import DefinitionName, NewName
from hascheduler.cli.normal_forms import normal_definition
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Url, Yes, with_options
from hascheduler.cli.questions import agreed
from hascheduler.cli.tables import console, new_table, or_dash, print_json
from hascheduler.cli.trigger_options import whole_or_none

_LIMITS: Options = {
    "max_concurrency": Annotated[
        str | None,
        typer.Option("--max-concurrency", metavar="N", help="How many of its jobs run at once; none: no limit."),
    ],
    "attempts": Annotated[
        str | None, typer.Option("--attempts", metavar="N", help="Attempts that may be lost before a job fails.")
    ],
}


@example("hascheduler definition list")
def list_definitions(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the definitions."""
    with Client(url) as client:
        found = list(client.items("/v1/definitions"))
    if as_json:
        print_json({"items": found})
    else:
        console().print(_table(found))


@example("hascheduler definition get repack")
def get(name: DefinitionName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one definition."""
    with Client(url) as client:
        answer = client.get(path_of("definition", name))
    if as_manifest and not as_json:
        typer.echo(as_yaml({"kind": "Definition", **normal_definition(answer)}), nl=False)
    else:
        _show(answer, as_json=as_json)


@example("hascheduler definition put repack --max-concurrency 3 --attempts 5")
@with_options("given", _LIMITS)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a definition.

    What is left out gets its default.
    """
    body = _body(given)
    with Client(url) as client:
        answer = client.ask("PUT", path_of("definition", name), body)
    _show(answer, as_json=as_json)


@example("hascheduler definition edit repack --max-concurrency none", "EDITOR=vi hascheduler definition edit repack")
@with_options("given", _LIMITS)
def edit(
    name: DefinitionName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given
) -> None:
    """Edit a definition, by options or in $EDITOR."""
    path, body = path_of("definition", name), _body(given)
    with Client(url) as client:
        answer = client.ask("PATCH", path, body) if body else _in_editor(client, name, yes=yes)
    _show(answer, as_json=as_json)


@example("hascheduler definition delete repack --yes")
def delete(name: DefinitionName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    with Client(url) as client:
        path = path_of("definition", name)
        stored = client.get(path)
        deleted = agreed(f"Delete the definition {name}?", yes=yes)
        if deleted:
            client.ask("DELETE", path, rev=stored["rev"])
    if as_json:
        print_json({"name": name, "deleted": deleted})
    else:
        console().print(f"deleted {name}" if deleted else "left as it is", markup=False)


def _body(given: Given) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if "max_concurrency" in given:
        body["max_concurrency"] = whole_or_none("--max-concurrency", given["max_concurrency"])
    if "attempts" in given:
        attempts = whole_or_none("--attempts", given["attempts"])
        body["retry"] = None if attempts is None else {"attempts": attempts}
    return body


def _in_editor(client: Client, name: str, *, yes: bool) -> dict[str, Any]:
    path = path_of("definition", name)
    stored = client.get(path)

    def write(edited: dict[str, Any]) -> dict[str, Any]:
        body = {part: value for part, value in edited.items() if part != "name"}
        return client.ask("PUT", path, body, rev=stored["rev"])

    return edit_document(name, normal_definition(stored), normal_definition, write, yes=yes) or stored


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        console().print(as_text(normal_definition(answer)))


def _table(found: Sequence[dict[str, Any]]) -> RenderableType:
    if not found:
        return Text("There are no definitions; every job has the default limits.", style="dim")
    table = new_table("", "name", "max concurrency", "attempts", "revision")
    for one in found:
        attempts = (one.get("retry") or {}).get("attempts")
        table.add_row(
            Text(one["name"], style="bold"), or_dash(one.get("max_concurrency")), or_dash(attempts), str(one["rev"])
        )
    return table
