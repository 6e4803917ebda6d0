"""What a model refuses, in the words of this project: which field, what is wrong with it, and what would be right."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name, quoted

Path = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
_EXPECTED_TYPES = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "dict_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def validated(model: type[Model], given: Any, path: Path = ()) -> Model:
    """``given`` as that model; else an `InvalidInput` below ``path``.

    An unknown field is named first: it is often the misspelt name of one that is missing.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        found = refused(first, given)
        if first["type"] == "extra_forbidden":
            found = with_known_names(found, model, given)
        raise InvalidInput((*path, *found.path), found.problem, found.expected) from None


def refused(error: Mapping[str, Any], given: Any) -> InvalidInput:
    """One error that pydantic found in ``given``."""
    path = _without_tags(error["loc"], given)
    kind, context = error["type"], error.get("ctx", {})
    value: Any = error.get("input")
    match kind:
        case "wrong":
            return InvalidInput(path, context["problem"], context["expected"])
        case "missing":
            return InvalidInput(path, "missing", "this field, which has no default" if path else "a JSON object")
        case "extra_forbidden":
            return InvalidInput(path, "no such field", "only the fields that /docs lists")
        case "union_tag_not_found":
            expected = "cron, interval, times or once" if "of" in path else "cron, interval, times, once or any"
            return InvalidInput((*path, "type"), "missing", expected)
        case "union_tag_invalid":
            return InvalidInput((*path, "type"), f"{quoted(context['tag'])} is unknown", context["expected_tags"])
        case "literal_error" | "enum":
            return InvalidInput(path, f"{quoted(value)} is unknown", context["expected"])
        case "greater_than_equal":
            return InvalidInput(path, f"{quoted(value)} is too small", f"at least {context['ge']}")
        case "less_than_equal":
            return InvalidInput(path, f"{quoted(value)} is too large", f"at most {context['le']}")
        case "string_too_long":
            return InvalidInput(path, f"{len(value)} characters", f"at most {context['max_length']}")
        case "string_too_short":
            return InvalidInput(path, "empty", "a text")
        case "too_short":
            return InvalidInput(path, f"{context['actual_length']} in it", f"at least {context['min_length']}")
        case "too_long":
            return InvalidInput(path, f"{len(value)} in it", f"at most {context['max_length']}")
        case _ if kind in _EXPECTED_TYPES:
            return InvalidInput(path, f"{quoted(value)} is not {_EXPECTED_TYPES[kind]}", _EXPECTED_TYPES[kind])
        case _:
            return InvalidInput(path, str(error["msg"]))


def with_known_names(error: InvalidInput, model: type[BaseModel], given: Any) -> InvalidInput:
    """The error of an unknown field with what may be meant; a part that is no object of a model keeps its words."""
    names = _names_at(model, error.path[:-1], given)
    if not names:
        return error
    return InvalidInput(error.path, error.problem, expected_name(str(error.path[-1]), names))


def _names_at(model: type[BaseModel], path: Path, given: Any) -> list[str]:
    """The fields of the model that validates the part of ``given`` at ``path``."""
    found: Iterable[type[BaseModel]] = [model]
    value = given
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        if isinstance(part, str):
            named = [each.model_fields[part].annotation for each in found if part in each.model_fields]
            found = [inner for annotation in named for inner in models_in(annotation)] or (found if not named else [])
    kind = value.get("type") if isinstance(value, dict) else None
    one_of = [each for each in found if "type" in each.model_fields]
    kinds = [each for each in one_of if kind in get_args(each.model_fields["type"].annotation)]
    return [field.alias or name for each in (kinds or list(found))[:1] for name, field in each.model_fields.items()]


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that stand in an annotation, such as those of a union or of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_in(inner)]


def _without_tags(loc: Sequence[str | int], given: Any) -> Path:
    """The path as what was given has it: pydantic's also holds the tag of the union member that it tried."""
    path: list[str | int] = []
    value, tag_passed = given, False
    for part in loc:
        if isinstance(value, dict) and value.get("type") == part and not tag_passed:
            tag_passed = True
            continue
        path.append(part)
        tag_passed = False
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            value = None
    return tuple(part for part in path if part != "[key]")
