"""The one form of what a request may say, so that equal nouns compare equal."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, get_args

from pydantic import BaseModel, PlainSerializer, TypeAdapter
from pydantic.fields import FieldInfo

from hascheduler.wire.fields import instant_text
from hascheduler.wire.validation import models_in


def normal_form(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Each field as the replica writes it, those that are required first; nothing that is null or has its default.

    What is invalid stays, for the replica to refuse. So does what is unknown: a newer replica may know more. Each field
    is taken alone, as what is stored may break rules over several.
    """
    fields = _fields(model)
    normal: dict[str, Any] = {}
    for name in dict.fromkeys((*fields, *given)):
        if given.get(name) is None:
            continue
        form, default = fields.get(name, (_as_it_is, None))
        value = form(given[name])
        # Types are compared as well: 0 is not false.
        if (type(value), value) != (type(default), default):
            normal[name] = value
    return normal


_Form = Callable[[Any], Any]


@cache
def _fields(model: type[BaseModel]) -> dict[str, tuple[_Form, Any]]:
    """How each field's value is formed, and its default in that form; None where there is none."""
    ordered = sorted(model.model_fields.items(), key=lambda named: not named[1].is_required())
    return {field.alias or name: _field(field) for name, field in ordered}


def _field(field: FieldInfo) -> tuple[_Form, Any]:
    default = None if field.is_required() else field.default
    models = models_in(field.annotation)
    if models:
        return partial(_part, models), {} if isinstance(default, BaseModel) else default
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    writers = _writers(annotation)
    if not writers:
        return _as_it_is, default
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def form(value: Any) -> Any:
        try:
            written = adapter.dump_python(adapter.validate_python(value), mode="json")
        except ValueError:
            return value
        return _short(written) if instant_text in writers else written

    return form, None if default is None else adapter.dump_python(default, mode="json")


def _as_it_is(value: Any) -> Any:
    return value


def _writers(annotation: Any) -> list[Callable[..., Any]]:
    """What writes its values, or parts of them, where they are not in JSON what they are in Python."""
    if isinstance(annotation, PlainSerializer):
        return [annotation.func]
    return [writer for inner in get_args(annotation) for writer in _writers(inner)]


def _part(models: Sequence[type[BaseModel]], value: Any) -> Any:
    if isinstance(value, list):
        return [_part(models, one) for one in value]
    if isinstance(value, Mapping):
        for model in models:
            if len(models) == 1 or value.get("type") in get_args(model.model_fields["type"].annotation):
                return normal_form(model, value)
    return value


def _short(written: Any) -> Any:
    """Instants of whole seconds without thousandths."""
    return [_short(one) for one in written] if isinstance(written, list) else written.replace(".000Z", "Z")
