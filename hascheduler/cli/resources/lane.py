"""``hascheduler lane``: the classes of work, and how they share the processors."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import LaneName, NewName
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import or_none, whole_or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Owner, Url, Yes, with_options
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.output.tables import with_columns
from hascheduler.cli.resources.named import Answer, NamedResource

_SHARE: Options = {
    "weight": Annotated[
        str | None, typer.Option("--weight", metavar="N", help="Twice the weight, twice the share; default 1.")
    ],
    "promote_after": Annotated[
        str | None,
        typer.Option(
            "--promote-after",
            metavar="SPAN",
            help="So long does a job wait until its priority grows by one, or 11 spans with commas, one for each"
            " priority from 0; default 1m.",
        ),
    ],
    "policy": Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME,…", help="How its own jobs are ordered: a preset, or criteria; none: as all are."
        ),
    ],
    "owner": Owner,
}


def _cells(one: Answer) -> tuple[str, ...]:
    steps, policy = one["promote_after"], one["policy"]
    return (
        str(one["weight"]),
        steps if isinstance(steps, str) else ", ".join(steps),
        "–" if policy is None else ", ".join(policy),
        or_dash(one.get("owner")),
    )


_lanes = NamedResource(
    "lane", ("weight", "promote after", "policy", "owner"), _cells, "There are no lanes; every lane has the defaults."
)


@example("hascheduler lane list")
@with_columns
def list_lanes(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the lanes."""
    _lanes.list(url, as_json=as_json)


@example("hascheduler lane get bulk")
def get(name: LaneName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one lane."""
    _lanes.get(name, url, as_json=as_json, as_manifest=as_manifest)


@example("hascheduler lane put bulk --weight 2 --promote-after 30s --policy aged_priority,arrival")
@with_options("given", _SHARE)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a lane.

    What is left out gets its default. Prints what was changed, and the whole as it is now.
    """
    _lanes.put(name, _body(given), url, as_json=as_json)


@example("hascheduler lane edit bulk --weight 3 --policy none", "EDITOR=vi hascheduler lane edit bulk")
@with_options("given", _SHARE)
def edit(name: LaneName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Edit a lane, by options or in $EDITOR."""
    _lanes.edit(name, _body(given), url, yes=yes, as_json=as_json)


@example("hascheduler lane delete bulk --yes")
def delete(name: LaneName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a lane. Its jobs go on, in a lane with the defaults."""
    delete_stored("lane", name, yes=yes, url=url, as_json=as_json)


def _body(given: Given) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if "weight" in given:
        body["weight"] = whole_or_none("--weight", given["weight"])
    if "promote_after" in given:
        steps = or_none(given["promote_after"])
        body["promote_after"] = steps if steps is None or "," not in steps else [s.strip() for s in steps.split(",")]
    for name in ("policy", "owner"):
        if name in given:
            body[name] = or_none(given[name])
    return body
