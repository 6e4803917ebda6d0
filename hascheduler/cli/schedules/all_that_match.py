"""``hascheduler schedule pause``, ``resume``, ``reset`` and ``trigger`` of all that match: an operation."""

from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.input.prompts import confirmed
from hascheduler.cli.jobs.options import filter_body
from hascheduler.cli.options import Given, LabelFilter, Options
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.output.progress import count_text, followed
from hascheduler.cli.replica import replica
from hascheduler.errors import InvalidInput
from hascheduler.model.schedule import ScheduleState
from hascheduler.model.verdict import Verdict

MATCHING: Options = {
    "all": Annotated[bool | None, typer.Option("--all", help="All that are active; of resume, all that are paused.")],
    "text": Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="All whose name contains it, in any case.")
    ],
    "state": Annotated[ScheduleState | None, typer.Option("--state", help="Only those in this state.")],
    "verdict": Annotated[
        Verdict | None, typer.Option("--verdict", help="Only those whose last decided time got this verdict.")
    ],
    "tenant": Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only its own.", autocompletion=complete_tenant)
    ],
    "label": LabelFilter,
}
_DONE = {"pause": "paused", "resume": "resumed", "reset": "reset", "trigger": "triggered"}


def is_of_many(verb: str, name: str | None, given: Given, *, asked: bool, of_one: tuple[str, ...] = ()) -> bool:
    """Whether no name is given; `InvalidInput` where nothing says which are meant, or both do. ``asked``: whether
    ``--dry-run`` or ``--yes`` is given, which are for many; ``of_one`` are given options for one alone."""
    if (name is None) == (not given):
        problem = "a name and options can't be had together"
        if name is None:
            problem = f"nothing says which schedules to {verb}"
        raise InvalidInput(("NAME",), problem, "the name of one, or options such as --text or --all")
    if name is not None and asked:
        raise InvalidInput(("NAME",), "--dry-run and --yes are for all that match", "a filter, or neither")
    if name is None and of_one:
        raise InvalidInput((of_one[0],), "is for one schedule", "its name, or no such option")
    return name is None


def carry_out(verb: str, given: Given, url: str, *, dry_run: bool, yes: bool, as_json: bool, **more: Any) -> None:
    """Count, ask, begin the operation and follow it to its end."""
    filter = filter_body(given)
    if given.get("all"):
        filter.setdefault("state", ScheduleState.PAUSED.value if verb == "resume" else ScheduleState.ACTIVE.value)
    action: Any = f"{verb}_schedules"
    with replica(url) as scheduler:
        counted = scheduler.operations.count(action, **filter)
        count = count_text(counted["matched"], "schedule", exact=counted["exact"])
        if dry_run or not counted["matched"]:
            line = f"would {verb} {count}" if counted["matched"] else "There are no such schedules."
            print_json(counted) if as_json else console().print(line, markup=False)
            return
        if not confirmed(f"{verb.capitalize()} {count}?", yes=yes):
            print_json(counted) if as_json else console().print("not done")
            return
        begun = scheduler.operations.start(action, expected=counted["matched"], **more, **filter)
        operation = followed(scheduler, begun)
    if as_json:
        print_json(operation)
    else:
        text = Text(f"{_DONE[verb]} {count_text(operation['changed'], 'schedule', exact=True)}")
        if operation["refused"]:
            text.append(f", {operation['refused']} refused")
        if operation["state"] != "done":
            text.append(f"; the operation {operation['state']}")
        if operation["error"]:
            text.append(f"\n{one_printable_line(operation['error'])}", style="red")
        console().print(text, soft_wrap=True)
    if operation["state"] == "failed":
        raise typer.Exit(2)
