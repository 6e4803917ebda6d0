"""Stored triggers.

``{type, …the pattern's own fields…, jitter_ms?, start_at_ms?, end_at_ms?, max_fires?, exclude?}``, the last as a list
of ``[from_ms, to_ms]``. Several patterns in one are ``{type: "any", of: [{type, …}, …], …}``. A trigger that uses
calendars is stored inside an object of a type of its own, ``{type: "calendars", trigger, only, except, timezone?}``: a
release that does not know calendars must not read it as one that fires on all days. The times are not checked here: a
cron expression is parsed when its next time is computed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.fields import as_document, is_integer, text_or_none
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import (
    ANY,
    KINDS,
    PARTS_MAX,
    PARTS_MIN,
    AnyOf,
    CalendarUse,
    Interval,
    Once,
    Single,
    Times,
    Trigger,
    Window,
    stored_forms,
    type_of,
)

ZONE_FIELDS = ("timezone", "of.timezone", "trigger.timezone", "trigger.of.timezone")
_SHARED_MAX = 4_096
_CALENDARS = "calendars"


def _ascending(at_ms: Any) -> tuple[WallMs, ...]:
    is_listed = isinstance(at_ms, list) and bool(at_ms) and all(map(is_integer, at_ms))
    if not is_listed or any(first >= second for first, second in pairwise(at_ms)):
        raise InvalidInput((), "not a list of ascending instants")
    return tuple([WallMs(int(at)) for at in at_ms])


_NARROWING = stored_forms(Trigger)
_PATTERNS = {type: stored_forms(kind) for type, kind in KINDS.items()} | {"times": {"at_ms": _ascending}}
_every, _anchor = _PATTERNS["interval"].values()
_DEFAULTS = {each.name: each.default for each in dataclass_fields(Trigger) if each.name in _NARROWING}


def encode_trigger(trigger: Trigger) -> dict[str, Any]:
    use = trigger.calendars
    if use is None:
        return _encode_plain(trigger)
    named = {"only": list(use.only), "except": list(use.excluding)}
    zone = {} if use.timezone is None else {"timezone": use.timezone}
    return {"type": _CALENDARS, "trigger": _encode_plain(trigger), **named, **zone}


def _encode_plain(trigger: Trigger) -> dict[str, Any]:
    pattern = trigger.pattern
    stored: dict[str, Any] = {"type": ANY, "of": [_encode_part(part) for part in trigger.parts]}
    if not isinstance(pattern, AnyOf):
        stored = _encode_part(pattern)
    narrowing = {name: getattr(trigger, name) for name in _NARROWING}
    stored |= {name: value for name, value in narrowing.items() if value != _DEFAULTS[name]}
    if trigger.exclude:
        stored["exclude"] = [[window.from_ms, window.to_ms] for window in trigger.exclude]
    return stored


def _encode_part(part: Single) -> dict[str, Any]:
    stored: dict[str, Any] = {"type": type_of(part)}
    for name in _PATTERNS[stored["type"]]:
        value = getattr(part, name)
        stored[name] = list(value) if isinstance(value, tuple) else value
    return stored


def decode_trigger(stored: object) -> Trigger:
    """Return the stored trigger. Equal ones are mostly one object, because many schedules have the same."""
    fields = as_document(stored)
    if fields is None:
        raise InvalidInput(("trigger",), "not an object")
    try:
        plain = _plain(fields) if len(fields) == 3 else None
        if plain is not None:
            return plain
        if fields.get("type") == _CALENDARS:
            return _decode_on_calendars(fields)
        pattern = _decode_any(fields) if fields.get("type") == ANY else _decode_part(fields)
        given = [name for name in fields if name in _NARROWING and fields[name] is not None]
        narrowing = _read(fields, _NARROWING, given) if given else {}
        if "exclude" in fields:
            narrowing["exclude"] = tuple([_window(window) for window in _items(fields, "exclude", empty=True)])
        trigger = Trigger(pattern, **narrowing)
        # Instants belong to one schedule alone, and would evict triggers that many share.
        return trigger if isinstance(pattern, Times | Once) else _shared(trigger)
    except InvalidInput as error:
        raise InvalidInput(("trigger", *error.path), error.problem, error.expected) from None


def stored_zone(stored: object) -> str:
    """Return `Trigger.zone` of a stored trigger, which needs only the fields `ZONE_FIELDS`."""
    fields = as_document(stored) or {}
    inside = as_document(fields.get("trigger"))
    fields = fields if inside is None else inside
    parts = fields.get("of")
    found = [as_document(part) or {} for part in parts] if isinstance(parts, list) else [fields]
    zones = {zone for part in found if isinstance(zone := part.get("timezone"), str)}
    return zones.pop() if len(zones) == 1 else "UTC"


def _plain(fields: dict[str, Any]) -> Trigger | None:
    """Return the trigger if it is an interval or a cron expression without anything else."""
    kind = fields.get("type")
    try:
        # There may be a million of them.
        if kind == "cron" and "expression" in fields and "timezone" in fields:
            return _shared_cron(fields["expression"], fields["timezone"])
        if kind == "interval" and "every_ms" in fields and "anchor_ms" in fields:
            return _shared_interval(fields["every_ms"], fields["anchor_ms"])
    except (InvalidInput, TypeError):  # also if a value can't be hashed; `_decode_part` names the wrong field
        pass
    return None


# By type as well, as True equals 1. In separate caches, as intervals of many phases must not evict the crons.
@lru_cache(_SHARED_MAX, typed=True)
def _shared_interval(every_ms: Any, anchor_ms: Any) -> Trigger:
    return Trigger(Interval(_every(every_ms), _anchor(anchor_ms)))


@lru_cache(_SHARED_MAX, typed=True)
def _shared_cron(expression: Any, timezone: Any) -> Trigger:
    return Trigger(_decode_part({"type": "cron", "expression": expression, "timezone": timezone}))


@lru_cache(_SHARED_MAX)
def _shared(trigger: Trigger) -> Trigger:
    return trigger


def _decode_part(fields: Mapping[str, Any]) -> Single:
    type = fields.get("type")
    forms = _PATTERNS.get(type) if isinstance(type, str) else None
    if forms is None:
        raise InvalidInput(("type",), f"{str(type)[:64]!r} is unknown", "cron, interval, times or once")
    return KINDS[str(type)](**_read(fields, forms, forms))


def _read(fields: Mapping[str, Any], forms: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    name = ""
    try:
        for name in names:
            found[name] = forms[name](fields.get(name))
    except InvalidInput as error:
        raise InvalidInput((name, *error.path), error.problem, error.expected) from None
    return found


def _decode_any(fields: Mapping[str, Any]) -> AnyOf:
    parts = _items(fields, "of")
    if not PARTS_MIN <= len(parts) <= PARTS_MAX or not all(isinstance(part, Mapping) for part in parts):
        raise InvalidInput(("of",), f"{len(parts)} patterns", f"{PARTS_MIN} to {PARTS_MAX} objects")
    read = tuple(_decode_part(part) for part in parts)
    if any(isinstance(part, Interval) and part.every_ms % 1_000 for part in read):
        raise InvalidInput(
            ("of",), "an interval with a fraction of a second", "whole seconds if combined with other patterns"
        )
    return AnyOf(read)


def _decode_on_calendars(fields: Mapping[str, Any]) -> Trigger:
    inside = fields.get("trigger")
    if isinstance(inside, Mapping) and inside.get("type") == _CALENDARS:
        raise InvalidInput(("trigger", "type"), "nested calendars", "cron, interval, times, once or any")
    use = CalendarUse(_names(fields, "only"), _names(fields, "except"), text_or_none(fields, "timezone"))
    return _shared(replace(decode_trigger(inside), calendars=use))


def _names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    names = _items(fields, name, empty=True)
    if not all(isinstance(each, str) and each for each in names):
        raise InvalidInput((name,), f"{str(names)[:64]}", "a list of names")
    return tuple(names)


def _items(fields: Mapping[str, Any], name: str, *, empty: bool = False) -> Sequence[Any]:
    value = fields.get(name, [] if empty else None)
    if not isinstance(value, list) or not (value or empty):
        raise InvalidInput((name,), f"a {type(value).__name__}", "a list")
    return value


def _window(value: object) -> Window:
    match value:
        case [int(from_ms), int(to_ms)] if is_integer(from_ms) and is_integer(to_ms) and from_ms < to_ms:
            return Window(WallMs(from_ms), WallMs(to_ms))
        case _:
            raise InvalidInput(("exclude",), f"{str(value)[:64]!r} is not a window", "[from_ms, to_ms]")
