"""The options that say which jobs are meant, as the query of a list and as the filter of a change."""

from typing import Annotated, Any

import typer

from hascheduler.cli.names import complete_definition, complete_schedule, complete_tenant
from hascheduler.cli.options import Given, LabelFilter, Options
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState

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
