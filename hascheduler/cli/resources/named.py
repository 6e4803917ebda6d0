"""What the commands on definitions, lanes, calendars and tenants do: list, get, put and edit a resource with a name.

The file of each resource says which options and columns it has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text

from hascheduler.cli.input.normal_forms import NORMAL
from hascheduler.cli.input.prompts import edit_document
from hascheduler.cli.input.values import check_name
from hascheduler.cli.output.changes import NounChange, change
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.tables import FittedTable
from hascheduler.cli.output.yaml_text import as_text, as_yaml
from hascheduler.cli.replica import named_api, replica
from hascheduler.client.synchronous.named import NamedApi

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NamedResource:
    """``cells`` are a noun's cells in the list, without name and revision; ``none`` is said where there are none."""

    kind: str
    columns: tuple[str, ...]
    cells: Callable[[Answer], tuple[str, ...]]
    none: str

    def list(self, url: str, *, as_json: bool) -> None:
        with replica(url) as scheduler:
            found = list(named_api(scheduler, self.kind).list())
        if as_json:
            print_json({"items": found})
            return
        if not found:
            console().print(Text(self.none, style="dim"))
            return
        table = FittedTable("", "name", *self.columns, "revision", spare=("revision", *reversed(self.columns)))
        for one in found:
            cells = (Text(cell) for cell in self.cells(one))
            table.add_row(Text(one["name"], style="bold"), *cells, str(one["rev"]))
        console().print(table)

    def get(self, name: str, url: str, *, as_json: bool, as_manifest: bool) -> None:
        with replica(url) as scheduler:
            answer = named_api(scheduler, self.kind).get(check_name(name))
        if as_manifest and not as_json:
            typer.echo(as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)}), nl=False)
        else:
            self._show(answer, as_json=as_json)

    def put(self, name: str, body: Answer, url: str, *, as_json: bool) -> None:
        """What ``body`` has as None gets its default, as what it leaves out does."""
        said = {field: value for field, value in body.items() if value is not None}
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.find(check_name(name))
            answer = api.put_document(name, said)
        self._tell(answer, change(before, answer), as_json=as_json)

    def edit(self, name: str, body: Answer, url: str, *, yes: bool, as_json: bool) -> None:
        """Change what ``body`` has; where that is nothing, in an editor."""
        check_name(name)
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.get(name)
            answer = api.patch(name, body) if body else self._in_editor(api, before, yes=yes)
        self._tell(answer, change(before, answer), as_json=as_json)

    def _in_editor(self, api: NamedApi[Any], stored: Answer, *, yes: bool) -> Answer:
        name, normal = stored["name"], NORMAL[self.kind]

        def write(edited: dict[str, Any]) -> Any:
            body = {part: value for part, value in edited.items() if part != "name"}
            return api.put_document(name, body, if_match=stored["rev"])

        return edit_document(name, normal(stored), normal, write, yes=yes) or stored

    def _tell(self, answer: Answer, changed: NounChange, *, as_json: bool) -> None:
        """What was changed, and the whole as it is now: what is printed stays a document."""
        if as_json:
            print_json({**answer, **changed.as_json()})
        else:
            console().print(changed.as_text(f"{self.kind} {answer['name']}", "# "), soft_wrap=True)
            self._show(answer, as_json=False)

    def _show(self, answer: Answer, *, as_json: bool) -> None:
        if as_json:
            print_json(answer)
        else:
            console().print(as_text(NORMAL[self.kind](answer)))
