"""The command ``hascheduler events``: a line for each event of a job, as it happens.

After a lost connection the command resumes from the last event that it showed, until Ctrl-C.
"""

import json
import sys
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from hascheduler.cli.environment import access
from hascheduler.cli.fields import options_of
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, InContext, Options, Url, option, text_option, with_options
from hascheduler.cli.output.console import console
from hascheduler.cli.output.instants import Utc, instant_text, set_utc, time_of_day_text
from hascheduler.cli.output.printable import one_printable_line, printable_json
from hascheduler.cli.replica import as_cli_errors, replica
from hascheduler.client import JobEvent, Scheduler
from hascheduler.errors import WorldError
from hascheduler.model.event import EventType
from hascheduler.schema.filters import JobAttributes

_AGAIN_S = 2.0
_STYLES = {
    "submitted": "",
    "dispatched": "cyan",
    "started": "cyan",
    "returned": "yellow",
    "reprioritized": "magenta",
    "cancel_requested": "yellow",
    "revived": "magenta",
    "succeeded": "green",
    "failed": "bold red",
    "cancelled": "dim",
    "schedule.missed": "bold red",
}


_ONLY: Options = {
    "types": Annotated[
        list[EventType] | None, option(f"--type {'|'.join(EventType)}", "Only events of this type; repeatable")
    ],
    "job": text_option("--job JOB", "Only events of this job"),
    **options_of(JobAttributes, {*JobAttributes.model_fields} - {"definition", "schedule", "tenant"}),
}


@example("hascheduler events --type failed --type returned", "hascheduler events --job fire:nightly:1893456000000")
@with_options("only", _ONLY)
def events(
    after: Annotated[str | None, option("--after ID", "Start after the event with this id; default: now")] = None,
    follow: Annotated[
        bool, option("--follow/--no-follow", "Wait for more events, or stop after the stored ones")
    ] = True,
    utc: Utc = False,
    url: Url = None,
    *,
    in_context: InContext = None,
    output: Annotated[
        Literal["text", "json"], option("-o,--output", "Output format; json: a line for each event")
    ] = "text",
    as_json: Annotated[bool, option("--json", "Same as -o json", hidden=True)] = False,
    only: Given,
) -> None:
    """Follow the events of jobs and schedules, until Ctrl-C."""
    if utc:
        set_utc(True)
    try:
        with replica(access(url, in_context)) as scheduler:
            _follow(scheduler, only, after, follow=follow, as_json=as_json or output == "json")
    except KeyboardInterrupt:
        pass  # Ctrl-C is the way out


def _follow(scheduler: Scheduler, only: Given, last_id: str | None, *, follow: bool, as_json: bool) -> None:
    has_spoken = False
    while True:
        try:
            with as_cli_errors("broke off"):
                for event in scheduler.events.stream(**only, after=last_id):
                    has_spoken = True
                    last_id = event.id or last_id
                    if event.type != "caught_up":
                        _show(event, as_json=as_json)
                    elif not follow:
                        return
        except WorldError as error:
            # A replica that was never there is a mistake, one that went away comes back.
            if not (has_spoken and follow):
                raise
            _aside(f"{error}; retrying")
        if not follow:
            return
        time.sleep(_AGAIN_S)


def _show(event: JobEvent, *, as_json: bool) -> None:
    if event.type not in _STYLES:
        _aside(
            event.fields.get("reason") or f"{event.fields.get('missed')} events were missed: this command was too slow"
        )
        return
    if as_json:
        typer.echo(printable_json(json.dumps(event.fields, ensure_ascii=False, separators=(",", ":"))))
    else:
        console().print(_line(event.fields), soft_wrap=True)
    sys.stdout.flush()


def _line(event: Mapping[str, Any]) -> Text:
    """Return ``12:00:00.250Z failed           job:1  resize  attempt 2 at p-1``."""
    # As Text: ids may hold characters that look like markup.
    line = Text()
    line.append(f"{time_of_day_text(event['at'])} ", style="dim")
    line.append(f"{event['type']:<16} ", style=_STYLES[event["type"]])
    line.append(event["job"] or event["schedule"] or "", style="bold")
    parts = [event["definition"] or ""]
    if event["attempt"] and event["type"] != "revived":  # no attempt runs under the number that a revival takes
        parts.append(f"attempt {event['attempt']}" + (f" at {event['processor']}" if event["processor"] else ""))
    if event["priority"] is not None:
        parts.append(f"priority {event['priority']}")
    if event["failures"]:
        parts.append(f"{event['failures']} failed")
    if event.get("losses"):  # replicas of 0.2.0 do not send it
        parts.append(f"{event['losses']} lost")
    if event["retry_at"] is not None:
        parts.append(f"retry at {time_of_day_text(event['retry_at'])}")
    if event.get("count"):
        parts.append(_missed(event))
    if event.get("error"):
        parts.append(" ".join(event["error"].split()))
    return line.append("  " + "  ".join(part for part in parts if part))


def _missed(event: Mapping[str, Any]) -> str:
    first, last = (instant_text(event[name]) for name in ("nominal_at", "through_at"))
    return f"1 time missed: {first}" if event["count"] == 1 else f"{event['count']} times missed: {first} – {last}"


def _aside(text: str) -> None:
    """Print on standard error, so that the line is not taken for an event."""
    sys.stderr.write(f"hascheduler: {one_printable_line(text)}\n")
    sys.stderr.flush()
