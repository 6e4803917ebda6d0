"""The commands on definitions."""

from typing import Annotated, Any

import typer

from hascheduler.cli.deleting import delete_stored
from hascheduler.cli.job_options import RESOURCES, read_resources
from hascheduler.cli.names import DefinitionName, NewName
from hascheduler.cli.nouns import Answer, Nouns
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Url, Yes, with_options
from hascheduler.cli.tables import or_dash
from hascheduler.cli.trigger_options import or_none, whole_or_none
from hascheduler.errors import InvalidInput
from hascheduler.model.resource_texts import format_resources

_LIMITS: Options = {
    "max_concurrency": Annotated[
        str | None,
        typer.Option("--max-concurrency", metavar="N", help="How many of its jobs run at once; none: no limit."),
    ],
    "tier": Annotated[
        str | None,
        typer.Option("--tier", metavar="N", help="Higher goes first, and so many of that tier run at once."),
    ],
    "conflict_group": Annotated[
        str | None,
        typer.Option("--conflict-group", metavar="NAME", help="Two of one group never work on one target at once."),
    ],
    "rate_limit": Annotated[
        str | None, typer.Option("--rate-limit", metavar="N/SPAN", help="How fast its jobs start, such as 100/1s.")
    ],
    "default_cost": Annotated[
        str | None,
        typer.Option("--default-cost", metavar="SPAN", help="What a job is charged until that is learned; default 1s."),
    ],
    "resources": RESOURCES,
    "attempts": Annotated[
        str | None, typer.Option("--attempts", metavar="N", help="Attempts that may be lost before a job fails.")
    ],
}


def _cells(one: Answer) -> tuple[str, ...]:
    limit = one["rate_limit"]
    return (
        or_dash(one["max_concurrency"]),
        or_dash(one["tier"]),
        or_dash(one["conflict_group"]),
        "–" if limit is None else f"{limit['count']}/{limit['per']}",
        one["default_cost"],
        format_resources(one["resources"]) or "–",
        str(one["retry"]["attempts"]),
    )


_definitions = Nouns(
    "definition",
    ("max", "tier", "conflicts", "rate", "cost", "resources", "attempts"),
    _cells,
    "There are no definitions; every job has the default limits.",
)


@example("hascheduler definition list")
def list_definitions(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the definitions."""
    _definitions.list(url, as_json=as_json)


@example("hascheduler definition get repack")
def get(name: DefinitionName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one definition."""
    _definitions.get(name, url, as_json=as_json, as_manifest=as_manifest)


@example(
    "hascheduler definition put repack --max-concurrency 3 --conflict-group git --tier 10 \\",
    "    --rate-limit 100/1s --default-cost 20s --resources cpu=2 --attempts 5",
)
@with_options("given", _LIMITS)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a definition.

    What is left out gets its default.
    """
    _definitions.put(name, _body(given), url, as_json=as_json)


@example("hascheduler definition edit repack --max-concurrency none", "EDITOR=vi hascheduler definition edit repack")
@with_options("given", _LIMITS)
def edit(
    name: DefinitionName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given
) -> None:
    """Edit a definition, by options or in $EDITOR."""
    _definitions.edit(name, _body(given), url, yes=yes, as_json=as_json)


@example("hascheduler definition delete repack --yes")
def delete(name: DefinitionName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    delete_stored("definition", name, yes=yes, url=url, as_json=as_json)


def _body(given: Given) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, flag in (("max_concurrency", "--max-concurrency"), ("tier", "--tier")):
        if name in given:
            body[name] = whole_or_none(flag, given[name])
    for name in ("conflict_group", "default_cost"):
        if name in given:
            body[name] = or_none(given[name])
    if "rate_limit" in given:
        body["rate_limit"] = _rate_limit(given["rate_limit"])
    if "resources" in given:
        body["resources"] = read_resources(given["resources"])
    if "attempts" in given:
        attempts = whole_or_none("--attempts", given["attempts"])
        body["retry"] = None if attempts is None else {"attempts": attempts}
    return body


def _rate_limit(text: str) -> dict[str, Any] | None:
    if or_none(text) is None:
        return None
    count, slash, per = text.partition("/")
    if not slash:
        raise InvalidInput(("--rate-limit",), f"{text[:64]!r} is not N/SPAN", "such as 100/1s")
    return {"count": whole_or_none("--rate-limit", count), "per": per}
