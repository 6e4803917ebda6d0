"""The commands ``hascheduler job list``, ``failed``, ``counts``, ``errors`` and ``get``, and ``hascheduler why``.

They show tables of jobs, and how one ended: its result or error, and the exit status.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import JobId
from hascheduler.cli.fields import filter_of, options_of
from hascheduler.cli.input.values import check_job_id
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, option, with_options
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.console import count_text, new_table, or_dash
from hascheduler.cli.output.instants import instant_text, relative_text, with_instants_shown
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.output.yaml_text import as_text
from hascheduler.cli.replica import Scheduler
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.schema.filters import JobAttributes, JobFilter

Job = Mapping[str, Any]

STATE_STYLES = {"running": "cyan", "dispatched": "cyan", "succeeded": "green", "failed": "red", "cancelled": "dim"}
EXIT_STATUSES = {"succeeded": 0, "failed": 3, "cancelled": 4}
"""Different from 1 and 2, which are the world's fault and the caller's."""
NOT_ENDED_STATUS = 5


def job_table(answer: Mapping[str, Any]) -> RenderableType:
    jobs = answer["items"]
    columns: dict[str, Cell] = {
        **plain(job="id"),
        "state": state_text,
        **plain("definition", "target", "lane", "tenant"),
        "submitted": lambda job: relative_text(job["submitted_at"]),
        **plain("processor", "losses"),
    }
    if any(job["progress"] is not None for job in jobs):
        columns["progress"] = lambda job: progress_text(job["progress"])
    spare = ("losses", "processor", "lane", "tenant", "target", "submitted", "definition", "progress")
    return table_of("", jobs, columns, spare, none="No jobs match.")


def failed_table(answer: Mapping[str, Any]) -> RenderableType:
    """Return failed jobs: the error, the number of tries, and when the last one ended."""
    jobs = answer["items"]
    columns: dict[str, Cell] = {
        **plain(job="id", definition="definition", target="target", tries="failures"),
        "failed": lambda job: relative_text(job["finished_at"]),
        "error": lambda job: Text(or_dash(job["error"]), style="red"),
    }
    spare = ("target", "tries", "definition", "failed")
    return table_of("", jobs, columns, spare, wraps=("error",), none="No jobs have failed.")


def attempt_table(attempts: Sequence[Mapping[str, Any]]) -> RenderableType:
    columns: dict[str, Cell] = {
        **plain(attempt="number", outcome="outcome"),
        "started": lambda one: instant_text(one["started_at"]),
        "finished": lambda one: instant_text(one["finished_at"]),
        **plain("processor", "error"),
    }
    return table_of("", attempts, columns, spare=("started", "processor", "finished"), wraps=("error",))


def state_text(job: Job) -> Text:
    if job["unschedulable"]:
        return Text("unschedulable", style="bold red")
    return Text(job["state"], style=STATE_STYLES.get(job["state"], ""))


def progress_text(progress: Mapping[str, Any] | None) -> str:
    """Return ``40 % 2 of 5 pages``."""
    if progress is None:
        return "–"
    percent = progress["percent"]
    parts = ("" if percent is None else f"{percent:g} %", progress["text"])
    return " ".join(part for part in parts if part) or "–"


def ended_job(job: Job) -> Shown:
    """Return what is printed of a job, its state, its result or error, and the exit status."""
    state = job["state"]
    if state not in TERMINAL:
        id = printable(job["id"])
        typer.echo(f"hascheduler: {id} has not ended; wait again with hascheduler job wait {id}", err=True)
    parts: list[RenderableType] = [Text.assemble(f"{job['id']} ", (state, STATE_STYLES.get(state, "")))]
    if job["error"] is not None:
        parts.append(Text(job["error"], style="red"))
    if job["result"] is not None:
        parts.append(as_text({"result": job["result"]}))
    return Shown(job, parts, EXIT_STATUSES.get(state, NOT_ENDED_STATUS))


_Limit = Annotated[int, option("--limit N", "How many, newest submission first", min=1, max=10_000)]


@example(
    "hascheduler job list --state pending --state running --watch",
    "hascheduler job list --definition resize --label team=a --since 1h",
    "hascheduler job list --id fire:nightly:",
)
@asks(job_table, tables=1, watch_s=1, name="id")
@with_options("given", options_of(JobFilter))
def list_jobs(scheduler: Scheduler, limit: _Limit = 20, *, given: Given) -> Answer:
    """List jobs and their state."""
    return _newest(scheduler, filter_of(given), limit)


@example("hascheduler job failed --definition resize", "hascheduler job retry --definition resize --state failed")
@asks(failed_table, tables=1, watch_s=1, name="id")
@with_options("given", options_of(JobAttributes))
def failed(scheduler: Scheduler, limit: _Limit = 20, *, given: Given) -> Answer:
    """List failed jobs and their errors.

    `hascheduler job retry` runs them again.
    """
    return _newest(scheduler, {**filter_of(given), "state": JobState.FAILED.value}, limit)


@example("hascheduler job get fire:nightly:1893456000000")
@asks(tables=1, name="id")
def get(scheduler: Scheduler, id: JobId) -> Shown:
    """Show one job in full."""
    answer = scheduler.get(check_job_id(id)).fields
    return Shown(answer, [*_job_page(answer)])


def _job_page(answer: Answer) -> Iterator[RenderableType]:
    attempts = answer["attempts"]
    yield as_text(
        {
            name: _said(name, value)
            for name, value in answer.items()
            if name != "attempts" and value not in (None, [], {}, False)
        }
    )
    if attempts:
        yield attempt_table(attempts)
        if answer.get("revivals"):  # replicas of 0.2.0 do not send it
            yield Text("A missing number was used by a retry by hand; no attempt ran with it.", style="dim")
    for one in attempts:
        if one.get("traceback"):  # replicas of 0.2.0 do not send it
            yield Text(f"\nattempt {one['number']}:", style="dim")
            yield Text(one["traceback"])


def _said(name: str, value: Any) -> Any:
    """Return an instant as it is shown; keep payloads and results as they are, even if they look like instants."""
    is_instant = isinstance(value, str) and (name.endswith("_at") or name == "not_before")
    return instant_text(value) if is_instant else value


def _newest(scheduler: Scheduler, filter: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return the first ``limit`` jobs as one page; if few match, the replica's pages may be shorter."""
    from hascheduler.client.requests import PAGE

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


def _why_page(answer: Answer) -> RenderableType:
    head = Text.assemble((answer["job"], "bold"), f"  {answer['state']}")
    parts: list[RenderableType] = [head]
    standing = answer["standing"]
    if not answer["blocks"]:
        parts.append(Text(with_instants_shown(answer["summary"])))
    parts += [_block(block) for block in answer["blocks"]]
    if answer["blocks"] and answer.get("error"):  # replicas of 0.2.0 do not send it
        parts.append(Text(f"its last attempt: {answer['error']}"))
    if answer["blocks"] and standing is not None:
        parts.append(Text(_place(standing)))
    if standing is not None and standing["deciding"] is not None:
        parts.append(_comparison(standing))
    return Group(*parts)


def _block(block: Answer) -> Text:
    text = Text.assemble(("● ", "yellow"), with_instants_shown(block["because"]), overflow="fold")
    if block["until"] is not None:
        text.append(f"  (until {instant_text(block['until'])}, {relative_text(block['until'])})")
    return text.append(f"\n  → {with_instants_shown(block['unblocked_by'])}", style="dim")


def _place(standing: Answer) -> str:
    if standing["ahead"] == 0:
        return "it is next"
    return f"{'' if standing['exact'] else 'at least '}{standing['ahead']} before it"


def _comparison(standing: Answer) -> Table:
    """Return the comparison with the next job in line; criteria after the deciding one no longer matter."""
    table = new_table("criterion", "this job", f"next: {standing['first']}", "")
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


@example("hascheduler why fire:nightly:1893456000000 --watch")
@asks(_why_page, watch_s=1)
def why(scheduler: Scheduler, id: JobId) -> Answer:
    """Explain why a job is waiting.

    Show every reason that holds it back and what would remove it, or else its place in the queue, by criterion.
    """
    return scheduler.why(check_job_id(id))


def _counts_table(answer: Answer) -> RenderableType:
    table = new_table("state", "jobs")
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
    columns: dict[str, Cell] = {
        **plain(jobs="count", definition="definition"),
        "error": lambda group: Text(group["fault"], style="red"),
        "last": lambda group: relative_text(group["last_at"]),
        "first": lambda group: relative_text(group["first_at"]),
        **plain(example="job"),
    }
    spare = ("first", "example", "last")
    parts: list[RenderableType] = [
        table_of("", answer["groups"], columns, spare, wraps=("error",), none="No jobs have failed.")
    ]
    others = answer["others"]
    if others["groups"]:
        jobs, groups = count_text(others["count"], "job"), count_text(others["groups"], "smaller group")
        parts.append(Text(f"and {jobs} in {groups}", style="dim"))
    if answer["groups"] and not answer["complete"]:
        parts.append(Text(f"Of the newest {answer['examined']} failed jobs that match.", style="dim"))
    return Group(*parts)


@example("hascheduler job counts --definition resize --since 1h --watch")
@asks(_counts_table, watch_s=1)
@with_options("given", options_of(JobFilter))
def counts(scheduler: Scheduler, *, given: Given) -> Answer:
    """Count jobs by state."""
    return scheduler.count(**filter_of(given))


@example("hascheduler job errors --since 1h", "hascheduler job retry --definition resize --state failed")
@asks(_errors_page, tables=1, watch_s=1)
@with_options("given", options_of(JobAttributes))
def errors(scheduler: Scheduler, *, given: Given) -> Answer:
    """Group the newest failed jobs by error.

    Errors that differ only in numbers, ids and quoted texts form one group; the largest group comes first.
    """
    return scheduler.errors(**filter_of(given))
