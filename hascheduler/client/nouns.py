"""Definitions, lanes, calendars and tenants as the SDK takes and returns them: the classes of `hascheduler.schema`.

Imported on first use, as programs that only submit need no pydantic.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition, KeyLimit, RateLimit
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Noun, answer_of, normal_form, read_answer
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.uniqueness import Uniqueness

N = TypeVar("N", bound=Noun)

NOUNS: Mapping[str, type[Noun]] = {"definitions": Definition, "lanes": Lane, "calendars": Calendar, "tenants": Tenant}
__all__ = ["NOUNS", "Calendar", "Definition", "KeyLimit", "Lane", "RateLimit", "RetryPolicy", "Tenant", "Uniqueness"]


def read_noun(collection: str, answer: Mapping[str, Any]) -> Any:
    return read_answer(NOUNS[collection], dict(answer))


def body_of(noun: Noun) -> dict[str, Any]:
    """Return the body of a PUT without defaults that the caller did not set: an older replica may not know them."""
    kept = {*noun.kept} & noun.model_fields_set
    body = normal_form(noun) | {name: value for name, value in answer_of(noun).items() if name in kept}
    return {name: value for name, value in body.items() if name != "name"}
