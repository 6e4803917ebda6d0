"""The options that describe a job, as a part of a request; and those that select jobs, as the filter of a list and of
a change.
"""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_definition, complete_schedule, complete_tenant, names_of
from hascheduler.cli.input.values import (
    Readers,
    enum_value,
    fields_of,
    instant_or_ago,
    read_payload,
    resources_or_none,
    whole_or_none,
)
from hascheduler.cli.options import Given, LabelFilter, Options, text_option, texts_option
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState

RESOURCES = text_option("--resources", of="NAME=N,…", help="What a job needs beside a slot, such as cpu=2.")
LABEL = texts_option("--label", of="KEY=VALUE", help="A text for people; again for more.")
_STATE: Options = {
    "state": Annotated[JobState | None, typer.Option("--state", help="Only those in this state.")],
}
IN_ANY_STATE: Options = {
    "definition": text_option("--definition", of="NAME", help="Only those of this type.", complete=complete_definition),
    "schedule": text_option("--schedule", of="NAME", help="Only those that it made.", complete=complete_schedule),
    "tenant": text_option("--tenant", of="NAME", help="Only those that it owns.", complete=complete_tenant),
    "batch": text_option("--batch", of="BATCH", help="Only those of this batch."),
    "target": text_option("--target", of="TEXT", help="Only those that work on this."),
    "label": LabelFilter,
}
FILTER: Options = {**_STATE, **IN_ANY_STATE}
WITHIN: Options = {
    "since": text_option("--since", of="INSTANT|SPAN", help="Only those submitted from then on; 1h: an hour ago."),
    "until": text_option("--until", of="INSTANT|SPAN", help="Only those submitted before that."),
}
BEGINS: Options = {
    "id": text_option("--id", of="TEXT", help="Only those whose id begins so, such as fire:nightly: or job:0194."),
}
OF_JOBS: Options = {
    **BEGINS,
    "unschedulable": Annotated[
        bool, typer.Option("--unschedulable", help="Only those that no processor which lives could ever run.")
    ],
    **WITHIN,
}
LISTED: Options = {
    **OF_JOBS,
    "state": Annotated[
        list[JobState] | None, typer.Option("--state", help="Only those in this state; again for more.")
    ],
    **IN_ANY_STATE,
}
CHANGED: Options = {**OF_JOBS, **FILTER}


class Mode(StrEnum):
    QUEUED = "queued"
    ON_DEMAND = "on_demand"


JOB: Options = {
    "payload": text_option("--payload", of="JSON|@FILE", help="What the handler gets; @- reads it from here."),
    "priority": text_option("--priority", of="0-10", help="10 is the most urgent."),
    "tenant": text_option("--tenant", of="NAME", help="Who owns the job.", complete=complete_tenant),
    "fairness_key": text_option(
        "--fairness-key",
        of="TEXT",
        help="Of its tenant's keys the one that has consumed least goes first; default: the tenant.",
    ),
    "lane": text_option("--lane", of="NAME", help="The class of work.", complete=names_of("lane")),
    "mode": Annotated[Mode | None, typer.Option("--mode", help="on_demand: the caller waits for the answer.")],
    "resources": RESOURCES,
}
_READERS: Readers = {
    "priority": whole_or_none,
    "mode": enum_value,
    "resources": resources_or_none,
    "payload": read_payload,
}


def job_fields(given: Given) -> dict[str, Any]:
    """The options of `JOB` that are given; None puts one back to its default."""
    names = ("tenant", "fairness_key", "lane", "priority", "mode", "resources", "payload")
    return fields_of(given, names, _READERS)


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


def list_filter(given: Given, now_ms: int) -> dict[str, Any]:
    """The options of `LISTED` that are given, by the names that the SDK gives them."""
    names = {"label": "labels", **{name: name for name in LISTED if name not in WITHIN and name != "label"}}
    within = {name: instant_or_ago(given[name], f"--{name}", now_ms) for name in WITHIN if name in given}
    return {**{named: given[name] for name, named in names.items() if given.get(name)}, **within}


def filter_body(given: Given) -> dict[str, Any]:
    """What is given of `CHANGED`, or says which schedules, as the filter of a change; empty if nothing is."""
    now_ms = SystemClock().wall_ms()
    body: dict[str, Any] = {
        name: str(given[name]) for name in (*FILTER, "id", "text", "verdict") if name in given and name != "label"
    }
    body |= {name: instant_or_ago(given[name], f"--{name}", now_ms) for name in WITHIN if name in given}
    if given.get("unschedulable"):
        body["unschedulable"] = True
    labels: dict[str, str] = {}
    for text in given.get("label", ()):
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(("--label",), f"{text[:64]!r} is not KEY=VALUE", "a name, = and a text")
        if key in labels:
            raise InvalidInput(("--label",), f"{key!r} is there twice", "each label once")
        labels[key] = value
    return {**body, "labels": labels} if labels else body
