"""``hascheduler verdicts``: the times of all schedules that did not fire."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.input.values import instant_or_ago
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, LabelFilter, Url, Watch
from hascheduler.cli.output.console import print_json, refuse_json_with_watch, show_or_watch
from hascheduler.cli.output.instants import with_utc
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.show import outcome_text, times_text
from hascheduler.cli.schedules.tables import VERDICT_STYLES
from hascheduler.clock import SystemClock
from hascheduler.model.verdict import Verdict


@example("hascheduler verdicts --verdict missed --since 1h --label team=a")
@with_utc
@with_columns
def verdicts(
    *,
    only: Annotated[list[Verdict] | None, typer.Option("--verdict", help="Only these; again for more.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="INSTANT|SPAN", help="Only what was decided from then on; 1h: an hour ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="INSTANT|SPAN", help="Only what was decided before that.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Only of those whose name contains it, in any case."),
    ] = None,
    labels: LabelFilter = None,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Only of its schedules.", autocompletion=complete_tenant),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest decision first")] = 50,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Show which times of all schedules did not fire, and why.

    The newest decision first. Times that fired have jobs: hascheduler job list.
    """
    refuse_json_with_watch(as_json=as_json, watch=watch)
    now_ms = SystemClock().wall_ms()
    wanted: list[Any] = [verdict.value for verdict in only or ()]
    given = {"since": since, "until": until}
    filter: dict[str, Any] = {
        name: instant_or_ago(at, f"--{name}", now_ms) for name, at in given.items() if at is not None
    }
    filter |= {name: value for name, value in (("text", text), ("tenant", tenant), ("labels", labels)) if value}
    with replica(url) as scheduler:

        def ask() -> list[Any]:
            return list(islice(scheduler.verdicts(wanted, **filter), limit))

        if as_json:
            print_json({"items": ask()})
        else:
            show_or_watch(lambda: _picture(ask()), watch=watch)


def _picture(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not items:
        return Text("There are no such times.", style="dim")
    table = FittedTable("", "schedule", "time", "verdict", "why", wraps=("why",))
    for item in items:
        count = f" × {item['count']}" if item["count"] > 1 else ""
        verdict = Text(f"{item['verdict']}{count}", style=VERDICT_STYLES.get(item["verdict"], ""))
        table.add_row(Text(item["schedule"]), times_text(item), verdict, outcome_text(item))
    return table
