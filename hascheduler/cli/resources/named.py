"""The commands of a noun that has a name: list, get, put, edit and delete, made of the noun's class.

`hascheduler.cli.resources.nouns` has a row for each noun; its options and columns are those of its fields.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import NewName, NounName
from hascheduler.cli.fields import body_of, columns_of, options_of
from hascheduler.cli.input.normal_forms import NORMAL, body_class
from hascheduler.cli.input.prompts import delete_stored, edit_stored
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Command, Given, Yes, with_options, with_parameters
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.tables import Cell, table_of
from hascheduler.cli.output.yaml_text import NounChange, as_text, as_yaml, change
from hascheduler.cli.replica import Scheduler, named_api

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
        table = self._table if verb == "list" else None
        shown = self.examples.get(verb, ("" if verb == "list" else self.examples["put"][0].split()[0],))
        attach = example(*(f"hascheduler {self.kind} {verb} {one}".rstrip() for one in shown))
        return attach(asks(table, tables=1 if table else 0, manifest=self._manifest)(command))

    def _list(self, scheduler: Scheduler) -> Answer:
        return {"items": list(named_api(scheduler, self.kind).list())}

    def _table(self, answer: Answer) -> RenderableType:
        columns: dict[str, Cell] = {
            "name": lambda one: Text(one["name"], style="bold"),
            **(fields := columns_of(body_class(self.kind), self.columns)),
            "revision": lambda one: str(one["rev"]),
        }
        return table_of("", answer["items"], columns, spare=("revision", *reversed(fields)), none=self.none)

    def _get(self, scheduler: Scheduler, name: NounName) -> Shown:
        return self._shown(named_api(scheduler, self.kind).get(check_name(name)))

    def _put(self, scheduler: Scheduler, name: NewName, *, given: Given) -> Shown:
        api = named_api(scheduler, self.kind)
        before = api.find(check_name(name))
        answer = api.put_document(name, _said(body_of(body_class(self.kind), given)))
        return self._shown(answer, change(before, answer))

    def _edit(self, scheduler: Scheduler, name: NounName, yes: Yes = False, *, given: Given) -> Shown:
        body = body_of(body_class(self.kind), given)
        api = named_api(scheduler, self.kind)
        before = api.get(check_name(name))
        answer = api.patch(name, body) if body else edit_stored(api, self.kind, before, yes=yes)
        return self._shown(answer, change(before, answer))

    def _delete(self, scheduler: Scheduler, name: NounName, yes: Yes = False) -> Shown:
        return delete_stored(scheduler, self.kind, name, yes=yes)

    def _shown(self, answer: Answer, changed: NounChange | None = None) -> Shown:
        """Return what was changed, and the whole as it is now: what is printed stays a document."""
        document = as_text(NORMAL[self.kind](answer))
        if changed is None:
            return Shown(answer, document)
        line = changed.as_text(f"{self.kind} {answer['name']}", "# ")
        return Shown({**answer, **changed.as_json()}, [line, document])

    def _manifest(self, answer: Answer) -> str:
        return as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)})


def _said(body: Answer) -> dict[str, Any]:
    """Return the body without nulls: left out, a field gets its default too."""
    return {
        name: _said(value) if isinstance(value, Mapping) else value for name, value in body.items() if value is not None
    }
