"""How the payload of a ready-made processor is read: strictly, and the first mistake becomes one line that helps.

A payload that makes no sense is an `InvalidInput`, which is a `CallerError`: trying again can't help. What the world
did is a `WorldError`: the same attempt may succeed later.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import format_duration, parse_duration
from hascheduler.model.values.error_texts import quoted

_Payload = TypeVar("_Payload", bound="Payload")
_QUOTED_LENGTH_MAX = 100
_TYPES = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "an object",
    "string_type": "a text",
}


class Payload(BaseModel):
    """Nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read_payload(model: type[_Payload], payload: object) -> _Payload:
    """``payload`` as ``model`` describes it, or an `InvalidInput` for the first field that is wrong."""
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        raise _invalid(error.errors(include_url=False)[0], sorted(model.model_fields)) from None


def wrong(problem: str, expected: str) -> PydanticCustomError:
    """What a validator raises, so that both halves reach the `InvalidInput`."""
    return PydanticCustomError("wrong", "{problem}", {"problem": problem, "expected": expected})


def shown(value: object) -> str:
    """``value`` as a message may quote it."""
    return quoted(value, _QUOTED_LENGTH_MAX)


def within(shortest: str, longest: str) -> AfterValidator:
    """Refuses a `DurationMs` outside of the two."""

    def check(value_ms: int) -> int:
        if not parse_duration(shortest) <= value_ms <= parse_duration(longest):
            raise wrong(f"{format_duration(value_ms)} is out of range", f"{shortest} to {longest}")
        return value_ms

    return AfterValidator(check)


def _duration_ms(value: Any) -> int:
    try:
        return parse_duration(value)
    except InvalidInput as error:
        raise wrong(error.problem, error.expected) from None


DurationMs = Annotated[int, PlainValidator(_duration_ms)]


def _invalid(error: Mapping[str, Any], fields: list[str]) -> InvalidInput:
    path = ("payload", *(part for part in error["loc"] if part != "[key]"))
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    match kind:
        case "wrong":
            return InvalidInput(path, context["problem"], context["expected"])
        case "missing":
            return InvalidInput(path, "missing", "this field, which has no default")
        case "extra_forbidden":
            return InvalidInput(path, "no such field", f"only {', '.join(fields)}")
        case "literal_error":
            return InvalidInput(path, f"{shown(value)} is unknown", context["expected"])
        case "too_short":
            return InvalidInput(path, "empty", f"at least {context['min_length']}")
        case "too_long":
            return InvalidInput(path, "too many", f"at most {context['max_length']}")
        case "string_too_long":
            return InvalidInput(path, f"{len(str(value))} characters", f"at most {context['max_length']}")
        case "greater_than_equal":
            return InvalidInput(path, f"{shown(value)} is too small", f"at least {context['ge']}")
        case "less_than_equal":
            return InvalidInput(path, f"{shown(value)} is too large", f"at most {context['le']}")
        case _ if kind in _TYPES:
            return InvalidInput(path, f"{shown(value)} is not {_TYPES[kind]}", _TYPES[kind])
        case _:
            return InvalidInput(path, str(error["msg"]))
