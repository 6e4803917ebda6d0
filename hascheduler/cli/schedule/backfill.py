"""``hascheduler schedule backfill``: jobs for times that have passed."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Url
from hascheduler.cli.tables import console, print_json

_SHOWN_MAX = 20


class BackfillOverlap(StrEnum):
    ALLOW = "allow"
    BUFFER_ONE = "buffer_one"


@example("hascheduler schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --dry-run")
def backfill(
    name: ScheduleName,
    *,
    start: Annotated[str, typer.Option("--from", metavar="INSTANT", help="The first time, included.")],
    end: Annotated[str, typer.Option("--to", metavar="INSTANT", help="The last time, included; not in the future.")],
    overlap: Annotated[
        BackfillOverlap, typer.Option("--overlap", help="All at once, or one after the other.")
    ] = BackfillOverlap.BUFFER_ONE,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make jobs for times that have passed.

    One for each time between the two instants that has none yet, so it can be repeated.
    """
    body = {"from": start, "to": end, "overlap": overlap.value, "dry_run": dry_run}
    with Client(url) as client:
        answer = client.ask("POST", path_of("schedule", name, "backfill"), body)
    if as_json:
        print_json(answer)
        return
    done = "would be created" if dry_run else "created"
    text = Text.assemble((f"{answer['created']} {done}", "bold green"))
    text.append(f", {answer['existing']} there already, of {answer['count']} times")
    jobs = answer.get("jobs") or []
    for job in jobs[:_SHOWN_MAX]:
        text.append(f"\n  {job}", style="dim")
    if len(jobs) > _SHOWN_MAX:
        text.append(f"\n  … and {len(jobs) - _SHOWN_MAX} more; --json lists them", style="dim")
    console().print(text, soft_wrap=True)
