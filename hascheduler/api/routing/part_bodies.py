"""Bodies that are parts of a noun (`hascheduler.schema`): published names and forms, bounds, rules over fields."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, invalid_fields
from hascheduler.schema.noun import parse_request
from hascheduler.schema.refusals import refusal_of

P = TypeVar("P", bound=BaseModel)


def read_part(part: type[P], given: Any) -> P:
    """Return what the body ``given`` says; raise a `ProblemError` that names each wrong field."""
    try:
        return parse_request(part, given)
    except ValidationError as error:
        found = error.errors(include_url=False)
        refused = [refusal_of(one, given, part) for one in found[:ERRORS_SHOWN_MAX]]
        fields = [FieldError(one.path, one.problem, one.expected) for one in refused]
        raise invalid_fields(fields, len(found)) from None


@dataclass(frozen=True, slots=True)
class _Published:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda given, _: read_part(source, given), handler(source))


PUBLISHED = _Published()
"""Annotates the body of a route: ``body: Annotated[LaneBody, PUBLISHED]``."""
