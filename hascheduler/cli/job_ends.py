"""How a job that somebody waited for has ended: told, and as the exit status (0: it succeeded, 1: anything else)."""

from collections.abc import Mapping
from typing import Any

import typer
from rich.text import Text

from hascheduler.cli.diffs import as_text
from hascheduler.cli.job_tables import STATE_STYLES
from hascheduler.cli.printable import printable
from hascheduler.cli.tables import console, print_json
from hascheduler.model.job import TERMINAL


def tell_end(job: Mapping[str, Any], *, as_json: bool) -> None:
    """Its state, then its result or its error."""
    if as_json:
        print_json(job)
    else:
        _show(job)
    if job["state"] not in TERMINAL:
        id = printable(job["id"])
        typer.echo(f"hascheduler: {id} has not ended; hascheduler job wait {id} waits on", err=True)
    if job["state"] != "succeeded":
        raise typer.Exit(1)


def _show(job: Mapping[str, Any]) -> None:
    state = job["state"]
    console().print(Text.assemble(f"{job['id']} ", (state, STATE_STYLES.get(state, ""))), soft_wrap=True)
    if job["error"] is not None:
        console().print(Text(job["error"], style="red"), soft_wrap=True)
    if job["result"] is not None:
        console().print(as_text({"result": job["result"]}))
