"""Stored triggers.

``{type, …the pattern's own fields…, jitter_ms?, start_at_ms?, end_at_ms?, max_fires?, exclude?}``, the last as a list
of ``[from_ms, to_ms]``. Several patterns in one are ``{type: "any", of: [{type, …}, …], …}``. One that uses calendars
is stored inside an object of a type of its own, ``{type: "calendars", trigger, only, except, timezone?}``: a release
that knows no calendars must not take it for one that fires on all days. The times are not checked here: a cron
expression is parsed when its next time is computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.fields import as_document, instant_or_none, integer, is_integer, shared_text, text_or_none
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import (
    PARTS_MAX,
    PARTS_MIN,
    AnyOf,
    CalendarUse,
    Cron,
    Interval,
    Once,
    Part,
    Pattern,
    Times,
    Trigger,
    Window,
)

ZONE_FIELDS = ("timezone", "of.timezone", "trigger.timezone", "trigger.of.timezone")
_SHARED_MAX = 4_096
_CALENDARS = "calendars"
_ANY = "any"


def encode_trigger(trigger: Trigger) -> dict[str, Any]:
    use = trigger.calendars
    if use is None:
        return _encode_plain(trigger)
    named = {"only": list(use.only), "except": list(use.excluding)}
    zone = {} if use.timezone is None else {"timezone": use.timezone}
    return {"type": _CALENDARS, "trigger": _encode_plain(trigger), **named, **zone}


def _encode_plain(trigger: Trigger) -> dict[str, Any]:
    stored = _encode_pattern(trigger.pattern)
    if trigger.jitter_ms:
        stored["jitter_ms"] = trigger.jitter_ms
    for name in ("start_at_ms", "end_at_ms", "max_fires"):
        value = getattr(trigger, name)
        if value is not None:
            stored[name] = value
    if trigger.exclude:
        stored["exclude"] = [[window.from_ms, window.to_ms] for window in trigger.exclude]
    return stored


def decode_trigger(stored: object) -> Trigger:
    """Equal triggers are mostly one object, as many schedules have the same."""
    fields = as_document(stored)
    if fields is None:
        raise InvalidInput(("trigger",), "not an object")
    try:
        plain = _plain(fields) if len(fields) == 3 else None
        if plain is not None:
            return plain
        if fields.get("type") == _CALENDARS:
            return _decode_on_calendars(fields)
        pattern = _decode_pattern(fields)
        jitter_ms = integer(fields, "jitter_ms", default=0)
        if jitter_ms < 0:
            raise InvalidInput(("jitter_ms",), f"{jitter_ms}", "0 or more milliseconds")
        trigger = Trigger(
            pattern,
            jitter_ms=jitter_ms,
            start_at_ms=instant_or_none(fields, "start_at_ms"),
            end_at_ms=instant_or_none(fields, "end_at_ms"),
            max_fires=None if fields.get("max_fires") is None else integer(fields, "max_fires"),
            exclude=tuple([_window(window) for window in _items(fields, "exclude", empty=True)]),
        )
        # Instants are of one schedule alone, and would drive out what many have.
        return trigger if isinstance(pattern, Times | Once) else _shared(trigger)
    except InvalidInput as error:
        raise InvalidInput(("trigger", *error.path), error.problem, error.expected) from None


def stored_zone(stored: object) -> str:
    """`Trigger.zone` of a stored trigger, of which only the fields `ZONE_FIELDS` need be there."""
    fields = as_document(stored) or {}
    inside = as_document(fields.get("trigger"))
    fields = fields if inside is None else inside
    parts = fields.get("of")
    found = [as_document(part) or {} for part in parts] if isinstance(parts, list) else [fields]
    zones = {zone for part in found if isinstance(zone := part.get("timezone"), str)}
    return zones.pop() if len(zones) == 1 else "UTC"


def _decode_on_calendars(fields: Mapping[str, Any]) -> Trigger:
    inside = fields.get("trigger")
    if isinstance(inside, Mapping) and inside.get("type") == _CALENDARS:
        raise InvalidInput(("trigger", "type"), "calendars within calendars", "cron, interval, times, once or any")
    use = CalendarUse(_names(fields, "only"), _names(fields, "except"), text_or_none(fields, "timezone"))
    return _shared(replace(decode_trigger(inside), calendars=use))


def _names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    names = _items(fields, name, empty=True)
    if not all(isinstance(each, str) and each for each in names):
        raise InvalidInput((name,), f"{str(names)[:64]}", "a list of names")
    return tuple(names)


def _plain(fields: dict[str, Any]) -> Trigger | None:
    """The trigger, where it is an interval or a cron expression, and no more than that."""
    kind = fields.get("type")
    try:
        # Not by patterns, which take thrice as long: there may be a million of them.
        if kind == "cron" and "expression" in fields and "timezone" in fields:
            return _shared_cron(fields["expression"], fields["timezone"])
        if kind == "interval" and "every_ms" in fields and "anchor_ms" in fields:
            return _shared_interval(fields["every_ms"], fields["anchor_ms"])
    except TypeError:  # one that can't be hashed
        pass
    return None


# By type as well, as True equals 1. Caches of their own, as intervals of many phases must not drive out the crons.
@lru_cache(_SHARED_MAX, typed=True)
def _shared_interval(every_ms: Any, anchor_ms: Any) -> Trigger:
    return Trigger(_decode_interval({"every_ms": every_ms, "anchor_ms": anchor_ms}))


@lru_cache(_SHARED_MAX, typed=True)
def _shared_cron(expression: Any, timezone: Any) -> Trigger:
    return Trigger(_decode_pattern({"type": "cron", "expression": expression, "timezone": timezone}))


def _encode_pattern(pattern: Pattern) -> dict[str, Any]:
    if isinstance(pattern, AnyOf):
        return {"type": _ANY, "of": [_encode_part(part) for part in pattern.parts]}
    return _encode_part(pattern)


def _encode_part(pattern: Part) -> dict[str, Any]:
    match pattern:
        case Interval(every_ms, anchor_ms):
            return {"type": "interval", "every_ms": every_ms, "anchor_ms": anchor_ms}
        case Cron(expression, timezone):
            return {"type": "cron", "expression": expression, "timezone": timezone}
        case Times(at_ms):
            return {"type": "times", "at_ms": list(at_ms)}
        case Once(at_ms):
            return {"type": "once", "at_ms": at_ms}


def _decode_pattern(fields: Mapping[str, Any]) -> Pattern:
    if fields.get("type") != _ANY:
        return _decode_part(fields)
    parts = _items(fields, "of")
    if not PARTS_MIN <= len(parts) <= PARTS_MAX or not all(isinstance(part, Mapping) for part in parts):
        raise InvalidInput(("of",), f"{len(parts)} in it", f"{PARTS_MIN} to {PARTS_MAX} objects")
    read = tuple(_decode_part(part) for part in parts)
    if any(isinstance(part, Interval) and part.every_ms % 1_000 for part in read):
        raise InvalidInput(("of",), "an interval that is not of whole seconds", "whole seconds among other patterns")
    return AnyOf(read)


def _decode_part(fields: Mapping[str, Any]) -> Part:
    match fields.get("type"):
        case "interval":
            return _decode_interval(fields)
        case "cron":
            return Cron(shared_text(fields, "expression"), shared_text(fields, "timezone"))
        case "times":
            at_ms = _items(fields, "at_ms")
            if not all(is_integer(at) for at in at_ms) or any(a >= b for a, b in pairwise(at_ms)):
                raise InvalidInput(("at_ms",), "not a list of ascending instants")
            return Times(tuple([WallMs(int(at)) for at in at_ms]))
        case "once":
            return Once(WallMs(integer(fields, "at_ms")))
        case other:
            raise InvalidInput(("type",), f"{str(other)[:64]!r} is unknown", "cron, interval, times or once")


def _decode_interval(fields: Mapping[str, Any]) -> Interval:
    every_ms = integer(fields, "every_ms")
    if every_ms <= 0:
        raise InvalidInput(("every_ms",), f"{every_ms}", "a positive number of milliseconds")
    return Interval(every_ms, WallMs(integer(fields, "anchor_ms")))


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


@lru_cache(_SHARED_MAX)
def _shared(trigger: Trigger) -> Trigger:
    return trigger
