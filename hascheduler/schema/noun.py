"""A noun, described once: one class is the core's value, the stored document, the request, the answer, the options.

    request, file ──read_request──► the noun ──document_of───► document    field names, numbers:  timeout_ms: 300000
    answer        ◄──answer_of───── the noun ◄──read_document── document    published, for people: timeout: "5m"

A field's name has its unit; the published name is the same without it (`published_name`). Validation reads the core's
form unless its context selects another (`hascheduler.schema.forms.REQUEST`), and writing by alias writes the published
form. So ``Definition(name="x", timeout_ms=5_000)`` is typed Python, and FastAPI, which writes by alias, needs no more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, core_schema

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier
from hascheduler.schema.forms import ANSWER, REQUEST, STORED, Integer, Name, wrong
from hascheduler.schema.refusals import Path, models_in, refusal_of

FIELDS_MAX = 64
"""More than any object has: thousands of unknown fields are refused at once, not one by one."""
_NAMES = {
    "attempts_max": "attempts",
    "lost_attempts_max": "lost_attempts",
    "backoff_factor": "factor",
    "backoff_max_ms": "max",
    "nominal_ms": "nominal_at",
    "criteria": "policy",
    "token_id": "token",
    "request_id": "request",
    "from_ms": "from",
    "excluding": "except",
    "states": "state",
    "verdicts": "verdict",
    "id_prefix": "id",
}
"""Published names that are not the field's name without its unit."""


def published_name(field: str) -> str:
    return _NAMES.get(field) or field.removesuffix("_ms")


class Part(BaseModel):
    """A model of a noun as people write it, or of an object in a noun."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        alias_generator=published_name,
        validate_by_name=True,
        validate_by_alias=False,
        json_schema_serialization_defaults_required=True,
    )
    id_field: ClassVar[str] = "name"
    """The field that is the id of its document."""
    kept: ClassVar[tuple[str, ...]] = ()
    """Fields that keep their stored value if a request leaves them out."""
    always_stored: ClassVar[tuple[str, ...]] = ()
    """Fields that a stored document must have, so that one broken by hand is not taken for a default."""
    null_is_value: ClassVar[tuple[str, ...]] = ()
    """Fields in which null is a value, not the same as left out, because they hold any JSON."""
    never_null: ClassVar[tuple[str, ...]] = ()
    """Published names of fields that a request may omit and that answers always have."""

    def check_request(self, given: Mapping[str, Any]) -> None:
        """Raise an error if fields of a request do not fit together; ``given`` is as its author wrote it."""

    def completed(self) -> Self:
        """Return the part to keep of a request that leaves some field to be set from its other fields."""
        return self

    @classmethod
    def from_stored(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a stored document, converted from forms of older releases and from another nesting."""
        return document

    def to_stored(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the stored form of ``fields``, the reverse of `from_stored`."""
        return fields

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, read: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(given, dict):
            return read(given)
        if len(given) > FIELDS_MAX:
            raise wrong(f"{len(given)} fields", "only the fields that /docs lists")
        left_out = _null_is_default(cls, is_published=info.context is REQUEST or info.context is ANSWER)
        values = {name: value for name, value in given.items() if value is not None or name not in left_out}
        if info.context is STORED:
            values = cls.from_stored(values)
            missing = [name for name in cls.always_stored if name not in values]
            if missing:
                raise together(missing, cls, "missing", "this field, which every stored document has")
        part = read(values)
        if info.context is REQUEST:
            part.check_request(given)
            return part.completed()
        return part

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe defaults as they are sent, null where it means the default, and an example made of the fields'."""
        form = handler(schema)
        described = handler.resolve_ref_schema(form)
        published = {name: field.alias or name for name, field in cls.model_fields.items()}
        if "required" in described:
            described["required"] = [published.get(name, name) for name in described["required"]]
        described["properties"] = {
            published.get(name, name): one for name, one in described.get("properties", {}).items()
        }
        if handler.mode == "serialization":
            described.pop("additionalProperties", None)  # a newer replica may answer more
        sent = cls.model_construct().model_dump(mode="json", by_alias=True)
        with_parts = {field.alias or name for name, field in cls.model_fields.items() if [*parts_in(field.annotation)]}
        for name, field in described["properties"].items():
            if name in with_parts:
                field.pop("examples", None)  # each part has its own
            field["title"] = name.replace("_", " ").title()
            if "description" in field:
                field["description"] = " ".join(field["description"].split())
            if handler.mode == "serialization" and name in cls.never_null:
                options = [one for one in field.pop("anyOf") if one != {"type": "null"}]
                field |= {key: value for key, value in options[0].items() if key not in field}
                field.pop("default")
            if "default" in field and name in sent:
                field["default"] = sent[name]
                if handler.mode == "validation":
                    _allow_null(field)
                if name in cls.kept or handler.mode == "serialization":
                    del field["default"]  # if left out, it keeps its stored value; answers leave nothing out
        described.setdefault("examples", [example_of(cls)])
        return form


Owner = Annotated[
    Name | None,
    Field(
        description="The owner of the `hascheduler apply` that wrote it: `--prune` deletes it for this owner only, and "
        "another owner has to take it over; null: no owner",
        examples=["team-a"],
    ),
]


class Noun(Part):
    """A stored part with a name and a revision."""

    name: str = Field(examples=["nightly"])
    """Unique among its kind"""
    rev: Integer = Field(default=0, examples=[2])
    """Revision; grows with every edit"""
    always_stored: ClassVar[tuple[str, ...]] = ("rev",)


N = TypeVar("N", bound=Noun)
S = TypeVar("S", bound=Part)
P = TypeVar("P", bound=BaseModel)


def parse_request(part: type[P], given: Any) -> P:
    """Return the content of a request or a file; raise pydantic's `ValidationError` with everything that is wrong."""
    return part.model_validate(given, by_alias=True, by_name=False, context=REQUEST)


@dataclass(frozen=True, slots=True)
class ReadBy:
    """An annotation of a model that ``read`` makes of its input, instead of pydantic."""

    read: Callable[[Any, Any], BaseModel]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda given, _: self.read(source, given), handler(source))


AS_REQUEST = ReadBy(parse_request)
"""The annotation of a part that FastAPI or another model reads from a request: ``Annotated[LaneBody, AS_REQUEST]``.

Neither of them passes a validation context.
"""


def read_request(part: type[P], given: Any, path: Path = ()) -> P:
    """Return the content of a request or a file; raise an `InvalidInput` below ``path``.

    An unknown field is named first: it is often the misspelt name of one that is missing.
    """
    try:
        return parse_request(part, given)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        found = refusal_of(first, given, part)
        raise InvalidInput((*path, *found.path), found.problem, found.expected) from None


def read_answer(part: type[P], given: Any) -> P:
    """Return a replica's answer, with fields that a newer one added."""
    return part.model_validate(given, by_alias=True, by_name=False, context=ANSWER, extra="allow")


def named(noun: type[N], name: str, body: Part, rev: int = 0) -> N:
    """Return ``body``, which has been checked, under that name."""
    return cast("N", noun.model_construct(body.model_fields_set | {"name", "rev"}, name=name, rev=rev, **body.__dict__))


def made_of(part: type[P], fields: Mapping[str, Any]) -> P:
    """Return the part with exactly these fields, unchecked.

    It takes a quarter of the time of `BaseModel.model_construct`, which matters for answers with many jobs.
    """
    return cast("P", _blank(part).model_copy(update=fields))


@cache
def _blank(part: type[BaseModel]) -> BaseModel:
    return part.model_construct(**dict.fromkeys(part.model_fields))


def read_document(noun: type[S], id: object, document: Document) -> S:
    """Return the noun, or other part, that is stored; raise an `InvalidInput` with the first wrong field.

    Fields that a newer release added are ignored, and null is the same as left out.
    """
    require_known_version(document)  # first: in an unknown form, anything may differ
    return _validated(noun, {**document, noun.id_field: identifier(id)})


def read_fields(noun: type[S], fields: Document) -> S:
    """Return the noun or part as `read_document` does, with the id among the fields."""
    require_known_version(fields)
    return _validated(noun, fields)


def _validated(noun: type[S], fields: Document) -> S:
    try:
        return noun.model_validate(fields, extra="ignore", context=STORED)
    except ValidationError as error:
        raise refusal_of(error.errors(include_url=False)[0], fields) from None


def document_of(noun: Part) -> dict[str, Any]:
    """Return the document to store."""
    fields = noun.to_stored(noun.model_dump(mode="json"))
    return {"_id": fields.pop(noun.id_field), "v": WRITTEN_VERSION, **fields}


@cache
def stored_fields(noun: type[Noun]) -> tuple[str, ...]:
    """Return the names of the fields of a stored document, without its id."""
    return tuple(name for name in document_of(noun(name="n")) if name != "_id")


def answer_of(part: Part) -> dict[str, Any]:
    """Return the answer, with the fields that a newer replica added."""
    return _with_added(part, part.model_dump(mode="json", by_alias=True))


def normal_form(part: Part) -> dict[str, Any]:
    """Return the fields that a file needs, without those at their defaults. Equal nouns have equal normal forms."""
    return _with_added(part, part.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"rev"}))


def example_of(part: type[Part]) -> dict[str, Any]:
    """Return each field's first example, or else its default, or else the example of the part that it must be."""
    sent = part.model_construct().model_dump(mode="json", by_alias=True)
    return {
        published: field.examples[0] if field.examples else sent[published] if published in sent else _example(field)
        for published, field in ((field.alias or name, field) for name, field in part.model_fields.items())
    }


def _example(field: FieldInfo) -> Any:
    for part in parts_in(field.annotation):
        return [example_of(part)] if get_origin(field.annotation) in (list, tuple) else example_of(part)
    return None


def together(names: Sequence[str], part: type[BaseModel], problem: str, expected: str) -> ValidationError:
    """Return the error of several fields that do not fit together, once for each of them."""
    error = wrong(problem, expected)
    details = [InitErrorDetails(type=error, loc=(name,), input=None) for name in names]
    return ValidationError.from_exception_data(part.__name__, details)


def parts_in(annotation: Any) -> Iterator[type[Part]]:
    """Return the parts in an annotation, such as those of a union or of a tuple."""
    return (model for model in models_in(annotation) if issubclass(model, Part))


@cache
def _null_is_default(part: type[Part], *, is_published: bool) -> frozenset[str]:
    """Return the names, published or own, of fields in which null is the same as left out."""
    fields = {name: field for name, field in part.model_fields.items() if not field.is_required()}
    names = fields.keys() - set(part.null_is_value)
    return frozenset((fields[name].alias or name) if is_published else name for name in names)


def _with_added(part: Part, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the published form of a part with the fields that a newer replica added, also inside of it."""
    for name, field in type(part).model_fields.items():
        value, key = getattr(part, name), field.alias or name
        if isinstance(value, Part) and key in shown:
            shown[key] = _with_added(value, shown[key])
        elif isinstance(value, tuple) and value and isinstance(value[0], Part) and key in shown:
            shown[key] = [_with_added(one, form) for one, form in zip(value, shown[key], strict=True)]
    return {**shown, **(part.model_extra or {})}


def _allow_null(field: dict[str, Any]) -> None:
    options = field.get("anyOf", [])
    if {"type": "null"} in options:
        return
    form = {key: field.pop(key) for key in list(field) if key not in ("title", "description", "default", "examples")}
    field["anyOf"] = [*(options if list(form) == ["anyOf"] else [form]), {"type": "null"}]
