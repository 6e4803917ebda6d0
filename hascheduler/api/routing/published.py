"""The parts of a noun (`hascheduler.schema`) as queries, and stored values as responses show them.

Those are texts, and any BSON value as plain JSON.
"""

import math
from collections.abc import Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import Depends, Query
from pydantic import Field, create_model

from hascheduler.api.routing.queries import LabelsQuery
from hascheduler.errors import InvalidInput
from hascheduler.schema.forms import REQUEST
from hascheduler.schema.noun import Part, ReadBy

P = TypeVar("P", bound=Part)


def query_of(part: type[P]) -> Any:
    """Return the annotation for the query of a route: ``filter: Annotated[JobFilter, query_of(JobFilter)]``.

    Each field is a parameter. A tuple's parameter may be repeated; labels are ``label=KEY=VALUE``.
    """

    def read(_: Any, given: Mapping[str, Any]) -> P:
        # FastAPI passes the whole query; `undeclared` refuses names that are no parameter of the route.
        known = {name: value for name, value in given.items() if name in parameters}
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
        if "label" in values:
            values["labels"] = LabelsQuery(label=list(values.pop("label"))).labels()
        # All values are texts here, so validation is not strict.
        return part.model_validate(values, by_alias=True, by_name=False, strict=False, context=REQUEST)

    def given(query: P) -> P:
        return query

    parameters: dict[str, Any] = dict(_parameters(part))
    shown: Any = create_model(f"{part.__name__}Query", **parameters)
    declared: Any = Annotated[shown, Query(), ReadBy(read)]
    given.__annotations__["query"] = declared
    return Depends(given)


def _parameters(part: type[Part]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for own, field in part.model_fields.items():
        name = field.alias or own
        kind: Any = field.annotation
        shown: Any = copy(field)
        shown.description = " ".join((field.description or "").split())
        if name == "labels":
            name, kind, shown = "label", list[str], LabelsQuery.model_fields["label"]
        elif get_origin(kind) is tuple:
            most = max(getattr(mark, "max_length", 0) for mark in field.metadata)
            kind = list.__class_getitem__(get_args(kind)[0])
            shown = Field(default=[], alias=field.alias, description=shown.description, max_length=most)
        yield name, (kind, shown)


def texts(fields: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return a stored mapping of texts, such as labels; raise `InvalidInput` if it is not one."""
    value = fields.get(name) or {}
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidInput((name,), "not an object of texts")
    return dict(value)


def as_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a stored text, or the text of another value; None if there is none."""
    value = fields.get(name)
    return None if value is None else str(value)


def plain_json(value: Any) -> Any:
    """Return ``value`` with a text for each value that JSON can't express: BSON has more types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case Mapping():
            return {str(key): plain_json(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item) for item in value]
        case _:
            return str(value)
