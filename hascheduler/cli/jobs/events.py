"""``hascheduler events``: a line for each event of a job, as it happens.

After a lost connection the command resumes from the last event that it showed, until Ctrl-C.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.completion import complete_definition, complete_schedule, complete_tenant
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, Url
from hascheduler.cli.output.console import console
from hascheduler.cli.output.printable import one_printable_line, printable_json
from hascheduler.errors import WorldError
from hascheduler.model.event import EventType

PATH = "/v1/events"
_SILENCE_MAX_S = 45.0
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
}


@dataclass
class StreamBlock:
    """One block of the stream as it came. A comment comes when there is nothing more to tell at present."""

    id: str = ""
    name: str = ""
    data: str = ""
    is_comment: bool = False


@example("hascheduler events --type failed --type returned", "hascheduler events --job fire:nightly:1893456000000")
def events(
    types: Annotated[
        list[EventType] | None, typer.Option("--type", help="Only events of this type; again for more.")
    ] = None,
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only of this job.")] = None,
    definition: Annotated[
        str | None,
        typer.Option(
            "--definition", metavar="NAME", help="Only of jobs of this type.", autocompletion=complete_definition
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="NAME", help="Only of its jobs.", autocompletion=complete_schedule),
    ] = None,
    *,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Only of its jobs.", autocompletion=complete_tenant),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Begin after the event with this id, not with now.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more, or end with what there is.")
    ] = True,
    url: Url = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each event.")] = False,
) -> None:
    """Show what happens to jobs, as it happens, until Ctrl-C."""
    wanted = {"job": job, "definition": definition, "schedule": schedule, "tenant": tenant}
    query = [("type", type.value) for type in types or ()]
    query += [(name, value) for name, value in wanted.items() if value is not None]
    try:
        with Client(url) as client:
            _follow(client, query, after, follow=follow, as_json=as_json)
    except KeyboardInterrupt:
        pass  # how one leaves


def _follow(client: Client, query: list[tuple[str, str]], last_id: str | None, *, follow: bool, as_json: bool) -> None:
    has_spoken = False
    while True:
        resumed = query if last_id is None else [*query, ("after", last_id)]
        try:
            for block in _read_blocks(client.lines(PATH, resumed, patience_s=_SILENCE_MAX_S)):
                has_spoken = True
                last_id = block.id or last_id
                if block.name:
                    _show(block, as_json=as_json)
                elif block.is_comment and not follow:
                    return
        except WorldError as error:
            # One that was never there is a mistake, one that went away comes back.
            if not (has_spoken and follow):
                raise
            _aside(f"{error}; trying again")
        if not follow:
            return
        time.sleep(_AGAIN_S)


def _read_blocks(lines: Iterator[str]) -> Iterator[StreamBlock]:
    """What each block says; one that was cut off in the middle says nothing."""
    block = StreamBlock()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                block.id = value
            case "event":
                block.name = value
            case "data":
                block.data = value
            case "" if line:
                block.is_comment = True
            case "":
                yield block
                block = StreamBlock()


def _show(block: StreamBlock, *, as_json: bool) -> None:
    data = json.loads(block.data)
    if block.name not in _STYLES:
        _aside(data.get("reason") or f"{data.get('missed')} events were missed: this was too slow")
        return
    if as_json:
        typer.echo(printable_json(block.data))
    else:
        console().print(_line(data), soft_wrap=True)
    sys.stdout.flush()


def _line(event: dict[str, Any]) -> Text:
    """``12:00:00.250 failed           job:1  resize  attempt 2 at p-1``, the time in UTC."""
    # As Text: ids may hold what looks like markup.
    line = Text()
    line.append(f"{event['at'][11:23]} ", style="dim")
    line.append(f"{event['type']:<16} ", style=_STYLES[event["type"]])
    line.append(event["job"], style="bold")
    parts = [event["definition"] or ""]
    if event["attempt"]:
        parts.append(f"attempt {event['attempt']}" + (f" at {event['processor']}" if event["processor"] else ""))
    if event["priority"] is not None:
        parts.append(f"priority {event['priority']}")
    if event["failures"]:
        parts.append(f"{event['failures']} failed")
    if event["retry_at"] is not None:
        parts.append(f"again at {event['retry_at'][11:23]}")
    return line.append("  " + "  ".join(part for part in parts if part))


def _aside(text: str) -> None:
    """What is no event goes where it can't be taken for one."""
    sys.stderr.write(f"hascheduler: {one_printable_line(text)}\n")
    sys.stderr.flush()
