"""``hascheduler token``: who may ask a cluster for what."""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.completion import NewName, complete_tenant
from hascheduler.cli.input.prompts import confirmed
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Yes
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, FittedTable, OutputForm, print_all, table_of, with_columns, with_output
from hascheduler.cli.output.yaml_text import as_yaml
from hascheduler.cli.replica import replica
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.model.token import ALL_TENANTS, Role

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's public id", show_default=False)]

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


@example("hascheduler token list")
@with_utc
@with_columns
@with_output
def list_tokens(url: Url = DEFAULT_URL, *, output: OutputForm) -> None:
    """List tokens and sessions, without their secrets. A session is a login to the dashboard."""
    with replica(url) as scheduler:
        found = list(scheduler.tokens.list())
    print_all(found, _table, as_yaml, output, name="id")


def _table(found: Sequence[Mapping[str, Any]]) -> FittedTable | Text:
    if not found:
        return Text("There are no tokens.", style="dim")
    columns: dict[str, Cell] = {
        "id": itemgetter("id"),
        "kind": lambda one: "session" if one.get("session") else "token",  # replicas of 0.2.0 do not say
        **{name: itemgetter(name) for name in ("name", "role", "tenant")},
        "made by": itemgetter("created_by"),
        "expires": lambda one: Text("expired", style="red") if one["expired"] else instant_text(one["expires_at"]),
    }
    return table_of("", found, columns, spare=("made by", "expires", "tenant", "role", "kind"))


@example(
    "HASCHEDULER_TOKEN=$HASCHEDULER_ADMIN_TOKEN hascheduler token create ops --role admin --tenant '*'",
    "hascheduler token create nightly-import --role submitter --tenant acme --expires-in 720h > token",
)
def create(
    name: NewName,
    role: Annotated[Role, typer.Option("--role", help="What it may do.", show_default=False)],
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant",
            metavar="NAME",
            help=f"Whose jobs and schedules it reaches; {ALL_TENANTS}: everybody's.",
            show_default=False,
            autocompletion=complete_tenant,
        ),
    ],
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", metavar="DURATION", help="How long it is good; default: for ever.")
    ] = None,
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a token. Its secret is the output, this once; nobody can show it again."""
    check_name(name)
    with replica(url) as scheduler:
        made = scheduler.tokens.create(name, role.value, tenant, expires_in=expires_in)
    if as_json:
        print_json(made)
        return
    typer.echo(printable(made["token"]))
    # Beside the output, so that a secret in a file or a variable is that alone.
    typer.echo(
        f"made {printable(made['id'])}: {role.value} of {tenant}; keep the token, it is not shown again", err=True
    )


@example("hascheduler token delete token-3f9a0c11d2e4 --yes")
def delete(id: TokenId, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Revoke a token: it opens nothing any more."""
    if id.startswith("hsk_"):
        raise InvalidInput(("ID",), "that is a secret", "the token's public id; see hascheduler token list")
    if not _ID.fullmatch(id):
        raise InvalidInput(("ID",), f"{id[:64]!r} is no id of a token", "such as token-3f9a0c11d2e4")
    revoked = confirmed(f"Revoke the token {id}?", yes=yes)
    if revoked:
        with replica(url) as scheduler:
            if not scheduler.tokens.revoke(id):
                raise NotFound("token", id)
    if as_json:
        print_json({"id": id, "revoked": revoked})
    else:
        console().print(f"revoked {id}" if revoked else "left as it is", markup=False)


@example("hascheduler token whoami")
def whoami(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show who you are to a replica, and what you may do."""
    with replica(url) as scheduler:
        answer = scheduler.cluster.whoami()
    if as_json:
        print_json(answer)
        return
    of = "all tenants" if answer["tenant"] == ALL_TENANTS else f"tenant {answer['tenant']}"
    console().print(f"{answer['name']}: {answer['role']} of {of}; may {', '.join(answer['may'])}", markup=False)
