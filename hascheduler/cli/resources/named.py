"""The commands of a noun that has a name: list, get, put, edit and delete, made of the noun's class.

`hascheduler.cli.resources.nouns` has a row for each noun; its options and columns are those of its fields.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from hascheduler.cli.completion import NewName, NounName
from hascheduler.cli.fields import body_of, columns_of, options_of
from hascheduler.cli.input.normal_forms import NORMAL, body_class
from hascheduler.cli.input.prompts import delete_stored, edit_document
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Command, Given, Url, Yes, with_options, with_parameters
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.tables import Cell, FittedTable, OutputForm, print_all, table_of, with_columns, with_output
from hascheduler.cli.output.yaml_text import NounChange, as_text, as_yaml, change
from hascheduler.cli.replica import named_api, replica

if TYPE_CHECKING:
    from hascheduler.client.synchronous.named import NamedApi

Answer = Mapping[str, Any]

_HELP = {
    "list": "List the {kind}s.",
    "get": "Show one {kind}.",
    "put": "Make or replace a {kind}.\n\nWhat is left out gets its default. Prints what was changed, and the whole.",
    "edit": "Edit a {kind}, by options or in $EDITOR.\n\nWhat is given changes, all else stays.",
    "delete": "Delete a {kind}{deleted}",
}


@dataclass(frozen=True, slots=True)
class NamedCommands:
    """``columns`` are fields in the order of the list's columns; ``none`` is said if there are none.

    ``deleted`` ends the help of ``delete``. Examples are what follows the command, by its name.
    """

    kind: str
    columns: str
    none: str
    deleted: str
    examples: Mapping[str, Sequence[str]]

    def __getattr__(self, verb: str) -> Command:
        """Return a command when it is asked for: its options import the class of the noun."""
        if verb not in _HELP:
            raise AttributeError(verb)
        run = getattr(self, f"_{verb}")
        help = _HELP[verb].format(kind=self.kind, deleted=self.deleted)
        command = with_parameters(partial(run), inspect.signature(run).parameters.values(), help)
        if verb in ("put", "edit"):
            command = with_options("given", options_of(body_class(self.kind)))(command)
        if verb != "delete":
            command = with_output(command)
        if verb == "list":
            command = with_columns(command)
        shown = self.examples.get(verb, ("" if verb == "list" else self.examples["put"][0].split()[0],))
        return example(*(f"hascheduler {self.kind} {verb} {one}".rstrip() for one in shown))(command)

    def _list(self, url: Url = DEFAULT_URL, *, output: OutputForm) -> None:
        with replica(url) as scheduler:
            found = [*named_api(scheduler, self.kind).list()]
        print_all(found, self._table, self._manifest, output)

    def _table(self, found: Sequence[Answer]) -> FittedTable | Text:
        if not found:
            return Text(self.none, style="dim")
        columns: dict[str, Cell] = {
            "name": lambda one: Text(one["name"], style="bold"),
            **(fields := columns_of(body_class(self.kind), self.columns)),
            "revision": lambda one: str(one["rev"]),
        }
        return table_of("", found, columns, spare=("revision", *reversed(fields)))

    def _get(self, name: NounName, url: Url = DEFAULT_URL, *, output: OutputForm) -> None:
        with replica(url) as scheduler:
            answer = named_api(scheduler, self.kind).get(check_name(name))
        self._print(answer, None, output)

    def _put(self, name: NewName, url: Url = DEFAULT_URL, *, given: Given, output: OutputForm) -> None:
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.find(check_name(name))
            answer = api.put_document(name, _said(body_of(body_class(self.kind), given)))
        self._print(answer, change(before, answer), output)

    def _edit(
        self, name: NounName, yes: Yes = False, url: Url = DEFAULT_URL, *, given: Given, output: OutputForm
    ) -> None:
        check_name(name)
        body = body_of(body_class(self.kind), given)
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.get(name)
            answer = api.patch(name, body) if body else self._in_editor(api, before, yes=yes)
        self._print(answer, change(before, answer), output)

    def _delete(self, name: NounName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
        delete_stored(self.kind, name, yes=yes, url=url, as_json=as_json)

    def _in_editor(self, api: "NamedApi[Any]", stored: Answer, *, yes: bool) -> Answer:
        name, normal = stored["name"], NORMAL[self.kind]

        def write(edited: dict[str, Any]) -> Any:
            body = {part: value for part, value in edited.items() if part != "name"}
            return api.put_document(name, body, if_match=stored["rev"])

        return edit_document(name, normal(stored), normal, write, yes=yes) or stored

    def _print(self, answer: Answer, changed: NounChange | None, output: OutputForm) -> None:
        """Print what was changed, and the whole as it is now: what is printed stays a document."""
        match output:
            case OutputForm.JSON:
                print_json({**answer, **(changed.as_json() if changed else {})})
            case OutputForm.YAML:
                typer.echo(self._manifest(answer), nl=False)
            case OutputForm.NAME:
                console().print(answer["name"])
            case _:
                if changed:
                    console().print(changed.as_text(f"{self.kind} {answer['name']}", "# "), soft_wrap=True)
                console().print(as_text(NORMAL[self.kind](answer)))

    def _manifest(self, answer: Answer) -> str:
        return as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)})


def _said(body: Answer) -> dict[str, Any]:
    """Return the body without nulls: left out, a field gets its default too."""
    return {
        name: _said(value) if isinstance(value, Mapping) else value for name, value in body.items() if value is not None
    }
