"""What the commands on definitions, lanes and tenants do: list, get, put and edit a resource with a name.

The file of each resource says which options and columns it has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.input.normal_forms import NORMAL
from hascheduler.cli.input.prompts import edit_document
from hascheduler.cli.output.console import console, new_table, print_json
from hascheduler.cli.output.yaml_text import as_text, as_yaml

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NamedResource:
    """``cells`` are a noun's cells in the list, without name and revision; ``none`` is said where there are none."""

    kind: str
    columns: tuple[str, ...]
    cells: Callable[[Answer], tuple[str, ...]]
    none: str

    def list(self, url: str, *, as_json: bool) -> None:
        with Client(url) as client:
            found = list(client.items(f"/v1/{self.kind}s"))
        if as_json:
            print_json({"items": found})
            return
        if not found:
            console().print(Text(self.none, style="dim"))
            return
        table = new_table("", "name", *self.columns, "revision")
        for one in found:
            cells = (Text(cell) for cell in self.cells(one))
            table.add_row(Text(one["name"], style="bold"), *cells, str(one["rev"]))
        console().print(table)

    def get(self, name: str, url: str, *, as_json: bool, as_manifest: bool) -> None:
        with Client(url) as client:
            answer = client.get(path_of(self.kind, name))
        if as_manifest and not as_json:
            typer.echo(as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)}), nl=False)
        else:
            self._show(answer, as_json=as_json)

    def put(self, name: str, body: Answer, url: str, *, as_json: bool) -> None:
        """What ``body`` has as None gets its default, as what it leaves out does."""
        said = {field: value for field, value in body.items() if value is not None}
        with Client(url) as client:
            answer = client.ask("PUT", path_of(self.kind, name), said)
        self._show(answer, as_json=as_json)

    def edit(self, name: str, body: Answer, url: str, *, yes: bool, as_json: bool) -> None:
        """Change what ``body`` has; where that is nothing, in an editor."""
        path = path_of(self.kind, name)
        with Client(url) as client:
            answer = client.ask("PATCH", path, body) if body else self._in_editor(client, name, path, yes=yes)
        self._show(answer, as_json=as_json)

    def _in_editor(self, client: Client, name: str, path: str, *, yes: bool) -> dict[str, Any]:
        stored, normal = client.get(path), NORMAL[self.kind]

        def write(edited: dict[str, Any]) -> dict[str, Any]:
            body = {part: value for part, value in edited.items() if part != "name"}
            return client.ask("PUT", path, body, rev=stored["rev"])

        return edit_document(name, normal(stored), normal, write, yes=yes) or stored

    def _show(self, answer: Answer, *, as_json: bool) -> None:
        if as_json:
            print_json(answer)
        else:
            console().print(as_text(NORMAL[self.kind](answer)))
