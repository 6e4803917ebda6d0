"""The options that describe a job, as a part of a request."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_tenant, names_of
from hascheduler.cli.input.values import (
    Readers,
    enum_value,
    fields_of,
    read_payload,
    resources_or_none,
    whole_or_none,
)
from hascheduler.cli.options import Given, Options, text_option, texts_option
from hascheduler.errors import InvalidInput

RESOURCES = text_option("--resources", of="NAME=N,…", help="What a job needs beside a slot, such as cpu=2.")
LABEL = texts_option("--label", of="KEY=VALUE", help="A text for people; again for more.")


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
