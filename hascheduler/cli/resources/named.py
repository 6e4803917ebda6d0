"""What the commands on definitions, lanes, calendars and tenants do: list, get, put, edit and delete what has a name.

`hascheduler.cli.resources.nouns` says which options and columns each has.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.completion import NewName, argument, names_of
from hascheduler.cli.input.normal_forms import NORMAL
from hascheduler.cli.input.prompts import delete_stored, edit_document
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import (
    DEFAULT_URL,
    AsJson,
    AsYaml,
    Command,
    Given,
    Options,
    Url,
    Yes,
    keyword,
    with_options,
    with_parameters,
)
from hascheduler.cli.output.console import console, print_answer, print_json
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.output.yaml_text import NounChange, as_text, as_yaml, change
from hascheduler.cli.replica import named_api, replica
from hascheduler.client.synchronous.named import NamedApi

Answer = Mapping[str, Any]

_COMMON = {"url": (Url, DEFAULT_URL), "as_json": (AsJson, False)}
_YES = {"yes": (Yes, False)}


@dataclass(frozen=True, slots=True)
class Noun:
    """``cells`` are one's cells in the list, without name and revision; ``none`` is said if there are none.

    ``body`` makes a request of the options; ``deleted`` is the first half of the help of ``delete``, and so on.
    ``examples`` are those of `put`, `edit`, and the name in all others.
    """

    kind: str
    options: Options
    body: Callable[[Given], dict[str, Any]]
    columns: tuple[str, ...]
    cells: Callable[[Answer], tuple[str, ...]]
    none: str
    put_help: str
    edit_help: str
    delete_help: str
    example: str
    put_examples: Sequence[str]
    edit_examples: Sequence[str]

    @property
    def list(self) -> Command:
        help = f"List the {self.kind}s."
        return example(f"hascheduler {self.kind} list")(with_columns(self._command(self._list, help)))

    @property
    def get(self) -> Command:
        more = {"as_manifest": (AsYaml, False)}
        command = self._command(self._get, f"Show one {self.kind}.", self._name, {**_COMMON, **more})
        return example(f"hascheduler {self.kind} get {self.example}")(command)

    @property
    def put(self) -> Command:
        command = self._command(self._put, f"Make or replace a {self.kind}.\n\n{self.put_help}", NewName)
        return example(*self.put_examples)(with_options("given", self.options)(command))

    @property
    def edit(self) -> Command:
        help = f"Edit a {self.kind}, by options or in $EDITOR.\n\n{self.edit_help}"
        command = self._command(self._edit, help, self._name, {**_YES, **_COMMON})
        return example(*self.edit_examples)(with_options("given", self.options)(command))

    @property
    def delete(self) -> Command:
        command = self._command(self._delete, self.delete_help, self._name, {**_YES, **_COMMON})
        return example(f"hascheduler {self.kind} delete {self.example} --yes")(command)

    @property
    def _name(self) -> Any:
        return Annotated[str, argument("NAME", f"The {self.kind}", names_of(self.kind))]

    def _command(
        self, run: Callable[..., None], help: str, name: Any = None, more: Mapping[str, Any] = _COMMON
    ) -> Command:
        named = [] if name is None else [keyword("name", name, inspect.Parameter.empty)]
        options = (keyword(name, annotation, default) for name, (annotation, default) in more.items())
        return with_parameters(partial(run), [*named, *options], help)

    def _list(self, url: str, *, as_json: bool) -> None:
        with replica(url) as scheduler:
            found = [*named_api(scheduler, self.kind).list()]
        print_answer({"items": found}, lambda _: self._table(found), as_json=as_json)

    def _table(self, found: Sequence[Answer]) -> FittedTable | Text:
        if not found:
            return Text(self.none, style="dim")
        table = FittedTable("", "name", *self.columns, "revision", spare=("revision", *reversed(self.columns)))
        for one in found:
            cells = (Text(cell) for cell in self.cells(one))
            table.add_row(Text(one["name"], style="bold"), *cells, str(one["rev"]))
        return table

    def _get(self, name: str, url: str, *, as_json: bool, as_manifest: bool) -> None:
        with replica(url) as scheduler:
            answer = named_api(scheduler, self.kind).get(check_name(name))
        if as_manifest and not as_json:
            typer.echo(as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)}), nl=False)
        else:
            print_answer(answer, lambda _: self._document(answer), as_json=as_json)

    def _put(self, name: str, url: str, *, as_json: bool, given: Given) -> None:
        # None asks for the default, as what is left out does, in parts too.
        parts = {field: _said(value) if field == "retry" else value for field, value in self.body(given).items()}
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.find(check_name(name))
            answer = api.put_document(name, _said(parts))
        self._tell(answer, change(before, answer), as_json=as_json)

    def _edit(self, name: str, url: str, *, yes: bool, as_json: bool, given: Given) -> None:
        check_name(name)
        body = self.body(given)
        with replica(url) as scheduler:
            api = named_api(scheduler, self.kind)
            before = api.get(name)
            answer = api.patch(name, body) if body else self._in_editor(api, before, yes=yes)
        self._tell(answer, change(before, answer), as_json=as_json)

    def _delete(self, name: str, url: str, *, yes: bool, as_json: bool) -> None:
        delete_stored(self.kind, name, yes=yes, url=url, as_json=as_json)

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
            console().print(self._document(answer))

    def _document(self, answer: Answer) -> Text:
        return as_text(NORMAL[self.kind](answer))


def _said(body: Answer) -> dict[str, Any]:
    return {field: value for field, value in body.items() if value is not None}
