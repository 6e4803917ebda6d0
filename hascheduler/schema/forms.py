"""Types of fields that have two forms: the core's value, and the published form for people.

    in Python and in MongoDB     timeout_ms: 300000
    in requests and answers      timeout: "5m"

Bounds and patterns apply to requests. For stored values only the type and the sign are checked: an older release may
have allowed more, and a definition that can't be read would lose its caps.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict
from pydantic import ValidationInfo as Info
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from hascheduler.errors import InvalidInput
from hascheduler.model.resources import (
    AMOUNT_MAX,
    NAME_EXPECTED,
    NAME_PATTERN,
    RESOURCE_NAMES_MAX,
    SLOTS,
    Resources,
    is_resource_name,
    resources,
)
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import INTEGER_MAX
from hascheduler.model.values.instants import (
    LONGEST_MS,
    WallMs,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)

REQUEST: dict[str, str] = {"form": "request"}
"""The validation context of requests and files: published names and forms, bounds, rules over several fields."""
ANSWER: dict[str, str] = {"form": "answer"}
"""The context of a replica's answers: published names and forms, without rules, which a stored noun may break."""
STORED: dict[str, str] = {"form": "stored"}
"""The context of a stored document: fields by the core's names, and no bounds."""
WEEK_MS = 7 * 86_400_000
JOBS_MAX = 1_000_000
"""The upper bound of every field that limits running jobs."""
TEXT_LENGTH_MAX = 256
LABELS_MAX = 64
_TIME_LENGTH_MAX = 64
# Control characters, lone surrogates, and the separators that break lines.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def wrong(problem: str, expected: str) -> PydanticCustomError:
    """Return the error that a validator raises; `hascheduler.schema.refusals` adds the path."""
    return PydanticCustomError("wrong", "{problem}", {"problem": problem, "expected": expected})


def checked(check: Callable[[Any], Any], given: Any) -> Any:
    """Return ``check(given)``; raise its `InvalidInput` as pydantic's error."""
    try:
        return check(given)
    except InvalidInput as error:
        raise wrong(error.problem, error.expected) from None


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """An annotation of a field's type: how its published form is read, written and described, and its stored form read.

    ``metavar`` is the name of a value in the help of a command. If ``answer_schema`` is None, answers look like
    requests.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    read_stored: Callable[[Any], Any]
    schema: Mapping[str, Any]
    answer_schema: Mapping[str, Any] | None = None
    metavar: str = "TEXT"
    write_stored: Callable[[Any], Any] | None = None
    """None: the value is stored as it is."""
    read_answer: Callable[[Any], Any] | None = None
    """Reads the published form without bounds, which a stored value may exceed; None: like ``read``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: Info) -> Any:
            if info.context is ANSWER:
                return checked(self.read_answer or self.read, value)
            return checked(self.read if info.context is REQUEST else self.read_stored, value)

        def write(value: Any, info: core_schema.SerializationInfo) -> Any:
            if info.by_alias:
                return self.write(value)
            return value if self.write_stored is None or info.mode == "python" else self.write_stored(value)

        serialization = core_schema.plain_serializer_function_ser_schema(write, info_arg=True)
        return core_schema.with_info_plain_validator_function(read, serialization=serialization)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        is_answer = handler.mode == "serialization" and self.answer_schema is not None
        return dict(self.answer_schema or {} if is_answer else self.schema)


# Numbers


def whole(least: int, most: int, *, stored_least: int | None = None) -> Form:
    """Return the form of an integer with bounds; a stored value needs only the sign, or ``stored_least``."""

    def integer(value: Any, floor: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput((), f"{quoted(value)} is not an integer", "an integer")
        if value < floor:
            raise InvalidInput((), f"{quoted(value)} is too small", f"at least {floor}")
        return int(value)  # BSON's 64-bit integers have a class of their own

    def read(value: Any) -> int:
        number = integer(value, least)
        if number > most:
            raise InvalidInput((), f"{quoted(value)} is too large", f"at most {most}")
        return number

    def read_stored(value: Any) -> int:
        number = integer(value, min(least, 1) if stored_least is None else stored_least)
        if number > INTEGER_MAX:
            raise InvalidInput((), f"{number}", "an integer of at most 53 bits")
        return number

    schema = {"type": "integer", "minimum": least, "maximum": most}
    answered = {"type": "integer"}
    return Form(read, int, read_stored, schema, answered, metavar="N", read_answer=read_stored)


Count = Annotated[int, whole(1, JOBS_MAX)]
Integer = Annotated[int, whole(0, INTEGER_MAX, stored_least=-INTEGER_MAX)]
"""For values that this project writes itself."""
Flag = Annotated[bool, BeforeValidator(bool)]
"""For values that this project writes itself, and that people may have edited."""

# Spans and instants

_SPAN_SCHEMA = {
    "anyOf": [{"type": "string"}, {"type": "number"}],
    "description": 'A duration such as "90s", "1m30s" or "200ms", or a number of seconds',
}


_QUERY_SPAN_SCHEMA = {"type": "string", "description": 'A duration such as "90s", or a number of seconds'}


def span(least_ms: int, most_ms: int, *, of_query: bool = False) -> Form:
    """Return the form of whole milliseconds, published as a text such as "1m30s"; requests may also give seconds.

    ``of_query``: every value is a text there, including a number of seconds.
    """

    def read(value: Any) -> int:
        if isinstance(value, str) and len(value) > _TIME_LENGTH_MAX:
            raise InvalidInput((), f"{quoted(value)} is not a duration", 'a duration such as "90s" or "1m30s"')
        is_number = not isinstance(value, str) or (of_query and _is_number(value))
        ms = parse_duration(float(value) if is_number and isinstance(value, str) else value)
        if not least_ms <= ms <= most_ms:
            shown = f"{value}s" if is_number else value
            expected = f"{format_duration(least_ms)} to {format_duration(most_ms)}"
            raise InvalidInput((), f"{shown} is out of range", expected)
        return ms

    def read_stored(value: Any) -> int:
        least = min(least_ms, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= INTEGER_MAX:
            raise InvalidInput((), quoted(value), f"whole milliseconds, at least {least}")
        return int(value)

    answered = {"type": "string"}
    schema = _QUERY_SPAN_SCHEMA if of_query else _SPAN_SCHEMA
    return Form(read, format_duration, read_stored, schema, answered, metavar="SPAN", read_answer=parse_duration)


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdecimal()


def written_span(given: Mapping[str, Any], name: str, span_ms: int) -> str:
    """Return the span of that field as the request's author wrote it, or as answers show it."""
    written = given.get(name)
    return format_duration(span_ms) if written is None else written if isinstance(written, str) else f"{written}s"


# Beyond these `datetime` raises; a document may hold such a number if it was written by hand.
_YEAR_1_MS, _YEAR_9999_MS = -62_135_596_800_000, 253_402_300_799_999


def is_calendar_ms(at_ms: int) -> bool:
    """Return True if the calendar has such a day."""
    return _YEAR_1_MS <= at_ms <= _YEAR_9999_MS


def instant_text(at_ms: int) -> str:
    """Return RFC 3339, or the bare number if the calendar has no such day."""
    return format_instant(at_ms) if is_calendar_ms(at_ms) else f"{at_ms} ms"


def _instant(value: Any) -> int:
    if not isinstance(value, str):
        raise InvalidInput((), f"{quoted(value)} is not a text", "an RFC 3339 instant with an offset")
    return parse_instant(value)


def _stored_instant(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise InvalidInput((), f"{quoted(value)} is not an instant", "whole milliseconds")
    return int(value)


_INSTANT_SCHEMA = {"type": "string", "format": "date-time", "description": "RFC 3339 with an offset"}
Instant = Annotated[
    WallMs, Form(_instant, instant_text, _stored_instant, _INSTANT_SCHEMA, {"type": "string"}, metavar="INSTANT|SPAN")
]
Span = Annotated[int, span(0, LONGEST_MS)]

# Texts

PUBLISHED_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
NAME = re.compile(PUBLISHED_NAME_PATTERN[:-1] + r"\Z")


def _name(text: str, info: Info) -> str:
    if not (NAME.match(text) if info.context is REQUEST else text):
        expected = "1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit"
        raise wrong(f"{quoted(text)} is not a name", expected)
    return text


def _text(text: str, info: Info) -> str:
    if info.context is REQUEST and not text:
        raise wrong("empty", f"1 to {TEXT_LENGTH_MAX} characters")
    return _text_or_empty(text, info)


def _text_or_empty(text: str, info: Info) -> str:
    if info.context is not REQUEST:
        return text
    if len(text) > TEXT_LENGTH_MAX:
        raise wrong(f"{len(text)} characters", f"at most {TEXT_LENGTH_MAX}")
    if not text.isprintable() and any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        raise wrong(f"{quoted(text)} contains a control character", "printable text")
    return text


def _few_labels(labels: Any) -> Any:
    # Limited before the items are validated.
    if isinstance(labels, dict) and len(labels) > LABELS_MAX:
        raise wrong(f"{len(labels)} labels", f"at most {LABELS_MAX}")
    return labels


Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": PUBLISHED_NAME_PATTERN})]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1, "maxLength": TEXT_LENGTH_MAX})]
TextOrEmpty = Annotated[str, AfterValidator(_text_or_empty), Field(json_schema_extra={"maxLength": TEXT_LENGTH_MAX})]
Labels = Annotated[dict[Name, TextOrEmpty], BeforeValidator(_few_labels)]

# Lists and objects

Listed = Strict(False)
"""An annotation of a tuple, because JSON has lists."""


def each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ``values``; raise an error if two of them are equal, or have the same ``key``."""
    keys = [getattr(one, "key", one) for one in values]
    twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
    if twice is not None:
        raise wrong(f"{quoted(twice)} is repeated", "each key once")
    return values


def _resource_name(name: str, info: Info) -> str:
    if not (is_resource_name(name) if info.context is REQUEST else name and name != SLOTS):
        raise wrong(f"{quoted(name)} is not a resource name", NAME_EXPECTED)
    return name


def _few_resources(given: Any) -> Any:
    # Limited before the items are validated.
    amounts = dict(given) if isinstance(given, tuple) else given
    if isinstance(amounts, dict) and len(amounts) > RESOURCE_NAMES_MAX:
        raise wrong(f"{len(amounts)} resources", f"at most {RESOURCE_NAMES_MAX}")
    return amounts


_ResourceName = Annotated[str, AfterValidator(_resource_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]
_Amounts = Annotated[
    dict[_ResourceName, Annotated[int, whole(1, AMOUNT_MAX)]],
    BeforeValidator(_few_resources),
    Field(json_schema_extra={"maxProperties": RESOURCE_NAMES_MAX}),
]


@dataclass(frozen=True, slots=True)
class AsVector:
    """An annotation of a field that is written as an object of type ``amounts`` and held as a sorted tuple of pairs.

    A tuple can be hashed.
    """

    amounts: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain = handler.generate_schema(dict[str, int])
        written = core_schema.plain_serializer_function_ser_schema(dict, return_schema=plain)
        return core_schema.no_info_after_validator_function(
            resources, handler.generate_schema(self.amounts), serialization=written
        )


ResourceAmounts = Annotated[Resources, AsVector(_Amounts)]
"""Amounts by name, such as ``{"cpu": 2}``."""
