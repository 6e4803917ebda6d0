"""The command ``hascheduler token``: tokens and their rights in a cluster."""

import re
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import NewName, complete_tenant
from hascheduler.cli.input.values import check_name, confirmed
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Yes, argument, option
from hascheduler.cli.output.answers import Answer, OutputForm, Shown, asks
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.replica import Scheduler
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.model.token import ALL_TENANTS, Role

TokenId = Annotated[str, argument("ID", "Public id of the token")]

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def _table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        **plain("id"),
        "kind": lambda one: "session" if one.get("session") else "token",  # replicas of 0.2.0 do not send it
        **plain("name", "role", "tenant"),
        **plain(**{"made by": "created_by"}),
        "expires": lambda one: Text("expired", style="red") if one["expired"] else instant_text(one["expires_at"]),
    }
    spare = ("made by", "expires", "tenant", "role", "kind")
    return table_of("", answer["items"], columns, spare, none="There are no tokens.")


@example("hascheduler token list")
@asks(_table, tables=1, name="id")
def list_tokens(scheduler: Scheduler) -> Answer:
    """List tokens and sessions, without their secrets. A session is a login to the dashboard."""
    return {"items": list(scheduler.tokens.list())}


@example(
    "HASCHEDULER_TOKEN=$HASCHEDULER_ADMIN_TOKEN hascheduler token create ops --role admin --tenant '*'",
    "hascheduler token create nightly-import --role submitter --tenant acme --expires-in 720h > token",
)
@asks(name="id")
def create(
    scheduler: Scheduler,
    name: NewName,
    role: Annotated[Role, option("--role", "Role of the token", show_default=False)],
    tenant: Annotated[
        str,
        option(
            "--tenant NAME",
            f"Tenant whose jobs and schedules it can access; {ALL_TENANTS}: all tenants",
            complete_tenant,
            show_default=False,
        ),
    ],
    expires_in: Annotated[str | None, option("--expires-in DURATION", "How long it is valid; default: forever")] = None,
    *,
    output: OutputForm,
) -> Shown:
    """Create a token. The output is its secret, which is never shown again."""
    check_name(name)
    made = scheduler.tokens.create(name, role.value, tenant, expires_in=expires_in)
    if not output.is_for_programs:  # on standard error, so that standard output holds the secret alone
        message = f"created {printable(made['id'])}: {role.value} of {tenant}; store the token, it is not shown again"
        typer.echo(message, err=True)
    return Shown(made, made["token"])


@example("hascheduler token delete token-3f9a0c11d2e4 --yes")
@asks(name="id")
def delete(scheduler: Scheduler, id: TokenId, yes: Yes = False) -> Shown:
    """Revoke a token."""
    if id.startswith("hsk_"):
        raise InvalidInput(("ID",), "this is a secret", "the token's public id (hascheduler token list)")
    if not _ID.fullmatch(id):
        raise InvalidInput(("ID",), f"{id[:64]!r} is not a token id", "such as token-3f9a0c11d2e4")
    revoked = confirmed(f"Revoke the token {id}?", yes=yes)
    if revoked and not scheduler.tokens.revoke(id):
        raise NotFound("token", id)
    return Shown({"id": id, "revoked": revoked}, f"revoked {id}" if revoked else "not revoked")


@example("hascheduler token whoami")
@asks()
def whoami(scheduler: Scheduler) -> Shown:
    """Show your token's name, role and permissions."""
    answer = scheduler.cluster.whoami()
    of = "all tenants" if answer["tenant"] == ALL_TENANTS else f"tenant {answer['tenant']}"
    return Shown(answer, f"{answer['name']}: {answer['role']} of {of}; may {', '.join(answer['may'])}")
