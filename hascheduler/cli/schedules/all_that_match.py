"""``hascheduler schedule pause``, ``resume``, ``reset`` and ``trigger`` of all that match."""

from functools import partial
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.jobs.all_that_match import change_all
from hascheduler.cli.jobs.options import filter_body
from hascheduler.cli.options import Given, LabelFilter, Options, text_option
from hascheduler.cli.replica import replica
from hascheduler.errors import InvalidInput
from hascheduler.model.schedule import ScheduleState
from hascheduler.model.verdict import Verdict

MATCHING: Options = {
    "all": Annotated[bool | None, typer.Option("--all", help="All that are active; of resume, all that are paused.")],
    "text": text_option("--text", of="TEXT", help="All whose name contains it, in any case."),
    "state": Annotated[ScheduleState | None, typer.Option("--state", help="Only those in this state.")],
    "verdict": Annotated[
        Verdict | None, typer.Option("--verdict", help="Only those whose last decided time got this verdict.")
    ],
    "tenant": text_option("--tenant", of="NAME", help="Only its own.", complete=complete_tenant),
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


def carry_out(
    verb: str,
    given: Given,
    url: str,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    again: str = "the command",
    **more: Any,
) -> None:
    """Count the schedules, ask, and change them; ``more`` are arguments of the SDK's method."""
    filter = filter_body(given)
    if given.get("all"):
        filter.setdefault("state", ScheduleState.PAUSED.value if verb == "resume" else ScheduleState.ACTIVE.value)
    with replica(url) as scheduler:
        where = partial(getattr(scheduler.schedules, f"{verb}_where"), **filter, **more)
        change_all(where, "schedule", verb, _DONE[verb], dry_run=dry_run, yes=yes, as_json=as_json, again=again)
