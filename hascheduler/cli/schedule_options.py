"""The options that make and edit a schedule, and the body of a request that they make."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hascheduler.cli.names import complete_definition
from hascheduler.cli.options import Given, Options
from hascheduler.cli.trigger_options import TRIGGER, changed_trigger, new_trigger, or_none, whole_or_none
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
    "payload": Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON|@FILE", help="What the handler gets; @- reads it from here."),
    ],
    "priority": Annotated[str | None, typer.Option("--priority", metavar="0-10", help="10 is the most urgent.")],
    "lane": Annotated[str | None, typer.Option("--lane", metavar="NAME", help="The class of work.")],
    "fairness_key": Annotated[
        str | None, typer.Option("--fairness-key", metavar="TEXT", help="Keys share the capacity of a lane.")
    ],
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
    "label": Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A text for people; again for more.")
    ],
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
    job: dict[str, Any] = {}
    if "grace" in given:
        misfire["grace"] = or_none(given["grace"])
    if "catch_up" in given:
        misfire["catch_up"] = given["catch_up"].value
    if "catch_up_limit" in given:
        misfire["limit"] = whole_or_none("--catch-up-limit", given["catch_up_limit"])
    for name in ("definition", "target", "lane", "fairness_key", "render"):
        if name in given:
            job[name] = or_none(given[name]) if name in ("target", "lane", "fairness_key") else given[name]
    if "priority" in given:
        job["priority"] = whole_or_none("--priority", given["priority"])
    if "payload" in given:
        job["payload"] = read_payload(given["payload"])
    if "overlap" in given:
        body["overlap"] = given["overlap"].value
    if "pause_after_failures" in given:
        body["pause_after_failures"] = whole_or_none("--pause-after-failures", given["pause_after_failures"])
    parts = {"trigger": changed_trigger(given), "misfire": misfire, "job": job, "labels": _labels(given)}
    return {**body, **{name: part for name, part in parts.items() if part}}


def read_payload(text: str) -> Any:
    """JSON, or that of the file after ``@`` (``@-``: standard input)."""
    path = ("--payload",)
    try:
        if text.startswith("@"):
            text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text("utf-8")
        return json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise InvalidInput(path, f"{text[1:]}: {error.strerror}", "a file that can be read") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(path, f"is not JSON: {error}", """such as '{"n": 1}', '"text"' or @FILE""") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _labels(given: Given) -> dict[str, str | None]:
    """``key=value`` sets, ``key-`` removes."""
    labels: dict[str, str | None] = {}
    for text in given.get("label", ()):
        key, equals, value = text.partition("=")
        if not equals and not text.endswith("-"):
            raise InvalidInput(
                ("--label",), f"{text[:64]!r} is not KEY=VALUE", "a name, = and a text; KEY- removes one"
            )
        labels[key if equals else text[:-1]] = value if equals else None
    return labels
