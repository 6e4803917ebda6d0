"""Jobs as tables, and how a job ended: its result or error, and the exit status."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.output.answers import Shown
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.output.instants import instant_text, relative_text
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.output.yaml_text import as_text
from hascheduler.model.job import TERMINAL

Job = Mapping[str, Any]

STATE_STYLES = {"running": "cyan", "dispatched": "cyan", "succeeded": "green", "failed": "red", "cancelled": "dim"}
EXIT_STATUSES = {"succeeded": 0, "failed": 3, "cancelled": 4}
"""Apart from 1 and 2, which are the world's fault and the caller's."""
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
    return table_of("", jobs, columns, spare, none="There are no such jobs.")


def failed_table(answer: Mapping[str, Any]) -> RenderableType:
    """Return failed jobs: the error, how many tries, and when the last one ended."""
    jobs = answer["items"]
    columns: dict[str, Cell] = {
        **plain(job="id", definition="definition", target="target", tries="failures"),
        "failed": lambda job: relative_text(job["finished_at"]),
        "error": lambda job: Text(or_dash(job["error"]), style="red"),
    }
    spare = ("target", "tries", "definition", "failed")
    return table_of("", jobs, columns, spare, wraps=("error",), none="No job has failed.")


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
    """``40 % 2 of 5 pages``."""
    if progress is None:
        return "–"
    percent = progress["percent"]
    parts = ("" if percent is None else f"{percent:g} %", progress["text"])
    return " ".join(part for part in parts if part) or "–"


def ended_job(job: Job) -> Shown:
    """Return what is printed of it, its state, then its result or its error; and the exit status."""
    state = job["state"]
    if state not in TERMINAL:
        id = printable(job["id"])
        typer.echo(f"hascheduler: {id} has not ended; hascheduler job wait {id} waits on", err=True)
    parts: list[RenderableType] = [Text.assemble(f"{job['id']} ", (state, STATE_STYLES.get(state, "")))]
    if job["error"] is not None:
        parts.append(Text(job["error"], style="red"))
    if job["result"] is not None:
        parts.append(as_text({"result": job["result"]}))
    return Shown(job, parts, EXIT_STATUSES.get(state, NOT_ENDED_STATUS))
