"""The normal form of what may be wrong, or newer than this release: each field is taken alone, so nothing is lost."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, get_args

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from hascheduler.schema.forms import ANSWER, Form, instant_text
from hascheduler.schema.noun import Part, parts_in


def lenient_form(part: type[Part], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return each field as a replica writes it, those that are required first; nothing that is null or has its default.

    What is invalid stays, for the replica to refuse. So does what is unknown: a newer replica may know more.
    """
    fields = _fields(part)
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


_Written = Callable[[Any], Any]


@cache
def _fields(part: type[Part]) -> dict[str, tuple[_Written, Any]]:
    """Return how each field's value is written, and its default in that form; None if it has none."""
    ordered = sorted(part.model_fields.items(), key=lambda named: not named[1].is_required())
    return {field.alias or name: _field(field) for name, field in ordered}


def _field(field: FieldInfo) -> tuple[_Written, Any]:
    default = None if field.is_required() else field.default
    parts = list(parts_in(field.annotation))
    if parts:
        return partial(_part, parts), [] if default == () else None if default is None else {}
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    forms = _forms(annotation)
    if not forms:
        return _as_it_is, adapter.dump_python(default, mode="json")

    def form(value: Any) -> Any:
        try:
            read = adapter.validate_python(value, context=ANSWER)
        except ValueError:
            return value
        written = adapter.dump_python(read, mode="json", by_alias=True)
        return _short(written) if any(each.write is instant_text for each in forms) else written

    return form, None if default is None else adapter.dump_python(default, mode="json", by_alias=True)


def _as_it_is(value: Any) -> Any:
    return value


def _forms(annotation: Any) -> list[Form]:
    inner = (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    return [annotation] if isinstance(annotation, Form) else [form for each in inner for form in _forms(each)]


def _part(parts: Sequence[type[Part]], value: Any) -> Any:
    if isinstance(value, list):
        return [_part(parts, one) for one in value]
    if isinstance(value, Mapping):
        for part in parts:
            if len(parts) == 1 or value.get("type") in get_args(part.model_fields["type"].annotation):
                return lenient_form(part, value)
    return value


def _short(written: Any) -> Any:
    """Return instants of whole seconds without thousandths."""
    return [_short(one) for one in written] if isinstance(written, list) else written.replace(".000Z", "Z")
