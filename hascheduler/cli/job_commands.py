"""``hascheduler job list``, ``get`` and ``cancel``."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.client import Client, job_path
from hascheduler.cli.diffs import as_text
from hascheduler.cli.live import not_both, show
from hascheduler.cli.moments import away_text
from hascheduler.cli.names import JobId, complete_definition, complete_schedule
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Watch
from hascheduler.cli.tables import console, new_table, or_dash, print_json
from hascheduler.clock import SystemClock
from hascheduler.model.job import JobState

STATE_STYLES = {"running": "cyan", "dispatched": "cyan", "succeeded": "green", "failed": "red", "cancelled": "dim"}

_ANSWERS = {
    "cancelled": "cancelled {}",
    "already_running": "{} runs, and was asked to stop",
    "already_done": "{} had ended already",
}


@example("hascheduler job list --state pending --watch")
def list_jobs(
    state: Annotated[JobState | None, typer.Option("--state", help="Only those in this state.")] = None,
    definition: Annotated[
        str | None,
        typer.Option(
            "--definition", metavar="NAME", help="Only those of this type.", autocompletion=complete_definition
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="NAME", help="Only those that it made.", autocompletion=complete_schedule),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many, the newest ids first")] = 20,
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """List jobs, and how they stand."""
    not_both(as_json=as_json, watch=watch)
    wanted = {"state": None if state is None else state.value, "definition": definition, "schedule": schedule}
    query = [*((name, value) for name, value in wanted.items() if value is not None), ("limit", str(limit))]
    with Client(url) as client:

        def ask() -> dict[str, Any]:
            return client.get("/v1/jobs", query)

        if as_json:
            print_json(ask())
        else:
            show(lambda: _table(ask()["items"], SystemClock().wall_ms()), watch=watch)


@example("hascheduler job get fire:nightly:1893456000000")
def get(id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one job with everything about it."""
    with Client(url) as client:
        answer = client.get(job_path(id))
    if as_json:
        print_json(answer)
    else:
        said = {name: value for name, value in answer.items() if value not in (None, [], {}, False)}
        console().print(as_text(said))


@example("hascheduler job cancel fire:nightly:1893456000000")
def cancel(id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Cancel a job that waits, or ask a running one to stop."""
    with Client(url) as client:
        answer = client.ask("POST", job_path(id, "cancel"))
    if as_json:
        print_json(answer)
    else:
        console().print(_ANSWERS[answer["answer"]].format(id), markup=False, soft_wrap=True)


def _table(jobs: Sequence[Mapping[str, Any]], now_ms: int) -> RenderableType:
    if not jobs:
        return Text("There are no such jobs.", style="dim")
    table = new_table("", "job", "state", "definition", "target", "lane", "tenant", "submitted", "processor")
    for job in jobs:
        state = Text(job["state"], style=STATE_STYLES.get(job["state"], ""))
        if job["unschedulable"]:
            state = Text("unschedulable", style="bold red")
        # As Text: targets may hold what looks like markup.
        texts = (Text(job[name]) for name in ("definition", "target", "lane", "tenant"))
        table.add_row(
            Text(job["id"]), state, *texts, away_text(job["submitted_at"], now_ms), Text(or_dash(job["processor"]))
        )
    return table
