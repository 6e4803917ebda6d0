"""``hascheduler audit-log``: who changed something, or tried to and was refused."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.output.console import or_dash, print_answer
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica


@example(
    "hascheduler audit-log --path /v1/schedules --limit 100",
    "hascheduler audit-log --who deployer --since 2030-01-01T00:00:00Z --json",
)
@with_utc
@with_columns
def audit_log(
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Only of the token with this name, or id.")
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Only of this tenant's tokens.", autocompletion=complete_tenant),
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PREFIX", help="Only of paths that begin so.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="INSTANT", help="Only from then on: RFC 3339 with an offset.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many, the newest first")] = 50,
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show who changed what, the newest first."""
    with replica(url) as scheduler:
        found = list(islice(scheduler.cluster.audit(who=who, tenant=tenant, path=path, since=since), limit))
    print_answer({"items": found}, lambda _: _table(found), as_json=as_json)


def _table(records: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not records:
        return Text("There are no such records.", style="dim")
    columns = ("at", "who", "tenant", "from", "request", "answer", "because")
    table = FittedTable("", *columns, spare=("from", "tenant", "because", "answer"), wraps=("because",))
    for record in records:
        status = Text(str(record["status"]), style="" if record["status"] < 400 else "red")
        texts = (instant_text(record["at"]), record["who"], or_dash(record["tenant"]), record["address"])
        request, because = Text(f"{record['method']} {record['path']}"), Text(or_dash(record.get("because")))
        table.add_row(*map(Text, texts), request, status, because)
    return table
