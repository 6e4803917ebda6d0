"""Reads a trigger in the form of requests and files where no replica is asked: for previews, timelines and `apply`.

Shape and types are checked strictly here; the values by `hascheduler.triggers.check_trigger`.
"""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import WallMs, parse_instant
from hascheduler.model.trigger import Cron, Interval, Once, Pattern, Times, Trigger, Window

Path = tuple[str | int, ...]

_FIELDS = {
    "cron": {"expression", "timezone"},
    "interval": {"every", "anchor"},
    "times": {"at"},
    "once": {"at"},
}
_NARROWING = {"jitter", "start_at", "end_at", "max_fires", "exclude"}


def read_trigger(body: object, now_ms: WallMs, path: Path = ("trigger",)) -> Trigger:
    """The trigger; `InvalidInput` for what is no trigger. Intervals without an anchor are counted from ``now_ms``."""
    if not isinstance(body, Mapping):
        raise InvalidInput(path, f"{json_type(body)}", "an object with a type")
    fields = {name: value for name, value in body.items() if value is not None}
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _FIELDS:
        problem = "missing" if kind is None else f"{str(kind)[:64]!r} is unknown"
        raise InvalidInput((*path, "type"), problem, "cron, interval, times or once")
    for name in fields:
        if name not in _FIELDS[kind] | _NARROWING:
            allowed = ", ".join(sorted(_FIELDS[kind] | _NARROWING))
            raise InvalidInput((*path, str(name)), f"no such field of a trigger of the type {kind}", allowed)
    pattern = _pattern(kind, fields, now_ms, path)
    return Trigger(
        pattern,
        jitter_ms=parse_duration(fields.get("jitter", 0), (*path, "jitter")),
        start_at_ms=_instant_or_none(fields, "start_at", path),
        end_at_ms=_instant_or_none(fields, "end_at", path),
        max_fires=_whole_or_none(fields, "max_fires", path),
        exclude=tuple(
            _window(window, (*path, "exclude", index)) for index, window in enumerate(_items(fields, "exclude", path))
        ),
    )


def json_type(value: object) -> str:
    """What a value is, in the words of JSON."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _pattern(kind: str, fields: Mapping[str, Any], now_ms: WallMs, path: Path) -> Pattern:
    match kind:
        case "cron":
            return Cron(_text(fields, "expression", path), _text(fields, "timezone", path, default="UTC"))
        case "interval":
            every_ms = parse_duration(_present(fields, "every", path), (*path, "every"))
            anchor_ms = _instant_or_none(fields, "anchor", path)
            return Interval(every_ms, now_ms if anchor_ms is None else anchor_ms)
        case "times":
            _present(fields, "at", path)
            at = _items(fields, "at", path)
            return Times(tuple(_instant(text, (*path, "at", index)) for index, text in enumerate(at)))
        case _:
            return Once(_instant(_present(fields, "at", path), (*path, "at")))


def _present(fields: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in fields:
        raise InvalidInput((*path, name), "missing", "this field, which has no default")
    return fields[name]


def _text(fields: Mapping[str, Any], name: str, path: Path, *, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise InvalidInput((*path, name), "missing" if value is None else f"{json_type(value)}", "a text")
    return value


def _items(fields: Mapping[str, Any], name: str, path: Path) -> list[Any]:
    value = fields.get(name, [])
    if not isinstance(value, list):
        raise InvalidInput((*path, name), f"{json_type(value)}", "a list")
    return value


def _whole_or_none(fields: Mapping[str, Any], name: str, path: Path) -> int | None:
    value = fields.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidInput((*path, name), f"{str(value)[:64]!r} is not a whole number", "an integer")
    return value


def _instant(value: object, path: Path) -> WallMs:
    if not isinstance(value, str):
        raise InvalidInput(path, f"{json_type(value)}", "an RFC 3339 instant with an offset")
    return parse_instant(value, path)


def _instant_or_none(fields: Mapping[str, Any], name: str, path: Path) -> WallMs | None:
    return _instant(fields[name], (*path, name)) if name in fields else None


def _window(value: object, path: Path) -> Window:
    if not isinstance(value, Mapping) or value.keys() != {"from", "to"}:
        raise InvalidInput(path, "is not a window", "an object with from and to")
    return Window(_instant(value["from"], (*path, "from")), _instant(value["to"], (*path, "to")))
