"""The types of fields that several nouns share: each with its rule, its error text and its form in OpenAPI.

In Python a field holds the core's value (whole milliseconds, thousandths); in JSON what people read.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from hascheduler.errors import InvalidInput
from hascheduler.model.resources import AMOUNT_MAX, NAME_EXPECTED, NAME_PATTERN, RESOURCE_NAMES_MAX, is_resource_name
from hascheduler.model.values.durations import format_duration, parse_duration
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_instant, parse_instant

TEXT_LENGTH_MAX = 256
LABELS_MAX = 64
FIELDS_MAX = 64
"""More than any object of this API has: thousands of unknown fields are refused at once, not one by one."""
_TIME_LENGTH_MAX = 64
_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
NAME = re.compile(_NAME_PATTERN[:-1] + r"\Z")
_NAME_EXPECTED = "1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit"
# Control characters, lone surrogates, and the separators that break lines.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


class StrictModel(BaseModel):
    """The base of request bodies: nothing unknown, nothing converted."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_serialization_defaults_required=True
    )

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > FIELDS_MAX:
            raise invalid_value(f"{len(given)} fields", "only the fields that /docs lists")
        return given

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Defaults as they would be sent: a field holds milliseconds, but a number in JSON is seconds."""
        form = handler(schema)
        sent = cls.model_construct().model_dump(mode="json", by_alias=True)
        for name, described in handler.resolve_ref_schema(form).get("properties", {}).items():
            if "default" in described and name in sent:
                described["default"] = sent[name]
        return form


class Revisioned(BaseModel):
    """What answers say first of a stored noun.

    Answers are made with ``model_construct``, and share the fields of requests but not the rules over several of them
    (validators of a model run again when it is sent): a stored value may break what requests have to keep.
    """

    model_config = ConfigDict(extra="ignore", strict=False)

    name: str = Field(description="Unique among its kind")
    rev: int = Field(description="Grows with every edit")


def invalid_value(problem: str, expected: str) -> PydanticCustomError:
    """What a validator raises; `hascheduler.wire.validation` turns it into an `InvalidInput` with its path."""
    return PydanticCustomError("wrong", "{problem}", {"problem": problem, "expected": expected})


def _name(text: str) -> str:
    if not NAME.match(text):
        raise invalid_value(f"{quoted(text)} is not a name", _NAME_EXPECTED)
    return text


def _text(text: str) -> str:
    if not text:
        raise invalid_value("empty", f"1 to {TEXT_LENGTH_MAX} characters")
    return _text_or_empty(text)


def _text_or_empty(text: str) -> str:
    if len(text) > TEXT_LENGTH_MAX:
        raise invalid_value(f"{len(text)} characters", f"at most {TEXT_LENGTH_MAX}")
    if not text.isprintable() and any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        raise invalid_value(f"{quoted(text)} holds a control character", "printable text")
    return text


def _few(labels: Any) -> Any:
    # Before each of them is validated.
    if isinstance(labels, dict) and len(labels) > LABELS_MAX:
        raise invalid_value(f"{len(labels)} labels", f"at most {LABELS_MAX}")
    return labels


def _duration(value: Any) -> int:
    if isinstance(value, str) and len(value) > _TIME_LENGTH_MAX:
        raise invalid_value(f"{quoted(value)} is not a duration", 'a duration such as "90s" or "1m30s"')
    try:
        return parse_duration(value)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


def _instant(value: Any) -> int:
    if not isinstance(value, str):
        raise invalid_value(f"{quoted(value)} is not a text", "an RFC 3339 instant with an offset")
    try:
        return parse_instant(value)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": _NAME_PATTERN})]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1, "maxLength": TEXT_LENGTH_MAX})]
TextOrEmpty = Annotated[str, AfterValidator(_text_or_empty), Field(json_schema_extra={"maxLength": TEXT_LENGTH_MAX})]
Labels = Annotated[dict[Name, TextOrEmpty], BeforeValidator(_few)]
DurationMs = Annotated[
    int,
    PlainValidator(_duration),
    PlainSerializer(format_duration, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "number"}],
            "description": 'A duration such as "90s", "1m30s" or "200ms", or a number of seconds',
        },
        mode="validation",
    ),
]


def _seconds_or_duration(value: Any) -> int:
    """In a query every value is a text: ``30`` is a number of seconds there as well."""
    return _duration(float(value) if _is_number(value) and len(value) <= _TIME_LENGTH_MAX else value)


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.replace(".", "", 1).isdecimal()


def _as_written(span: Any) -> str:
    """A valid span in the unit that its author wrote, as errors show it; a bare number is one of seconds."""
    return span if isinstance(span, str) and not _is_number(span) else f"{span}s"


def written_span(given: Any, name: str, span_ms: int) -> str:
    """The span of that field as the request ``given`` has it; where that leaves it out, as answers show it."""
    span = given.get(name) if isinstance(given, Mapping) else None
    return format_duration(span_ms) if span is None else _as_written(span)


QueryDurationMs = Annotated[
    int,
    PlainValidator(_seconds_or_duration),
    WithJsonSchema({"type": "string", "description": 'A duration such as "90s", or a number of seconds'}),
]
# Beyond these `datetime` raises; a document may hold such a number if it was written by hand.
_YEAR_1_MS, _YEAR_9999_MS = -62_135_596_800_000, 253_402_300_799_999


def is_calendar_ms(at_ms: int) -> bool:
    """Whether a calendar has such a day."""
    return _YEAR_1_MS <= at_ms <= _YEAR_9999_MS


def instant_text(at_ms: int) -> str:
    """RFC 3339, or the bare number where no calendar has such a day."""
    return format_instant(at_ms) if is_calendar_ms(at_ms) else f"{at_ms} ms"


InstantMs = Annotated[
    int,
    PlainValidator(_instant),
    PlainSerializer(instant_text, when_used="json"),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "description": "RFC 3339 with an offset"}, mode="validation"
    ),
]


WEEK_MS = 7 * 86_400_000


def between(least_ms: int, most_ms: int) -> WrapValidator:
    """Refuses a span outside these bounds."""

    def check(given: Any, read: ValidatorFunctionWrapHandler) -> int:
        span_ms: int = read(given)
        if not least_ms <= span_ms <= most_ms:
            raise invalid_value(
                f"{_as_written(given)} is out of range", f"{format_duration(least_ms)} to {format_duration(most_ms)}"
            )
        return span_ms

    return WrapValidator(check)


def _resource_name(name: str) -> str:
    if not is_resource_name(name):
        raise invalid_value(f"{quoted(name)} is no name for a resource", NAME_EXPECTED)
    return name


def _few_resources(amounts: Any) -> Any:
    # Before each of them is validated.
    if isinstance(amounts, dict) and len(amounts) > RESOURCE_NAMES_MAX:
        raise invalid_value(f"{len(amounts)} resources", f"at most {RESOURCE_NAMES_MAX}")
    return amounts


_ResourceName = Annotated[str, AfterValidator(_resource_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]
_Amount = Annotated[int, Field(ge=1, le=AMOUNT_MAX)]
ResourceAmounts = Annotated[
    dict[_ResourceName, _Amount],
    BeforeValidator(_few_resources),
    Field(json_schema_extra={"maxProperties": RESOURCE_NAMES_MAX, "examples": [{"cpu": 2, "gpu": 1}]}),
]
