"""Pydantic's errors in the words of this project: which field, what is wrong with it, what would be right."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name, quoted

Path = tuple[str | int, ...]
_TYPES = {
    "int_type": "an integer", "int_from_float": "an integer", "int_parsing": "an integer",
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "a text", "dict_type": "an object",
    "list_type": "a list", "tuple_type": "a list", "model_type": "an object", "model_attributes_type": "an object",
    "dataclass_type": "an object",
}  # fmt: skip


def refusal_of(error: Mapping[str, Any], given: Any, model: Any = None) -> InvalidInput:
    """Return one error that pydantic found in ``given``, which should be a ``model``."""
    path = _without_tags(error["loc"], given)
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    match kind:
        case "wrong":
            return InvalidInput(path, context["problem"], context["expected"])
        case "missing":
            return InvalidInput(path, "missing", "this field, which has no default" if path else "a JSON object")
        case "extra_forbidden" | "unexpected_keyword_argument":
            names = _names_at(model, path[:-1], given) if _is_model(model) else []
            otherwise = "only the fields that /docs lists"
            return InvalidInput(path, "no such field", expected_name(str(path[-1]), names) if names else otherwise)
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
            return InvalidInput(path, f"{len(value or '')} characters", f"at most {context['max_length']}")
        case "string_pattern_mismatch":
            return InvalidInput(path, f"{quoted(value)} does not match", f"a text that matches {context['pattern']}")
        case "string_too_short":
            return InvalidInput(path, "empty", "a text")
        case "too_short":
            return InvalidInput(path, f"{context['actual_length']} items", f"at least {context['min_length']}")
        case "too_long":
            return InvalidInput(path, f"{len(value or ())} items", f"at most {context['max_length']}")
        case _ if kind in _TYPES:
            return InvalidInput(path, f"{quoted(value)} is not {_TYPES[kind]}", _TYPES[kind])
        case _:
            return InvalidInput(path, str(error["msg"]))


def _is_model(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, such as those of a union or of a tuple."""
    if _is_model(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def _names_at(model: type[BaseModel], path: Path, given: Any) -> list[str]:
    """Return the published names of the possible fields of the part of ``given`` at ``path``."""
    found, value = [model], given
    for part in path:
        value = _inside(value, part)
        if isinstance(part, str):
            fields = [
                field for each in found for name, field in each.model_fields.items() if part in (field.alias, name)
            ]
            found = [inner for field in fields for inner in models_in(field.annotation)] or ([] if fields else found)
    kind = value.get("type") if isinstance(value, dict) else None
    tagged = [each for each in found if "type" in each.model_fields]
    kinds = [each for each in tagged if kind in get_args(each.model_fields["type"].annotation)]
    return [field.alias or name for each in (kinds or found)[:1] for name, field in each.model_fields.items()]


def _without_tags(loc: Sequence[str | int], given: Any) -> Path:
    """Return the path in the input: pydantic's also holds the tag of the union member that it tried."""
    path: list[str | int] = []
    value, tag_passed = given, False
    for part in loc:
        if isinstance(part, int) and not isinstance(value, list | None):
            continue  # the index of a single value that a list may replace
        if isinstance(value, dict) and value.get("type") == part and not tag_passed:
            tag_passed = True
            continue
        path.append(part)
        tag_passed = False
        value = _inside(value, part)
    return tuple(part for part in path if part != "[key]")


def _inside(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None
