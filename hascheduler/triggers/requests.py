"""Read the trigger of a request, a file or options; keep the phase of the stored one, and require a time to come."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import zip_longest
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, format_duration, format_instant
from hascheduler.schema.forms import written_span
from hascheduler.schema.noun import read_request
from hascheduler.schema.trigger import ANY, KINDS, AnyOf, Cron, Interval, Once, Pattern, Single, Times, Trigger
from hascheduler.schema.trigger_bodies import HasTrigger, PatternBody, narrowing_of
from hascheduler.triggers.checks import check_trigger
from hascheduler.triggers.cron import read_pattern
from hascheduler.triggers.due import next_firing
from hascheduler.triggers.nominal import latest_nominal, next_nominal
from hascheduler.triggers.zones import canonical_zone


def trigger_of(body: PatternBody, stored: Trigger | None, now: WallMs) -> Trigger:
    """Return the trigger of a request; raise `InvalidInput` if it makes no sense or would never fire.

    The stored trigger may be sent again even if all its times have passed: nothing changes.
    """
    trigger = _trigger(body, stored, now)
    if trigger != stored:
        with spans_as_written(body):
            check_trigger(trigger, ("trigger",))
        _require_future(trigger, now)
    return trigger


def read_trigger(given: object, now: WallMs) -> Trigger:
    """Return the trigger of a file or of options, for which no replica is asked.

    Raise `InvalidInput` below ``trigger``. The times are not checked. An interval without an anchor counts from
    ``now``.
    """
    return _trigger(_read(given), None, now)


def checked_trigger(given: object, now: WallMs) -> Trigger:
    """Return the trigger as `read_trigger` does; raise `InvalidInput` also if its times make no sense."""
    body = _read(given)
    trigger = _trigger(body, None, now)
    with spans_as_written(body):
        check_trigger(trigger, ("trigger",))
    return trigger


@contextmanager
def spans_as_written(body: PatternBody) -> Iterator[None]:
    """Report errors raised inside about the trigger of ``body`` in the units of its author."""
    try:
        yield
    except InvalidInput as error:
        raise _as_written(error, body) from None


def _as_written(error: InvalidInput, body: Any) -> InvalidInput:
    problem, expected = error.problem, error.expected
    match error.path[1:]:
        case ("every",):
            problem = _with_span(problem, body, "every")
        case ("of", int(place), "every"):
            problem = _with_span(problem, body.of[place], "every")
        case ("jitter",):
            problem = _with_span(problem, body, "jitter")
            if body.type == "interval" and expected is not None:
                expected = _with_span(expected, body, "every")
    return InvalidInput(error.path, problem, expected)


def _with_span(text: str, body: PatternBody, name: str) -> str:
    """Return ``text`` with that span of ``body`` as its author wrote it."""
    span_ms = getattr(body, f"{name}_ms")
    return text.replace(format_duration(span_ms), written_span(body.given, name, span_ms), 1)


def _read(given: object) -> PatternBody:
    trigger = {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given
    return read_request(HasTrigger, {"trigger": trigger}).trigger


def _trigger(body: PatternBody, stored: Trigger | None, now: WallMs) -> Trigger:
    trigger = Trigger(_pattern(body, None if stored is None else stored.pattern, now), **narrowing_of(body))
    use = trigger.calendars
    if use is None:
        return trigger
    zone = (
        None if use.timezone is None else canonical_zone(use.timezone) or use.timezone
    )  # the check refuses the unknown
    named = replace(use, only=_once(use.only), excluding=_once(use.excluding), timezone=zone)
    return replace(trigger, calendars=named)


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _pattern(body: Any, stored: Pattern | None, now: WallMs) -> Pattern:
    if body.type != ANY:
        return _single(body, stored, now)
    known = stored.of[: len(body.of)] if isinstance(stored, AnyOf) else ()
    return AnyOf(tuple(_one_of(part, before, now) for part, before in zip_longest(body.of, known)))


def _one_of(body: PatternBody, stored: Single | None, now: WallMs) -> Single:
    """Return the part at one place; an unchanged interval keeps the stored phase."""
    part = _single(body, stored, now)
    is_same = isinstance(part, Interval) and isinstance(stored, Interval) and part.every_ms == stored.every_ms
    return part if is_same else _single(body, None, now)


def _single(body: PatternBody, stored: Pattern | None, now: WallMs) -> Single:
    kind = KINDS[body.type]
    values = {each.name: getattr(body, each.name) for each in fields(kind)}
    # An edit keeps the phase, so that another payload does not shift the nominal times.
    anchor_ms = stored.anchor_ms if isinstance(stored, Interval) else now
    if kind is Cron:
        return read_pattern(**values, anchor_ms=anchor_ms)
    if values.get("anchor_ms", anchor_ms) is None:
        values["anchor_ms"] = anchor_ms
    return kind(**values)


def _require_future(trigger: Trigger, now: WallMs) -> None:
    trigger = replace(trigger, calendars=None)  # calendars change: what they leave out today is not a mistake
    if next_nominal(trigger, now) is None:
        raise _passed(trigger, now)
    if next_firing(trigger, now) is None:
        raise InvalidInput(("trigger", "exclude"), "excludes all times to come", "windows that leave some times")


def _passed(trigger: Trigger, now: WallMs) -> InvalidInput:
    last_ms = latest_nominal(trigger, now)
    is_listed = all(isinstance(part, Once | Times) for part in trigger.parts)
    listed_at = "of" if isinstance(trigger.pattern, AnyOf) else "at"
    field = listed_at if is_listed and next_nominal(replace(trigger, end_at_ms=None), now) is None else "end_at"
    passed = "every nominal time" if last_ms is None else format_instant(last_ms)
    problem = f"would never fire: {passed} has passed"
    return InvalidInput(("trigger", field), problem, f"an instant after {format_instant(now)}")
