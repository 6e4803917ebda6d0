"""The options that make and edit a schedule, and the body of a request that they make."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_definition
from hascheduler.cli.jobs.options import JOB, LABEL, job_fields, labels_of
from hascheduler.cli.options import Given, Options
from hascheduler.cli.schedules.trigger_options import TRIGGER, changed_trigger, new_trigger, or_none, whole_or_none
from hascheduler.errors import InvalidInput
from hascheduler.model.schedule import CatchUp, Overlap

_JOB: Options = {
    "definition": Annotated[
        str | None,
        typer.Option(
            "--definition", metavar="NAME", help="The type of job that it makes.", autocompletion=complete_definition
        ),
    ],
    "target": Annotated[
        str | None,
        typer.Option("--target", metavar="TEXT", help="What the job works on; default: the schedule's name."),
    ],
    **JOB,
    "render": Annotated[
        bool | None,
        typer.Option(
            "--render/--no-render", help="Fill ${nominal_at} and the like in the payload.", show_default=False
        ),
    ],
}

_POLICY: Options = {
    "grace": Annotated[
        str | None, typer.Option("--grace", metavar="SPAN", help="So late is still on time; default 1m.")
    ],
    "catch_up": Annotated[
        CatchUp | None, typer.Option("--catch-up", help="Which of the times that were too late fire; default latest.")
    ],
    "catch_up_limit": Annotated[
        str | None, typer.Option("--catch-up-limit", metavar="N", help="How many with --catch-up all; default 1000.")
    ],
    "overlap": Annotated[
        Overlap | None, typer.Option("--overlap", help="While an earlier job has not ended; default allow.")
    ],
    "pause_after_failures": Annotated[
        str | None,
        typer.Option("--pause-after-failures", metavar="N", help="Pause it when so many jobs in a row failed."),
    ],
    "label": LABEL,
}

SCHEDULE: Options = {**TRIGGER, **_JOB, **_POLICY}


def new_schedule(name: str, given: Given) -> dict[str, Any]:
    """The body that creates it; `InvalidInput` where something that has no default is not given."""
    if "definition" not in given:
        raise InvalidInput(("--definition",), "missing", "the type of job that it makes, such as log")
    trigger = new_trigger(given)
    return {"name": name, **changed_schedule(given), "trigger": trigger}


def changed_schedule(given: Given) -> dict[str, Any]:
    """Those parts of a schedule that are given, as a merge patch; empty for none."""
    body: dict[str, Any] = {}
    misfire: dict[str, Any] = {}
    job = job_fields(given)
    if "grace" in given:
        misfire["grace"] = or_none(given["grace"])
    if "catch_up" in given:
        misfire["catch_up"] = given["catch_up"].value
    if "catch_up_limit" in given:
        misfire["limit"] = whole_or_none("--catch-up-limit", given["catch_up_limit"])
    if "target" in given:
        job["target"] = or_none(given["target"])
    for name in ("definition", "render"):
        if name in given:
            job[name] = given[name]
    if "overlap" in given:
        body["overlap"] = given["overlap"].value
    if "pause_after_failures" in given:
        body["pause_after_failures"] = whole_or_none("--pause-after-failures", given["pause_after_failures"])
    parts = {"trigger": changed_trigger(given), "misfire": misfire, "job": job, "labels": labels_of(given)}
    return {**body, **{name: part for name, part in parts.items() if part}}
