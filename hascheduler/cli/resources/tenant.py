"""``hascheduler tenant``: the owners of jobs, and their quotas."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import NewName, TenantName
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import or_none, rate_or_none, rate_text, whole_or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Given, Options, Owner, Url, Yes, with_options
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.output.tables import with_columns
from hascheduler.cli.resources.named import NamedResource

_QUOTA: Options = {
    "max_running": Annotated[
        str | None, typer.Option("--max-running", metavar="N", help="How many of its jobs run at once; none: no limit.")
    ],
    "max_pending": Annotated[
        str | None,
        typer.Option("--max-pending", metavar="N", help="How many of its jobs wait; none: no limit."),
    ],
    "submit_rate": Annotated[
        str | None,
        typer.Option("--submit-rate", metavar="N/SPAN", help="How fast its jobs are accepted, such as 100/1s."),
    ],
    "max_schedules": Annotated[
        str | None,
        typer.Option("--max-schedules", metavar="N", help="How many schedules it has; none: the deployment's limit."),
    ],
    "fire_rate": Annotated[
        str | None,
        typer.Option("--fire-rate", metavar="N/SPAN", help="How fast its schedules fire, such as 600/1m."),
    ],
    "owner": Owner,
}

_tenants = NamedResource(
    "tenant",
    ("max running", "max pending", "submit rate", "schedules", "fire rate", "owner"),
    lambda one: (
        or_dash(one["max_running"]),
        or_dash(one["max_pending"]),
        rate_text(one["submit_rate"]),
        or_dash(one.get("max_schedules")),
        rate_text(one.get("fire_rate")),
        or_dash(one.get("owner")),
    ),
    "There are no tenants; no tenant has a quota.",
)


@example("hascheduler tenant list")
@with_columns
def list_tenants(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the tenants."""
    _tenants.list(url, as_json=as_json)


@example("hascheduler tenant get acme")
def get(name: TenantName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one tenant."""
    _tenants.get(name, url, as_json=as_json, as_manifest=as_manifest)


@example("hascheduler tenant put acme --max-running 10 --max-pending 10000 --submit-rate 100/1s")
@with_options("given", _QUOTA)
def put(name: NewName, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Make or replace a tenant.

    What is left out gets its default. Prints what was changed, and the whole as it is now.
    """
    _tenants.put(name, _body(given), url, as_json=as_json)


@example("hascheduler tenant edit acme --max-running none", "EDITOR=vi hascheduler tenant edit acme")
@with_options("given", _QUOTA)
def edit(name: TenantName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False, *, given: Given) -> None:
    """Edit a tenant, by options or in $EDITOR."""
    _tenants.edit(name, _body(given), url, yes=yes, as_json=as_json)


@example("hascheduler tenant delete acme --yes")
def delete(name: TenantName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a tenant. Its jobs go on, without a quota."""
    delete_stored("tenant", name, yes=yes, url=url, as_json=as_json)


def _body(given: Given) -> dict[str, Any]:
    flags = {"max_running": "--max-running", "max_pending": "--max-pending", "max_schedules": "--max-schedules"}
    body: dict[str, Any] = {name: whole_or_none(flag, given[name]) for name, flag in flags.items() if name in given}
    for name, flag in (("submit_rate", "--submit-rate"), ("fire_rate", "--fire-rate")):
        if name in given:
            body[name] = rate_or_none(flag, given[name])
    if "owner" in given:
        body["owner"] = or_none(given["owner"])
    return body
