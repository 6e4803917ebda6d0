"""``hascheduler operation``: one action on all jobs or schedules that match, begun, followed and stopped.

What matches is counted first, and the replica refuses where many more match by the time the user has agreed. An
operation goes on without the command that began it.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.input.prompts import confirmed
from hascheduler.cli.input.values import whole_or_none
from hascheduler.cli.jobs.options import IN_ANY_STATE, OF_JOBS, filter_body
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Given, Options, Url, Yes, with_options
from hascheduler.cli.output.console import console, or_dash, print_json
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.output.progress import count_text, followed
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica


class Action(StrEnum):
    CANCEL_JOBS = "cancel-jobs"
    RETRY_JOBS = "retry-jobs"
    REPRIORITIZE_JOBS = "reprioritize-jobs"
    PAUSE_SCHEDULES = "pause-schedules"
    RESUME_SCHEDULES = "resume-schedules"
    RESET_SCHEDULES = "reset-schedules"
    TRIGGER_SCHEDULES = "trigger-schedules"


_MATCHING: Options = {
    "state": Annotated[
        str | None,
        typer.Option(
            "--state", metavar="STATE", help="Only those in this state; of schedules active, paused or ended."
        ),
    ],
    "text": Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only schedules with this in their name.")
    ],
    "verdict": Annotated[
        str | None,
        typer.Option("--verdict", metavar="VERDICT", help="Only schedules whose last time got it, such as missed."),
    ],
    **OF_JOBS,
    **IN_ANY_STATE,
}
OperationId = Annotated[str, typer.Argument(metavar="OPERATION", help="Its id", show_default=False)]


@example(
    "hascheduler operation start pause-schedules --label team=a --because 'the disk is full'",
    "hascheduler operation start cancel-jobs --definition resize --dry-run",
)
@with_options("given", _MATCHING)
def start(
    action: Annotated[Action, typer.Argument(help="What to do with each that matches", show_default=False)],
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="0-10", help="The new one, of reprioritize-jobs.")
    ] = None,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Of resume-schedules: treat the times since the pause as late ones.")
    ] = False,
    because: Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why, for people.")] = None,
    *,
    detach: Annotated[bool, typer.Option("--detach", help="Do not follow it to its end.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    given: Given,
) -> None:
    """Do something with all jobs or schedules that match.

    After a look at how many those are. Ctrl-C ends the look at its progress, not the operation.
    """
    name: Any = action.value.replace("-", "_")
    filter: Any = filter_body(given)
    with replica(url) as scheduler:
        number = None if priority is None else whole_or_none("--priority", priority)
        counted = scheduler.operations.count(name, priority=number, **filter)
        noun = action.value.partition("-")[2].removesuffix("s")
        count = count_text(counted["matched"], noun, exact=counted["exact"])
        verb = action.value.partition("-")[0]
        if dry_run or not counted["matched"]:
            print_json(counted) if as_json else console().print(f"{count} to {verb}", markup=False)
            return
        if not confirmed(f"{verb.capitalize()} {count}?", yes=yes):
            print_json(counted) if as_json else console().print("not done")
            return
        operation = scheduler.operations.start(
            name,
            priority=number,
            catch_up=catch_up or None,
            reason=because,
            expected=counted["matched"],
            **filter,
        )
        if not detach:
            operation = followed(scheduler, operation)
    _show(operation, as_json=as_json)
    if operation["state"] == "failed":
        raise typer.Exit(2)


@example("hascheduler operation list")
@with_utc
@with_columns
def list_operations(
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest first")] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the operations of the last days, the newest first."""
    with replica(url) as scheduler:
        found = list(islice(scheduler.operations.list(), limit))
    print_json({"items": found}) if as_json else console().print(_table(found))


@example("hascheduler operation get operation:0194f3a1b2c30000015f2c9a01aa --follow")
@with_utc
def get(
    id: OperationId,
    follow: Annotated[bool, typer.Option("--follow", help="Show its progress until it has ended.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show one operation, and how far it is."""
    with replica(url) as scheduler:
        operation = scheduler.operations.get(id)
        if follow:
            operation = followed(scheduler, operation)
    _show(operation, as_json=as_json)


@example("hascheduler operation stop operation:0194f3a1b2c30000015f2c9a01aa")
def stop(id: OperationId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Stop an operation; what it has changed stays so."""
    with replica(url) as scheduler:
        operation = scheduler.operations.stop(id)
    if as_json:
        print_json(operation)
    else:
        ended = operation["state"] != "running"
        console().print(f"it has ended: {operation['state']}" if ended else "it stops after the slice under way")


def _show(operation: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(operation)
        return
    text = Text.assemble((operation["id"], "bold"), f" {operation['action']}: ", (operation["state"], "bold"))
    text.append(f", {operation['changed']} of {_matched(operation)} changed")
    if operation["asked_to_stop"]:
        text.append(f", {operation['asked_to_stop']} asked to stop")
    if operation["refused"]:
        text.append(f", {operation['refused']} refused")
    if operation["error"]:
        text.append(f"\n{one_printable_line(operation['error'])}", style="red")
    console().print(text, soft_wrap=True)


def _table(operations: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not operations:
        return Text("There are no operations of the last days.", style="dim")
    columns = ("operation", "started", "action", "state", "changed", "matched", "refused", "by", "because")
    table = FittedTable("", *columns, spare=("by", "refused", "because"), wraps=("because",))
    for one in operations:
        table.add_row(
            Text(one["id"]),
            Text(instant_text(one["started_at"])),
            Text(one["action"]),
            Text(one["state"], style="red" if one["state"] == "failed" else ""),
            Text(str(one["changed"])),
            Text(_matched(one)),
            Text(str(one["refused"])),
            Text(one["by"]),
            Text(or_dash(one["reason"])),
        )
    return table


def _matched(operation: Mapping[str, Any]) -> str:
    return f"{'' if operation['exact'] else '>'}{operation['matched']}"
