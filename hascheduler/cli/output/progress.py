"""How many an operation is about, and its progress, as a bar that one may leave: the operation goes on."""

from collections.abc import Mapping
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hascheduler.cli.output.console import console
from hascheduler.client import Scheduler
from hascheduler.client.wire import OperationResponse


def count_text(number: int, noun: str, *, exact: bool) -> str:
    return f"{'' if exact else 'more than '}{number} {noun}{'' if number == 1 else 's'}"


def followed(scheduler: Scheduler, operation: OperationResponse) -> OperationResponse:
    """How it ended; its progress is shown meanwhile. Ctrl-C leaves it running, and says how to follow and stop it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = console()
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task(operation["action"], total=max(operation["matched"], _met(operation)))

        def show(now: OperationResponse) -> None:
            progress.update(task, completed=_met(now), total=max(now["matched"], _met(now)))

        try:
            return scheduler.operations.wait(operation["id"], progress=show)
        except KeyboardInterrupt:
            for doing, command in (("follow", "get --follow"), ("stop", "stop")):
                text = f"it goes on; {doing} it with: hascheduler operation {command} {operation['id']}"
                typer.echo(text, err=True)
            raise typer.Exit(130) from None


def _met(operation: Mapping[str, Any]) -> int:
    return int(operation["changed"] + operation["asked_to_stop"] + operation["refused"])
