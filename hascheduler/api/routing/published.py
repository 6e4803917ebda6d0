"""Queries that are parts of a noun (`hascheduler.schema`): published names and forms, bounds, rules over fields."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import Depends, Query
from pydantic import Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from hascheduler.api.routing.queries import LabelsQuery
from hascheduler.schema.forms import REQUEST
from hascheduler.schema.noun import Part

P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class _ReadBy:
    read: Callable[[Any, Any], Part]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda given, _: self.read(source, given), handler(source))


def query_of(part: type[P]) -> Any:
    """Return what annotates the query of a route: ``filter: Annotated[JobFilter, query_of(JobFilter)]``.

    Each field is a parameter. That of a tuple may be there again for more; labels are ``label=KEY=VALUE``.
    """

    def read(_: Any, given: Mapping[str, Any]) -> P:
        # FastAPI gives all that the query has; `undeclared` refuses what no parameter of the route is.
        known = {name: value for name, value in given.items() if name in parameters}
        said = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
        if "label" in said:
            said["labels"] = LabelsQuery(label=list(said.pop("label"))).labels()
        # All values are texts here, so it is not strict.
        return part.model_validate(said, by_alias=True, by_name=False, strict=False, context=REQUEST)

    def given(query: P) -> P:
        return query

    parameters: dict[str, Any] = dict(_parameters(part))
    shown: Any = create_model(f"{part.__name__}Query", **parameters)
    declared: Any = Annotated[shown, Query(), _ReadBy(read)]
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
