"""``hascheduler job list``, ``failed``, ``counts``, ``errors`` and ``get``; and ``hascheduler why``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import JobId
from hascheduler.cli.input.values import check_job_id
from hascheduler.cli.jobs.filters import filter_of, filter_options
from hascheduler.cli.jobs.tables import STATE_STYLES, Job, attempt_table, failed_table, job_table
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Url, Watch, with_options
from hascheduler.cli.output.console import console, new_table, show
from hascheduler.cli.output.instants import instant_text, relative_text, with_instants_shown, with_utc
from hascheduler.cli.output.tables import Cell, OutputForm, print_one, show_list, table_of, with_columns, with_output
from hascheduler.cli.output.yaml_text import as_text, as_yaml
from hascheduler.cli.replica import replica
from hascheduler.client import Scheduler
from hascheduler.client.requests import PAGE
from hascheduler.clock import SystemClock
from hascheduler.model.job import JobState
from hascheduler.schema.filters import JobAttributes, JobFilter

Answer = Mapping[str, Any]

_Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest by submission first")]


@example(
    "hascheduler job list --state pending --state running --watch",
    "hascheduler job list --definition resize --label team=a --since 1h",
    "hascheduler job list --id fire:nightly:",
)
@with_options("given", filter_options(JobFilter))
@with_output
@with_columns
def list_jobs(
    limit: _Limit = 20, *, url: Url = DEFAULT_URL, watch: Watch = False, given: Given, output: OutputForm
) -> None:
    """List jobs, and how they stand."""
    _list(given, limit, url, job_table, output, watch=watch)


@example("hascheduler job failed --definition resize", "hascheduler job retry --definition resize --state failed")
@with_options("given", filter_options(JobAttributes))
@with_output
@with_columns
def failed(
    limit: _Limit = 20, *, url: Url = DEFAULT_URL, watch: Watch = False, given: Given, output: OutputForm
) -> None:
    """List the jobs that have failed for good, and why.

    `hascheduler job retry` has them run again.
    """
    _list({**given, "state": [JobState.FAILED]}, limit, url, failed_table, output, watch=watch)


@example("hascheduler job get fire:nightly:1893456000000")
@with_utc
@with_output
@with_columns
def get(id: JobId, url: Url = DEFAULT_URL, *, output: OutputForm) -> None:
    """Show one job with everything about it."""
    with replica(url) as scheduler:
        answer = dict(scheduler.get(check_job_id(id)).fields)
    if output in (OutputForm.TEXT, OutputForm.WIDE):
        _print_job(answer)
    else:
        print_one(answer, as_yaml, output, "id")


def _print_job(answer: dict[str, Any]) -> None:
    attempts = answer.pop("attempts")
    said = {name: _said(name, value) for name, value in answer.items() if value not in (None, [], {}, False)}
    console().print(as_text(said))
    if attempts:
        console().print(attempt_table(attempts))
        if answer.get("revivals"):  # not from a replica of 0.2.0
            console().print(
                Text("A number that is missing was taken by a revival: no attempt ran under it.", style="dim")
            )
    for one in attempts:
        if one.get("traceback"):  # not from a replica of 0.2.0
            console().print(Text(f"\nattempt {one['number']}:", style="dim"))
            console().print(Text(one["traceback"]), soft_wrap=True)


def _said(name: str, value: Any) -> Any:
    """Return an instant as it is shown. What people call a payload or a result stays, whatever looks like an instant
    in it."""
    is_instant = isinstance(value, str) and (name.endswith("_at") or name == "not_before")
    return instant_text(value) if is_instant else value


def _list(
    given: Given,
    limit: int,
    url: str,
    table: Callable[[Sequence[Job], int], RenderableType],
    output: OutputForm,
    *,
    watch: bool,
) -> None:
    filter = filter_of(given)
    with replica(url) as scheduler:
        show_list(
            lambda: _newest(scheduler, filter, limit),
            lambda jobs: table(jobs, SystemClock().wall_ms()),
            as_yaml,
            output,
            watch=watch,
            name="id",
        )


def _newest(scheduler: Scheduler, filter: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The first ``limit`` jobs as one page, however many it takes: one may be short where few match."""
    items: list[Any] = []
    unreadable: list[Any] = []
    after: str | None = None
    while True:
        page = scheduler.page(limit=min(limit - len(items), PAGE), after=after, **filter)
        items += page.fields["items"]
        unreadable += page.fields.get("unreadable", [])
        after = page.next
        if after is None or len(items) + len(unreadable) >= limit:
            return {**page.fields, "items": items, "unreadable": unreadable}


@example("hascheduler why fire:nightly:1893456000000 --watch")
@with_utc
def why(id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False) -> None:
    """Say why a job waits.

    All that holds it back now and what would end that, or else where it stands in the queue, criterion by criterion.
    """
    check_job_id(id)
    with replica(url) as scheduler:
        show(
            lambda: scheduler.why(id),
            lambda answer: _why_page(answer, SystemClock().wall_ms()),
            as_json=as_json,
            watch=watch,
        )


def _why_page(answer: Answer, now_ms: int) -> RenderableType:
    head = Text.assemble((answer["job"], "bold"), f"  {answer['state']}")
    parts: list[RenderableType] = [head]
    standing = answer["standing"]
    if not answer["blocks"]:
        parts.append(Text(with_instants_shown(answer["summary"])))
    parts += [_block(block, now_ms) for block in answer["blocks"]]
    if answer["blocks"] and answer.get("error"):  # not from a replica of 0.2.0
        parts.append(Text(f"its last attempt: {answer['error']}"))
    if answer["blocks"] and standing is not None:
        parts.append(Text(_place(standing)))
    if standing is not None and standing["deciding"] is not None:
        parts.append(_comparison(standing))
    return Group(*parts)


def _block(block: Answer, now_ms: int) -> Text:
    text = Text.assemble(("● ", "yellow"), with_instants_shown(block["because"]), overflow="fold")
    if block["until"] is not None:
        text.append(f"  (until {instant_text(block['until'])}, {relative_text(block['until'], now_ms)})")
    return text.append(f"\n  → {with_instants_shown(block['unblocked_by'])}", style="dim")


def _place(standing: Answer) -> str:
    if standing["ahead"] == 0:
        return "it is next"
    return f"{'' if standing['exact'] else 'at least '}{standing['ahead']} before it"


def _comparison(standing: Answer) -> Table:
    """Against the next in line; what comes after the deciding criterion does not matter any more."""
    table = new_table("", "criterion", "this job", f"next: {standing['first']}", "")
    for row in standing["criteria"]:
        decides = row["criterion"] == standing["deciding"]
        table.add_row(
            Text(row["criterion"]),
            Text(row["value"]),
            Text(row["first"]),
            "decides" if decides else "",
            style="bold" if decides else "",
        )
    return table


@example("hascheduler job counts --definition resize --since 1h --watch")
@with_options("given", filter_options(JobFilter))
def counts(*, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False, given: Given) -> None:
    """Count jobs by state."""
    filter = filter_of(given)
    with replica(url) as scheduler:
        show(lambda: scheduler.count(**filter), _counts_table, as_json=as_json, watch=watch)


@example("hascheduler job errors --since 1h", "hascheduler job retry --definition resize --state failed")
@with_options("given", filter_options(JobAttributes))
@with_columns
def errors(*, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False, given: Given) -> None:
    """Group the newest failed jobs by what went wrong.

    Errors that are equal but for numbers, ids and quoted texts are one group; the largest group comes first.
    """
    filter = filter_of(given)
    with replica(url) as scheduler:
        show(lambda: scheduler.errors(**filter), _errors_page, as_json=as_json, watch=watch)


def _counts_table(answer: Answer) -> RenderableType:
    table = new_table("", "state", "jobs")
    for state in JobState:
        table.add_row(
            Text(state.value, style=STATE_STYLES.get(state.value, "")),
            _number(answer[state.value], at_least=state in answer["at_least"]),
        )
    table.add_row(Text("all", style="bold"), _number(answer["matched"], at_least=not answer["exact"]))
    return table


def _number(count: int, *, at_least: bool) -> str:
    return f"{count} or more" if at_least else str(count)


def _errors_page(answer: Answer) -> RenderableType:
    groups: Sequence[Answer] = answer["groups"]
    if not groups:
        return Text("No job has failed.", style="dim")
    now_ms = SystemClock().wall_ms()
    columns: dict[str, Cell] = {
        "jobs": lambda group: str(group["count"]),
        "definition": lambda group: group["definition"],
        "error": lambda group: Text(group["fault"], style="red"),
        "last": lambda group: relative_text(group["last_at"], now_ms),
        "first": lambda group: relative_text(group["first_at"], now_ms),
        "example": lambda group: group["job"],
    }
    table = table_of("", groups, columns, spare=("first", "example", "last"), wraps=("error",))
    parts: list[RenderableType] = [table]
    others = answer["others"]
    if others["groups"]:
        parts.append(Text(f"and {others['count']} jobs in {others['groups']} smaller groups", style="dim"))
    if not answer["complete"]:
        parts.append(Text(f"Of the newest {answer['examined']} failed jobs that match.", style="dim"))
    return Group(*parts)
