"""Triggers: when a schedule fires.

The models check the shape only; `hascheduler.triggers.check_trigger` checks that the times make sense.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import WallMs, format_instant
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
from hascheduler.triggers import check_trigger, excluded_until, latest_nominal, next_nominal, read_pattern
from hascheduler.triggers.zones import canonical_zone
from hascheduler.wire.fields import DurationMs, InstantMs, Name, StrictModel, written_span
from hascheduler.wire.validation import validated

_FIRES_MAX = 2**53 - 1


class WindowBody(StrictModel):
    """From `from` until before `to`."""

    from_: InstantMs = Field(
        description="The first instant in it", alias="from", examples=["2030-12-24T00:00:00+01:00"]
    )
    to: InstantMs = Field(description="The first instant after it", examples=["2030-12-27T00:00:00+01:00"])


class CalendarUseBody(StrictModel):
    """Which days count, by calendars of /v1/calendars."""

    only: list[Name] = Field(
        default=[],
        description="Only days that are in each of these calendars; at most 10",
        examples=[["business-days"]],
    )
    except_: list[Name] = Field(
        default=[],
        alias="except",
        description="No day that is in one of these calendars; at most 10",
        examples=[["holidays-de"]],
    )
    timezone: str | None = Field(
        default=None,
        description="Whose days, as an IANA time zone; default: that of the cron expressions, UTC where there is "
        "none; needed where they have several",
        examples=["Europe/Berlin"],
    )


class Narrowing(StrictModel):
    """What any trigger may have."""

    jitter: DurationMs = Field(
        default=0, description="Due up to this much later, by an amount that the name and the nominal time fix"
    )
    start_at: InstantMs | None = Field(default=None, description="No nominal time before it")
    end_at: InstantMs | None = Field(default=None, description="No nominal time after it")
    max_fires: int | None = Field(
        default=None, ge=1, le=_FIRES_MAX, description="How often the schedule fires in its life"
    )
    exclude: list[WindowBody] = Field(
        default=[], description="Nominal times in these windows do not fire; ascending, apart from each other"
    )
    calendars: CalendarUseBody | None = Field(
        default=None,
        description="Nominal times on local days that these leave out do not fire; default: all days count",
    )
    _given: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _remembers_what_was_given(cls, given: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        body = read(given)
        body._given = given
        return body


class CronPart(StrictModel):
    """The wall times that a cron expression names: five fields, or six with the seconds last. `@every 90s` is stored as
    an interval."""

    type: Literal["cron"] = Field(description="Which kind of pattern it is")
    expression: str = Field(
        description="Minute, hour, day of month, month, day of week; perhaps a second after them",
        examples=["*/5 * * * *", "30 2 * * mon-fri", "0 9 LW * ?"],
    )
    timezone: str = Field(
        default="UTC", description="An IANA time zone, in upper or lower case", examples=["Europe/Paris"]
    )


class IntervalPart(StrictModel):
    """At `anchor` plus whole multiples of `every`."""

    type: Literal["interval"] = Field(description="Which kind of pattern it is")
    every: DurationMs = Field(description="The span between two nominal times", examples=["1s", "1m30s"])
    anchor: InstantMs | None = Field(
        default=None, description="Default: the instant of creation; an edit keeps the stored one"
    )


class TimesPart(StrictModel):
    """At each of these instants, ascending."""

    type: Literal["times"] = Field(description="Which kind of pattern it is")
    at: list[InstantMs] = Field(
        description="The nominal times", examples=[["2030-01-31T09:30:00Z", "2030-02-28T09:30:00Z"]]
    )


class OncePart(StrictModel):
    """At one instant, and never again."""

    type: Literal["once"] = Field(description="Which kind of pattern it is")
    at: InstantMs = Field(description="The nominal time", examples=["2030-01-31T09:30:00Z"])


PartBody = Annotated[CronPart | IntervalPart | TimesPart | OncePart, Field(discriminator="type")]


class CronBody(CronPart, Narrowing):
    """The wall times that a cron expression names: five fields, or six with the seconds last. `@every 90s` is stored as
    an interval."""

    type: Literal["cron"] = Field(description="Which kind of trigger it is")


class IntervalBody(IntervalPart, Narrowing):
    """At `anchor` plus whole multiples of `every`."""

    type: Literal["interval"] = Field(description="Which kind of trigger it is")


class TimesBody(TimesPart, Narrowing):
    """At each of these instants, ascending."""

    type: Literal["times"] = Field(description="Which kind of trigger it is")


class OnceBody(OncePart, Narrowing):
    """At one instant in the future, and never again."""

    type: Literal["once"] = Field(description="Which kind of trigger it is")


class AnyBody(Narrowing):
    """At each time that any of several patterns names; one that two of them name is one nominal time. They come at most
    once a minute each, and an interval among them divides a day or is of whole days."""

    type: Literal["any"] = Field(description="Which kind of trigger it is")
    of: list[PartBody] = Field(
        min_length=PARTS_MIN,
        max_length=PARTS_MAX,
        description="The patterns; what narrows their times stands beside them, not in them",
        examples=[
            [
                {"type": "cron", "expression": "0 9 * * mon-fri", "timezone": "Europe/Paris"},
                {"type": "cron", "expression": "0 11 * * sat", "timezone": "Europe/Paris"},
            ]
        ],
    )


TriggerBody = Annotated[CronBody | IntervalBody | TimesBody | OnceBody | AnyBody, Field(discriminator="type")]


def trigger_of(body: TriggerBody, stored: Trigger | None, now: WallMs) -> Trigger:
    """The trigger that a request means; `InvalidInput` where it makes no sense, or would never fire.

    The stored trigger may be sent again even when all its times have passed: nothing would change.
    """
    trigger = _trigger(body, stored, now)
    if trigger != stored:
        with spans_as_written(body):
            check_trigger(trigger, ("trigger",))
        _require_future(trigger, now)
    return trigger


@contextmanager
def spans_as_written(body: TriggerBody) -> Iterator[None]:
    """What is refused inside about the trigger of ``body`` is refused in the units of its author."""
    try:
        yield
    except InvalidInput as error:
        raise _as_written(error, body) from None


def _as_written(error: InvalidInput, body: TriggerBody) -> InvalidInput:
    problem, expected = error.problem, error.expected
    match error.path[1:]:
        case ("every",):
            problem = _with_span(problem, body, body._given, "every")
        case ("of", int(place), "every") if isinstance(body, AnyBody):
            problem = _with_span(problem, body.of[place], body._given["of"][place], "every")
        case ("jitter",):
            problem = _with_span(problem, body, body._given, "jitter")
            if isinstance(body, IntervalBody) and expected is not None:
                expected = _with_span(expected, body, body._given, "every")
    return InvalidInput(error.path, problem, expected)


def _with_span(text: str, part: BaseModel, given: Any, name: str) -> str:
    """``text`` with that span of ``part`` as ``given`` has it."""
    span_ms = getattr(part, name)
    return text.replace(format_duration(span_ms), written_span(given, name, span_ms), 1)


class _Holder(StrictModel):
    trigger: TriggerBody


def read_trigger(given: object, now: WallMs) -> Trigger:
    """The trigger of a file or of options, where no replica is asked; an `InvalidInput` below ``trigger``.

    Whether its times make sense is not checked. An interval without an anchor is counted from ``now``.
    """
    return _trigger(_read(given), None, now)


def checked_trigger(given: object, now: WallMs) -> Trigger:
    """As `read_trigger`; an `InvalidInput` also where its times make no sense."""
    body = _read(given)
    trigger = _trigger(body, None, now)
    with spans_as_written(body):
        check_trigger(trigger, ("trigger",))
    return trigger


def _read(given: object) -> TriggerBody:
    said = {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given
    return validated(_Holder, {"trigger": said}).trigger


def _trigger(body: TriggerBody, stored: Trigger | None, now: WallMs) -> Trigger:
    return Trigger(
        _pattern(body, stored, now),
        jitter_ms=body.jitter,
        start_at_ms=_instant(body.start_at),
        end_at_ms=_instant(body.end_at),
        max_fires=body.max_fires,
        exclude=tuple(Window(WallMs(window.from_), WallMs(window.to)) for window in body.exclude),
        calendars=None if body.calendars is None else _use(body.calendars),
    )


def _use(body: CalendarUseBody) -> CalendarUse:
    zone = body.timezone
    if zone is not None:
        zone = canonical_zone(zone) or zone  # one that is unknown is refused by the check
    return CalendarUse(tuple(dict.fromkeys(body.only)), tuple(dict.fromkeys(body.except_)), zone)


def _pattern(body: TriggerBody, stored: Trigger | None, now: WallMs) -> Pattern:
    before = None if stored is None else stored.pattern
    if not isinstance(body, AnyBody):
        return _part(body, before, now)
    known = before.parts if isinstance(before, AnyOf) else ()
    return AnyOf(tuple(_one_of(part, before, now) for part, before in zip_longest(body.of, known[: len(body.of)])))


def _one_of(body: PartBody, stored: Part | None, now: WallMs) -> Part:
    """The part at one place; it keeps the stored phase if it is the interval that it was."""
    part = _part(body, stored, now)
    is_same = isinstance(part, Interval) and isinstance(stored, Interval) and part.every_ms == stored.every_ms
    return part if is_same else _part(body, None, now)


def _part(body: PartBody, stored: Pattern | None, now: WallMs) -> Part:
    match body:
        case CronPart():
            return read_pattern(body.expression, body.timezone, _anchor(None, stored, now))
        case IntervalPart():
            return Interval(body.every, _anchor(body.anchor, stored, now))
        case TimesPart():
            return Times(tuple(WallMs(at) for at in body.at))
        case OncePart():
            return Once(WallMs(body.at))


def _anchor(given: int | None, stored: Pattern | None, now: WallMs) -> WallMs:
    if given is not None:
        return WallMs(given)
    # An edit keeps the phase, so that another payload does not shift the nominal times.
    return stored.anchor_ms if isinstance(stored, Interval) else now


def _require_future(trigger: Trigger, now: WallMs) -> None:
    trigger = replace(trigger, calendars=None)  # those change: what they leave out today is no mistake
    nominal_ms = next_nominal(trigger, now)
    if nominal_ms is None:
        raise _passed(trigger, now)
    # Each step skips a whole exclusion window, and there are few.
    until_ms = excluded_until(trigger, nominal_ms)
    while until_ms is not None:
        nominal_ms = next_nominal(trigger, until_ms - 1)
        if nominal_ms is None:
            raise InvalidInput(("trigger", "exclude"), "all times to come are excluded", "windows that leave some")
        until_ms = excluded_until(trigger, nominal_ms)


def _passed(trigger: Trigger, now: WallMs) -> InvalidInput:
    last_ms = latest_nominal(trigger, now)
    is_listed = all(isinstance(part, Once | Times) for part in trigger.parts)
    listed_at = "of" if isinstance(trigger.pattern, AnyOf) else "at"
    field = listed_at if is_listed and next_nominal(replace(trigger, end_at_ms=None), now) is None else "end_at"
    passed = "all of it" if last_ms is None else format_instant(last_ms)
    problem = f"{passed} has passed, so it would never fire"
    return InvalidInput(("trigger", field), problem, f"an instant after {format_instant(now)}")


def _instant(at_ms: int | None) -> WallMs | None:
    return None if at_ms is None else WallMs(at_ms)


# As answers show them


class WindowResponse(WindowBody):
    model_config = ConfigDict(extra="ignore", validate_by_name=True)


class CalendarUseResponse(CalendarUseBody):
    model_config = ConfigDict(extra="ignore", validate_by_name=True)


class NarrowingResponse(Narrowing):
    exclude: list[WindowResponse] = Field(
        description="Nominal times in these windows do not fire; ascending, apart from each other"
    )  # type: ignore[assignment]  # nobody adds to it
    calendars: CalendarUseResponse | None = Field(
        default=None, description="Nominal times on local days that these leave out do not fire; null: all days count"
    )


class CronPartResponse(CronPart):
    model_config = ConfigDict(extra="ignore")

    type: Literal["cron"] = Field(default="cron", description="Which kind of pattern it is")


class IntervalPartResponse(IntervalPart):
    model_config = ConfigDict(extra="ignore")

    type: Literal["interval"] = Field(default="interval", description="Which kind of pattern it is")
    anchor: InstantMs = Field(description="Nominal times are this instant plus whole multiples of `every`")


class TimesPartResponse(TimesPart):
    model_config = ConfigDict(extra="ignore")

    type: Literal["times"] = Field(default="times", description="Which kind of pattern it is")


class OncePartResponse(OncePart):
    model_config = ConfigDict(extra="ignore")

    type: Literal["once"] = Field(default="once", description="Which kind of pattern it is")


PartResponse = Annotated[
    CronPartResponse | IntervalPartResponse | TimesPartResponse | OncePartResponse, Field(discriminator="type")
]


class CronResponse(NarrowingResponse, CronBody):
    model_config = ConfigDict(extra="ignore")

    type: Literal["cron"] = Field(default="cron", description="Which kind of trigger it is")


class IntervalResponse(NarrowingResponse, IntervalBody):
    model_config = ConfigDict(extra="ignore")

    type: Literal["interval"] = Field(default="interval", description="Which kind of trigger it is")
    anchor: InstantMs = Field(description="Nominal times are this instant plus whole multiples of `every`")


class TimesResponse(NarrowingResponse, TimesBody):
    model_config = ConfigDict(extra="ignore")

    type: Literal["times"] = Field(default="times", description="Which kind of trigger it is")


class OnceResponse(NarrowingResponse, OnceBody):
    model_config = ConfigDict(extra="ignore")

    type: Literal["once"] = Field(default="once", description="Which kind of trigger it is")


class AnyResponse(NarrowingResponse, AnyBody):
    model_config = ConfigDict(extra="ignore")

    type: Literal["any"] = Field(default="any", description="Which kind of trigger it is")
    of: list[PartResponse] = Field(description="The patterns")  # type: ignore[assignment]  # nobody adds to it


TriggerResponse = Annotated[
    CronResponse | IntervalResponse | TimesResponse | OnceResponse | AnyResponse, Field(discriminator="type")
]


def show_trigger(trigger: Trigger) -> TriggerResponse:
    use = trigger.calendars
    narrowing: dict[str, Any] = {
        "jitter": trigger.jitter_ms,
        "start_at": trigger.start_at_ms,
        "end_at": trigger.end_at_ms,
        "max_fires": trigger.max_fires,
        "calendars": None
        if use is None
        else CalendarUseResponse.model_construct(
            only=list(use.only), except_=list(use.excluding), timezone=use.timezone
        ),
        "exclude": [WindowResponse.model_construct(from_=each.from_ms, to=each.to_ms) for each in trigger.exclude],
    }
    match trigger.pattern:
        case Cron(expression, timezone):
            return CronResponse.model_construct(expression=expression, timezone=timezone, **narrowing)
        case Interval(every_ms, anchor_ms):
            return IntervalResponse.model_construct(every=every_ms, anchor=anchor_ms, **narrowing)
        case Times(at_ms):
            return TimesResponse.model_construct(at=list(at_ms), **narrowing)
        case Once(at_ms):
            return OnceResponse.model_construct(at=at_ms, **narrowing)
        case AnyOf(parts):
            return AnyResponse.model_construct(of=[_show_part(part) for part in parts], **narrowing)


def _show_part(part: Part) -> PartResponse:
    match part:
        case Cron(expression, timezone):
            return CronPartResponse.model_construct(expression=expression, timezone=timezone)
        case Interval(every_ms, anchor_ms):
            return IntervalPartResponse.model_construct(every=every_ms, anchor=anchor_ms)
        case Times(at_ms):
            return TimesPartResponse.model_construct(at=list(at_ms))
        case Once(at_ms):
            return OncePartResponse.model_construct(at=at_ms)
