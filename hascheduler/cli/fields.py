"""Options, columns and request bodies of commands, derived from the classes of the nouns.

    Field                                   option                            cell
    timeout_ms: Annotated[int, span(…)]     --timeout SPAN                    5m
    rate_limit: RateLimit | None            --rate-limit N/SPAN               100/1s
    retry: RetryPolicy                      --retry-attempts N, --retry-…     its attempts
    job: TemplateBody                       an option for each of its fields

The help of an option is the sentence at the field. The value ``none`` means null and restores the default.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import JsonValue
from pydantic.fields import FieldInfo

from hascheduler.cli import completion
from hascheduler.cli.input import values
from hascheduler.cli.input.values import NONE
from hascheduler.cli.options import Complete, Given, Options, option, text_option
from hascheduler.model.resources import Resources, format_resources
from hascheduler.schema.definition import KeyLimit, RateLimit
from hascheduler.schema.forms import Form, Name
from hascheduler.schema.noun import Part, parts_in
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.uniqueness import Uniqueness

_SPELLED = {
    "key_limits": "--key-limit",
    "unique.by": "--unique",
    "unique.on_duplicate": "--on-duplicate",
    "retry.attempts": "--retry-attempts,--attempts",
    "misfire.limit": "--catch-up-limit",
    "job.render": "--render/--no-render",
    "labels": "--label",
}
"""Options whose names differ from those of their fields."""
_HEADINGS = {
    "max_concurrency": "max",
    "conflict_group": "conflicts",
    "rate_limit": "rate",
    "default_cost": "cost",
    "retry": "attempts",
    "key_limits": "keys",
    "max_schedules": "schedules",
}
"""Columns whose headings differ from the names of their fields."""
_UNNAMED = ("misfire", "job")
"""Parts whose options are named after the inner field alone."""
_COMPLETED: Mapping[str, Complete] = {
    "definition": completion.complete_definition,
    "schedule": completion.complete_schedule,
    "tenant": completion.complete_tenant,
    "lane": completion.names_of("lane"),
    "depends_on": completion.complete_job,
}
_SINCE = ("since", "until", "failed_since", "ended_before")
_METAVARS = {"depends_on": "JOB|BATCH"}
_LISTED_MAX = 5
"""The most values of a list that a cell shows."""


class _Kind(NamedTuple):
    """The form of one type's values, as an option and in a cell; an option for ``many`` may be repeated."""

    metavar: str
    read: Callable[[str, Any], Any]
    text: Callable[[Any], str]
    many: bool = False
    choices: Sequence[str] = ()


class _Option(NamedTuple):
    """One option and its place in a body; ``none`` for an option that ``clears`` applies to the whole part."""

    path: tuple[str, ...]
    kind: _Kind
    help: str
    clears: bool

    @property
    def name(self) -> str:
        return "_".join(self.path)

    @property
    def flags(self) -> str:
        path = self.path[1:] if self.path[0] in _UNNAMED else self.path
        return _SPELLED.get(".".join(self.path), "--" + "-".join(path).replace("_", "-"))

    @property
    def annotation(self) -> Any:
        if self.kind is _FLAG:
            return Annotated[bool | None, option(self.flags, self.help, show_default=False)]
        last = self.path[-1]
        help = f"{self.help}; 1h: an hour ago" if last in _SINCE else self.help
        of = _METAVARS.get(last, self.kind.metavar)
        complete = _COMPLETED.get(last, completion.one_of(self.kind.choices))
        return text_option(f"{self.flags} {of}", help, complete, many=self.kind.many)


def options_of(body: type[Part], without: Collection[str] = ()) -> Options:
    """Return an option for each field, as `hascheduler.cli.options.with_options` takes them."""
    return {one.name: one.annotation for one in _options(body, without)}


def body_of(body: type[Part], given: Given, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the given options as a merge patch: null restores the default."""
    changed: dict[str, Any] = {}
    cleared: dict[str, None] = {}
    for one in _options(body, without):
        if one.name in given:
            value = one.kind.read(one.flags.partition(",")[0], given[one.name])
            *outer, last = one.path
            if value is None and one.clears:
                cleared[outer[0]] = None
            else:
                (changed.setdefault(outer[0], {}) if outer else changed)[last] = value
    return changed | cleared


def filter_of(given: Given) -> dict[str, Any]:
    """Return the given options of a filter, by the names of the SDK; empty if none is given."""
    filter: dict[str, Any] = {}
    for name, value in given.items():
        if name in _SINCE:
            filter[name] = values.past_instant(f"--{name.replace('_', '-')}", value)
        elif name == "labels":
            filter[name] = values.labels(value)
        elif (
            value is not False
        ):  # an empty text is refused, not ignored; a single one as a text, which older replicas accept
            filter[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
    return filter


def columns_of(body: type[Part], order: str) -> dict[str, Callable[[Mapping[str, Any]], str]]:
    """Return a column for each field, by its heading: a function from an answer to the cell.

    ``order`` names the fields that come first.
    """
    fields = {field.alias or name: field for name, field in body.model_fields.items()}
    names = dict.fromkeys((*order.split(), *fields))
    return {_HEADINGS.get(name, name.replace("_", " ")): _cell_of(name, _kind(fields[name])) for name in names}


def _cell_of(name: str, kind: _Kind) -> Callable[[Mapping[str, Any]], str]:
    return lambda answer: "–" if answer.get(name) in (None, [], {}) else kind.text(answer[name])


def _options(
    body: type[Part], without: Collection[str] = (), path: tuple[str, ...] = (), cleared_by: str = ""
) -> Iterator[_Option]:
    """Yield an option for each field; for a part without a text form, one for each of its fields.

    ``cleared_by`` is what null means for the part; the option of its first field then stands for the part.
    """
    for place, (name, field) in enumerate(body.model_fields.items()):
        here = (*path, field.alias or name)
        if name in without:
            continue
        part = next(parts_in(field.annotation), None)
        if part in (Uniqueness, RetryPolicy) or name in _UNNAMED:
            assert part is not None
            yield from _options(part, (), here, (field.description or "").partition("null: ")[2])
            continue
        clears = place == 0 and bool(cleared_by)
        help = _help(name, field, body) + (f"; {NONE}: {cleared_by}" if clears else "")
        yield _Option(here, _kind(field), help, clears)


def _help(name: str, field: FieldInfo, body: type[Part]) -> str:
    """Return the sentence at the field in the words of the command line, with an example and the default."""
    kind = _kind(field)
    text = " ".join((field.description or "").split()).replace("null", NONE).replace("Null", NONE).replace("`", "")
    if kind.text is not _shown and field.examples:
        text += f"; such as {kind.text(field.examples[0])}"
    if kind.many:
        text += "; repeatable"
    if field.is_required() or not field.default or name in body.kept or "default" in text:
        return text
    default = body.model_construct().model_dump(mode="json", by_alias=True)[field.alias or name]
    return f"{text}; default {kind.text(default)}" if default else text


def _kind(field: FieldInfo) -> _Kind:
    part = next(parts_in(field.annotation), None)
    if part is not None:
        return _BY_PART[part]
    found = [*field.metadata, *_inside(field.annotation)]
    origins = [get_origin(one) for one in found]
    if field.annotation is bool:
        return _FLAG
    if Resources in found:
        return _Kind("NAME=N,…", values.nullable(values.resources), format_resources)
    if dict in origins:
        return _Kind("KEY=VALUE", lambda _, texts: values.labels_to_change(texts), _shown, many=True)
    if JsonValue in found:
        return _Kind("JSON|@FILE", values.read_payload, _shown)
    for form in (one for one in found if isinstance(one, Form)):
        return _Kind(form.metavar, values.nullable(_reader(form)), _shown)
    choices = [each for one in found if isinstance(one, type) and issubclass(one, StrEnum) for each in one]
    choices += [each for one in found if get_origin(one) is Literal for each in get_args(one)]
    if tuple in origins:
        metavar = "|".join(choices) or "KEY"
        return _Kind(metavar, values.nullable(values.as_given), _shown, True, choices)
    if field.is_required():
        return _Kind("NAME", values.as_given, _shown)
    # `none` may be a value, as of --catch-up.
    read = values.as_given if NONE in choices else values.nullable(values.as_given)
    return _Kind("|".join(choices) or ("NAME" if Name in found else "TEXT"), read, _shown, False, choices)


def _reader(form: Form) -> Callable[[str, str], Any]:
    return _READERS.get(form.metavar) or _READERS.get(form.schema.get("type"), values.one_or_several)


def _inside(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation, and their own annotations."""
    yield annotation
    for inner in get_args(annotation):
        yield from _inside(inner)


def _shown(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    more = f" and {len(value) - _LISTED_MAX} more" if len(value) > _LISTED_MAX else ""
    return ", ".join(map(str, value[:_LISTED_MAX])) + more


def _rate_text(rate: Mapping[str, Any]) -> str:
    return f"{rate['count']}/{rate['per']}"


def _key_limit_text(limit: Mapping[str, Any]) -> str:
    """Return ``payload.customer=2,10/1m``."""
    count, rate = limit.get("max_concurrency"), limit.get("rate_limit")
    return f"{limit['key']}={','.join([*([str(count)] if count else []), *([_rate_text(rate)] if rate else [])])}"


def _unique_text(unique: Mapping[str, Any]) -> str:
    """Return ``payload.customer keep_first 1h``."""
    return " ".join(filter(None, (",".join(unique["by"]), unique["on_duplicate"], unique["period"])))


_FLAG = _Kind("", values.as_given, _shown)
_READERS: Mapping[Any, Callable[[str, str], Any]] = {
    "INSTANT|SPAN": values.coming_instant,
    "integer": values.whole,
    "number": values.number,
    "array": values.several,
}
"""The function that reads an option's text, by its form or the type that its JSON schema names."""
_BY_PART: Mapping[type[Part], _Kind] = {
    RateLimit: _Kind("N/SPAN", values.nullable(values.rate), _rate_text),
    KeyLimit: _Kind(
        "KEY=N,N/SPAN",
        values.nullable(lambda flag, texts: [values.key_limit(flag, one) for one in texts]),
        lambda limits: " ".join(map(_key_limit_text, limits)),
        many=True,
    ),
    Uniqueness: _Kind("", values.as_given, _unique_text),
    RetryPolicy: _Kind("", values.as_given, lambda retry: str(retry["attempts"])),
}
