"""The options that say which jobs, schedules or verdicts are meant, made of the class of the filter."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args, get_origin

import typer

from hascheduler.cli.completion import complete_definition, complete_schedule, complete_tenant
from hascheduler.cli.input.values import instant_or_ago
from hascheduler.cli.options import Given, Options, text_option, texts_option
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.schema.noun import Part

_COMPLETED = {"definition": complete_definition, "schedule": complete_schedule, "tenant": complete_tenant}
_INSTANTS = ("since", "until")


def filter_options(filter: type[Part]) -> Options:
    """Return an option for each field; its help is the sentence at the field."""
    return {
        field.alias or name: _option(field.alias or name, field.annotation, field.description or "")
        for name, field in filter.model_fields.items()
    }


def _option(name: str, kind: Any, sentence: str) -> Any:
    help = " ".join(sentence.split()).replace("`", "")
    if name == "labels":
        return texts_option("--label", of="KEY=VALUE", help=f"{help}; again for more.")
    if kind is bool:
        return Annotated[bool, typer.Option(f"--{name}", help=f"{help}.")]
    if get_origin(kind) is tuple:
        values: Any = list.__class_getitem__(get_args(get_args(kind)[0])[0])
        return Annotated[values | None, typer.Option(f"--{name}", help=f"{help}.")]
    if name in _INSTANTS:
        return text_option(f"--{name}", of="INSTANT|SPAN", help=f"{help}; 1h: an hour ago.")
    return text_option(
        f"--{name}", of="NAME" if name in _COMPLETED else "TEXT", help=f"{help}.", complete=_COMPLETED.get(name)
    )


def filter_of(given: Given) -> dict[str, Any]:
    """Return what options of `filter_options` mean, by the names of the SDK; empty if none is given."""
    now_ms = SystemClock().wall_ms()
    filter: dict[str, Any] = {}
    for name, value in given.items():
        if name in _INSTANTS:
            filter[name] = instant_or_ago(value, f"--{name}", now_ms)
        elif name == "labels":
            filter[name] = _labels(value)
        elif isinstance(value, list):  # one alone as a text, which older replicas know
            filter[name] = [each.value for each in value] if len(value) > 1 else value[0].value
        elif value:
            filter[name] = value
    return filter


def _labels(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(("--label",), f"{text[:64]!r} is not KEY=VALUE", "a name, = and a text")
        if key in labels:
            raise InvalidInput(("--label",), f"{key!r} is there twice", "each label once")
        labels[key] = value
    return labels
