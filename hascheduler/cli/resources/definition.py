"""``hascheduler definition``: the named types of job and their limits."""

from contextlib import suppress
from math import isfinite
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import DefinitionName, NewName
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import (
    NONE,
    key_limits_or_none,
    key_limits_text,
    or_none,
    rate_or_none,
    rate_text,
    read_resources,
    unique_text,
    whole_or_none,
)
from hascheduler.cli.jobs.options import RESOURCES
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Owner, Url, Yes, with_options
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.output.tables import with_columns
from hascheduler.cli.resources.named import Answer, NamedResource
from hascheduler.errors import InvalidInput
from hascheduler.model.resources import format_resources

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
    "conflict_scope": Annotated[
        str | None,
        typer.Option(
            "--conflict-scope", metavar="SCOPE", help="Of its conflict group: tenant (of each its own) or shared."
        ),
    ],
    "rate_limit": Annotated[
        str | None, typer.Option("--rate-limit", metavar="N/SPAN", help="How fast its jobs start, such as 100/1s.")
    ],
    "key_limits": Annotated[
        list[str] | None,
        typer.Option(
            "--key-limit",
            metavar="KEY=LIMIT",
            help="How many jobs of each value at a key run at once, and how fast they start, such as "
            "payload.customer=2, payload.customer=10/1m or payload.customer=2,10/1m; again for more; none.",
        ),
    ],
    "unique_by": Annotated[
        list[str] | None,
        typer.Option(
            "--unique",
            metavar="KEY",
            help="Its jobs of one value at this key, such as payload.customer or target, are duplicates of each other; "
            "again for more; none: no jobs are.",
        ),
    ],
    "on_duplicate": Annotated[
        str | None,
        typer.Option(
            "--on-duplicate",
            metavar="WHAT",
            help="keep_first, replace or debounce; without --unique all of its jobs are duplicates.",
        ),
    ],
    "unique_period": Annotated[
        str | None,
        typer.Option(
            "--unique-period",
            metavar="SPAN",
            help="How long a job has duplicates (keep_first), or the newest waits for another (debounce).",
        ),
    ],
    "unique_max_wait": Annotated[
        str | None,
        typer.Option("--unique-max-wait", metavar="SPAN", help="How long debounce keeps a job; default: 10 periods."),
    ],
    "default_cost": Annotated[
        str | None,
        typer.Option("--default-cost", metavar="SPAN", help="What a job is charged until that is learned; default 1s."),
    ],
    "resources": RESOURCES,
    "timeout": Annotated[
        str | None, typer.Option("--timeout", metavar="SPAN", help="How long one attempt may run; none: for ever.")
    ],
    "total_timeout": Annotated[
        str | None,
        typer.Option("--total-timeout", metavar="SPAN", help="How long all attempts and pauses may take; none."),
    ],
    "attempts": Annotated[
        str | None,
        typer.Option("--retry-attempts", "--attempts", metavar="N", help="Attempts that may fail before a job does."),
    ],
    "lost_attempts": Annotated[
        str | None,
        typer.Option(
            "--retry-lost-attempts", metavar="N", help="Attempts that may be lost with their processor; default 10."
        ),
    ],
    "backoff": Annotated[
        str | None, typer.Option("--retry-backoff", metavar="SPAN", help="The pause after the first; default 2s.")
    ],
    "factor": Annotated[
        str | None, typer.Option("--retry-factor", metavar="N", help="What each pause is multiplied by; default 2.")
    ],
    "max": Annotated[str | None, typer.Option("--retry-max", metavar="SPAN", help="The longest pause; default 1m.")],
    "owner": Owner,
}


def _cells(one: Answer) -> tuple[str, ...]:
    return (
        or_dash(one["max_concurrency"]),
        or_dash(one["tier"]),
        or_dash(one["conflict_group"]),
        rate_text(one["rate_limit"]),
        one["default_cost"],
        format_resources(one["resources"]) or "–",
        str(one["retry"]["attempts"]),
        or_dash(one["timeout"]),
        or_dash(one.get("owner")),
        key_limits_text(one.get("key_limits", ())),
        unique_text(one.get("unique")),
    )


_definitions = NamedResource(
    "definition",
    ("max", "tier", "conflicts", "rate", "cost", "resources", "attempts", "timeout", "owner", "keys", "unique"),
    _cells,
    "There are no definitions; every job has the default limits.",
)


@example("hascheduler definition list")
@with_columns
def list_definitions(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the definitions."""
    _definitions.list(url, as_json=as_json)


@example("hascheduler definition get repack")
def get(name: DefinitionName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one definition."""
    _definitions.get(name, url, as_json=as_json, as_manifest=as_manifest)


@example(
    "hascheduler definition put repack --max-concurrency 3 --conflict-group git --tier 10 \\",
    "    --rate-limit 100/1s --default-cost 20s --resources cpu=2 \\",
    "    --timeout 5m --total-timeout 1h --retry-attempts 5 --retry-backoff 2s --retry-max 1m",
)
@with_options("given", _LIMITS)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a definition.

    What is left out gets its default. Prints what was changed, and the whole as it is now.
    """
    body = _body(given)
    if "retry" in body:
        body["retry"] = {part: value for part, value in body["retry"].items() if value is not None}
    _definitions.put(name, body, url, as_json=as_json)


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
    for name in ("conflict_group", "conflict_scope", "default_cost", "timeout", "total_timeout", "owner"):
        if name in given:
            body[name] = or_none(given[name])
    if "rate_limit" in given:
        body["rate_limit"] = rate_or_none("--rate-limit", given["rate_limit"])
    if given.get("key_limits"):
        body["key_limits"] = key_limits_or_none("--key-limit", given["key_limits"])
    unique = _unique(given)
    if unique or given.get("unique_by"):
        body["unique"] = unique
    if "resources" in given:
        body["resources"] = read_resources(given["resources"])
    retry = _retry(given)
    if retry:
        body["retry"] = retry
    return body


def _unique(given: Given) -> dict[str, Any] | None:
    unique: dict[str, Any] = {}
    if given.get("unique_by"):
        if list(given["unique_by"]) == [NONE]:
            return None
        unique["by"] = list(given["unique_by"])
    for name, option in (
        ("on_duplicate", "on_duplicate"),
        ("period", "unique_period"),
        ("max_wait", "unique_max_wait"),
    ):
        if option in given:
            unique[name] = or_none(given[option])
    return unique


def _retry(given: Given) -> dict[str, Any]:
    retry: dict[str, Any] = {name: or_none(given[name]) for name in ("backoff", "max") if name in given}
    for name, flag in (("attempts", "--retry-attempts"), ("lost_attempts", "--retry-lost-attempts")):
        if name in given:
            retry[name] = whole_or_none(flag, given[name])
    if "factor" in given:
        retry["factor"] = _factor_or_none(given["factor"])
    return retry


def _factor_or_none(text: str) -> int | float | None:
    if or_none(text) is None:
        return None
    with suppress(ValueError):
        factor = float(text)
        if isfinite(factor):
            return int(factor) if factor.is_integer() else factor
    raise InvalidInput(("--retry-factor",), f"{text[:64]!r} is not a number", "such as 2 or 1.5")
