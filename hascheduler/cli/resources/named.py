"""The commands ``hascheduler definition``, ``lane``, ``calendar`` and ``tenant``, and a check if a noun is still used.

Each has list, get, put, edit and delete, derived from the class of the noun. The check keeps ``apply --prune`` from
deleting nouns in use. References are names, and anybody may name a noun that does not exist, so the result holds for
the moment of the check only. Schedules, jobs that have not ended, and a tenant's tokens count.
"""

import inspect
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import NewName, NounName
from hascheduler.cli.fields import body_of, columns_of, options_of
from hascheduler.cli.input.documents import NORMAL, body_class
from hascheduler.cli.input.values import check_name, delete_stored, edit_stored
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Command, Given, Yes, with_options, with_parameters
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.tables import Cell, table_of
from hascheduler.cli.output.yaml_text import NounChange, as_text, as_yaml, change, defaults_text
from hascheduler.cli.replica import Scheduler, named_api
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.schema.lane import DEFAULT_LANE
from hascheduler.schema.tenant import DEFAULT_TENANT

_HELP = {
    "list": "List the {kind}s.",
    "get": "Show one {kind}.\n\nFields that were left out are shown with their defaults.",
    "put": "Create or replace a {kind}.\n\nFields that are left out get their defaults. Prints the changes and the"
    " result.",
    "edit": "Edit a {kind}, by options or in $EDITOR.\n\nOnly the given fields change.",
    "delete": "Delete a {kind}{deleted}",
}


@dataclass(frozen=True, slots=True)
class NamedCommands:
    """The commands of one kind of noun.

    ``columns`` are fields in the order of the list's columns; ``none`` is shown if there are none. ``deleted`` ends the
    help of ``delete``. Examples are the arguments after the command, by its name.
    """

    kind: str
    columns: str
    none: str
    deleted: str
    examples: Mapping[str, Sequence[str]]

    def __getattr__(self, verb: str) -> Command:
        """Return a command on first access, because its options import the class of the noun."""
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
        answer = named_api(scheduler, self.kind).get(check_name(name))
        normal = NORMAL[self.kind](answer)
        return Shown(answer, [as_text(normal), defaults_text(normal, answer)])

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

    def _shown(self, answer: Answer, changed: NounChange) -> Shown:
        """Return the change as a comment, then the noun as it is now, so that the output stays one document."""
        document = as_text(NORMAL[self.kind](answer))
        line = changed.as_text(f"{self.kind} {answer['name']}", "# ")
        return Shown({**answer, **changed.as_json()}, [line, document])

    def _manifest(self, answer: Answer) -> str:
        return as_yaml({"kind": self.kind.capitalize(), **NORMAL[self.kind](answer)})


def _said(body: Answer) -> dict[str, Any]:
    """Return the body without nulls: a field that is left out gets its default too."""
    return {
        name: _said(value) if isinstance(value, Mapping) else value for name, value in body.items() if value is not None
    }


DEFINITION = NamedCommands(
    "definition",
    "max_concurrency tier conflict_group rate_limit default_cost resources retry timeout owner key_limits unique",
    none="There are no definitions; all jobs have the default limits.",
    deleted=". Its jobs continue with the default limits.",
    examples={
        "put": (
            "repack --max-concurrency 3 --conflict-group git --tier 10 --rate-limit 100/1s --resources cpu=2",
            "repack --timeout 5m --total-timeout 1h --retry-attempts 5 --retry-backoff 2s --retry-max 1m",
        ),
        "edit": ("repack --max-concurrency none", "repack    (in $EDITOR)"),
    },
)
LANE = NamedCommands(
    "lane",
    "weight promote_after policy owner",
    none="There are no lanes; all lanes have the defaults.",
    deleted=". Its jobs continue in a lane with the defaults.",
    examples={
        "put": ("bulk --weight 2 --promote-after 30s --policy aged_priority,arrival",),
        "edit": ("bulk --weight 3 --policy none", "bulk    (in $EDITOR)"),
    },
)
CALENDAR = NamedCommands(
    "calendar",
    "weekdays include exclude owner",
    none="There are no calendars.",
    deleted=" that no schedule uses.",
    examples={
        "put": (
            "business-days --weekdays mon-fri",
            "holidays-de --include 01-01,05-01,10-03,12-25,12-26,2030-04-19",
        ),
        "edit": ("business-days --exclude 12-24,12-31", "business-days    (in $EDITOR)"),
    },
)
TENANT = NamedCommands(
    "tenant",
    "max_running max_pending submit_rate max_schedules fire_rate owner",
    none="There are no tenants; no tenant has a quota.",
    deleted=". Its jobs continue without a quota.",
    examples={
        "put": ("acme --max-running 10 --max-pending 10000 --submit-rate 100/1s",),
        "edit": ("acme --max-running none", "acme    (in $EDITOR)"),
    },
)


Noun = tuple[str, str]
"""A kind and a name."""
Planned = Mapping[str, Mapping[str, Any] | None]
"""The planned body of each schedule by name; None if it will be deleted."""

_LIVE = [state for state in JobState if state not in TERMINAL]
_OF_JOBS = ("definition", "lane", "tenant")
_UNSAID = {"lane": DEFAULT_LANE, "tenant": DEFAULT_TENANT}
CHECKED_JOBS_MAX = 10_000
"""How many live jobs are checked to find one of a lane, because jobs can't be listed by lane."""


def uses(scheduler: Scheduler, nouns: Sequence[Noun], planned: Planned) -> dict[Noun, str]:
    """Return those of ``nouns`` that are used, each with one line that names the user."""
    if not nouns:
        return {}
    found = _schedules(scheduler, set(nouns), planned)
    for kind, name in nouns:
        if (kind, name) in found or kind == "calendar":  # only schedules name a calendar
            continue
        user = _live_job(scheduler, kind, name) or (_token(scheduler, name) if kind == "tenant" else None)
        if user is not None:
            found[kind, name] = user
    return found


def _schedules(scheduler: Scheduler, nouns: Set[Noun], planned: Planned) -> dict[Noun, str]:
    users: dict[Noun, list[str]] = {}
    stored = (one for one in scheduler.schedules.list() if one["name"] not in planned)
    for body in chain(stored, filter(None, planned.values())):
        jobs = body.get("jobs") or [body.get("job") or {}]
        named = {(kind, job.get(kind) or _UNSAID.get(kind, "")) for job in jobs for kind in _OF_JOBS}
        for noun in named & nouns:
            users.setdefault(noun, []).append(body["name"])
        use = body["trigger"].get("calendars") or {}
        for calendar in {*(use.get("only") or ()), *(use.get("except") or ())}:
            if ("calendar", calendar) in nouns:
                users.setdefault(("calendar", calendar), []).append(body["name"])
    more = {noun: f"and {len(names) - 1} more still use" for noun, names in users.items() if len(names) > 1}
    return {noun: f"schedule {names[0]} {more.get(noun, 'still uses')} it" for noun, names in users.items()}


def _live_job(scheduler: Scheduler, kind: str, name: str) -> str | None:
    condition: dict[str, Any] = {kind: name} if kind in ("definition", "tenant") else {}  # jobs can't be listed by lane
    checked = 0
    for job in islice(scheduler.list(state=_LIVE, **condition), CHECKED_JOBS_MAX):
        checked += 1
        if getattr(job, kind) == name:
            return f"job {job.id}, which has not ended, uses it"
    if checked == CHECKED_JOBS_MAX:
        return f"{CHECKED_JOBS_MAX:,} jobs or more have not ended, too many to check whether one uses it"
    return None


def _token(scheduler: Scheduler, tenant: str) -> str | None:
    for token in scheduler.tokens.list():
        if token["tenant"] == tenant:
            return f"token {token['id']} ({token['name']}) belongs to it"
    return None
