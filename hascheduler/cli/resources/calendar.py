"""``hascheduler calendar``: the days that schedules share."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import CalendarName, NewName
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Owner, Url, Yes, with_options
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.output.tables import with_columns
from hascheduler.cli.resources.named import Answer, NamedResource

_SHOWN_MAX = 3
_DAYS = "2030-12-24, a span 2030-12-24/2031-01-01, or 12-25 for each year"

_LISTS: Options = {
    "weekdays": Annotated[
        str | None,
        typer.Option("--weekdays", metavar="DAY,…", help="Days of each week that are in it, such as mon-fri."),
    ],
    "include": Annotated[
        str | None, typer.Option("--include", metavar="DAY,…", help=f"Days that are in it besides: {_DAYS}.")
    ],
    "exclude": Annotated[
        str | None,
        typer.Option("--exclude", metavar="DAY,…", help="Days of --weekdays that are not in it, as for --include."),
    ],
    "owner": Owner,
}


def _cells(one: Answer) -> tuple[str, ...]:
    return _short(one["weekdays"], 7), _short(one["include"]), _short(one["exclude"]), or_dash(one.get("owner"))


def _short(days: list[str], shown_max: int = _SHOWN_MAX) -> str:
    more = f" and {len(days) - shown_max} more" if len(days) > shown_max else ""
    return (", ".join(days[:shown_max]) or "–") + more


_calendars = NamedResource("calendar", ("weekdays", "include", "exclude", "owner"), _cells, "There are no calendars.")


@example("hascheduler calendar list")
@with_columns
def list_calendars(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the calendars."""
    _calendars.list(url, as_json=as_json)


@example("hascheduler calendar get business-days")
def get(name: CalendarName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one calendar."""
    _calendars.get(name, url, as_json=as_json, as_manifest=as_manifest)


@example(
    "hascheduler calendar put business-days --weekdays mon-fri",
    "hascheduler calendar put holidays-de --include 01-01,05-01,10-03,12-25,12-26,2030-04-19",
)
@with_options("given", _LISTS)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a calendar.

    What is left out is empty.
    """
    _calendars.put(name, _body(given), url, as_json=as_json)


@example("hascheduler calendar edit business-days --exclude 12-24,12-31", "EDITOR=vi hascheduler calendar edit office")
@with_options("given", _LISTS)
def edit(
    name: CalendarName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given
) -> None:
    """Edit a calendar, by options or in $EDITOR.

    A list that is given replaces the stored one.
    """
    _calendars.edit(name, _body(given), url, yes=yes, as_json=as_json)


@example("hascheduler calendar delete business-days --yes")
def delete(name: CalendarName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a calendar that no schedule uses."""
    delete_stored("calendar", name, yes=yes, url=url, as_json=as_json)


def _body(given: Given) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for field in ("weekdays", "include", "exclude"):
        if field in given:
            listed = or_none(given[field])
            body[field] = None if listed is None else [day.strip() for day in listed.split(",")]
    if "owner" in given:
        body["owner"] = or_none(given["owner"])
    return body
