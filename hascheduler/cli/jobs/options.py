"""The options that say what a job is like, and the part of a request that they make."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_definition, complete_lane, complete_schedule, complete_tenant
from hascheduler.cli.options import Given, LabelFilter, Options
from hascheduler.cli.schedules.trigger_options import or_none, whole_or_none
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.resources import parse_resources


class Mode(StrEnum):
    QUEUED = "queued"
    ON_DEMAND = "on_demand"


RESOURCES = Annotated[
    str | None,
    typer.Option("--resources", metavar="NAME=N,…", help="What a job needs beside a slot, such as cpu=2."),
]
LABEL = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A text for people; again for more.")
]

JOB: Options = {
    "payload": Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON|@FILE", help="What the handler gets; @- reads it from here."),
    ],
    "priority": Annotated[str | None, typer.Option("--priority", metavar="0-10", help="10 is the most urgent.")],
    "tenant": Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Who owns the job.", autocompletion=complete_tenant),
    ],
    "fairness_key": Annotated[
        str | None,
        typer.Option(
            "--fairness-key",
            metavar="TEXT",
            help="Of its tenant's keys the one that has consumed least goes first; default: the tenant.",
        ),
    ],
    "lane": Annotated[
        str | None, typer.Option("--lane", metavar="NAME", help="The class of work.", autocompletion=complete_lane)
    ],
    "mode": Annotated[Mode | None, typer.Option("--mode", help="on_demand: somebody waits for the answer.")],
    "resources": RESOURCES,
}


def job_fields(given: Given) -> dict[str, Any]:
    """Those of `JOB` that are given; None puts one back to its default."""
    fields: dict[str, Any] = {}
    for name in ("tenant", "fairness_key", "lane"):
        if name in given:
            fields[name] = or_none(given[name])
    if "priority" in given:
        fields["priority"] = whole_or_none("--priority", given["priority"])
    if "mode" in given:
        fields["mode"] = given["mode"].value
    if "resources" in given:
        fields["resources"] = read_resources(given["resources"])
    if "payload" in given:
        fields["payload"] = read_payload(given["payload"])
    return fields


def read_resources(text: str) -> dict[str, int] | None:
    return None if or_none(text) is None else dict(parse_resources(text, ("--resources",)))


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


def labels_of(given: Given) -> dict[str, str | None]:
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


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_STATE: Options = {
    "state": Annotated[JobState | None, typer.Option("--state", help="Only those in this state.")],
}
IN_ANY_STATE: Options = {
    "definition": Annotated[
        str | None,
        typer.Option(
            "--definition", metavar="NAME", help="Only those of this type.", autocompletion=complete_definition
        ),
    ],
    "schedule": Annotated[
        str | None,
        typer.Option("--schedule", metavar="NAME", help="Only those that it made.", autocompletion=complete_schedule),
    ],
    "tenant": Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Only those that it owns.", autocompletion=complete_tenant),
    ],
    "batch": Annotated[str | None, typer.Option("--batch", metavar="BATCH", help="Only those of this batch.")],
    "target": Annotated[str | None, typer.Option("--target", metavar="TEXT", help="Only those that work on this.")],
    "label": LabelFilter,
}
FILTER: Options = {**_STATE, **IN_ANY_STATE}


def filter_query(given: Given) -> list[tuple[str, str]]:
    return [
        *((name, str(given[name])) for name in FILTER if name in given and name != "label"),
        *(("label", label) for label in given.get("label", ())),
    ]


def filter_body(given: Given) -> dict[str, Any]:
    """Empty where nothing is given."""
    body: dict[str, Any] = {name: str(given[name]) for name in FILTER if name in given and name != "label"}
    labels: dict[str, str] = {}
    for text in given.get("label", ()):
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(("--label",), f"{text[:64]!r} is not KEY=VALUE", "a name, = and a text")
        if key in labels:
            raise InvalidInput(("--label",), f"{key!r} is there twice", "each label once")
        labels[key] = value
    return {**body, "labels": labels} if labels else body
