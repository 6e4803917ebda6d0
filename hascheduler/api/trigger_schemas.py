"""Triggers in request bodies, and the `Trigger` that each means.

The bodies check the shape only; `hascheduler.triggers.check_trigger` checks that the times make sense.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from hascheduler.api.texts import DurationMs, InstantMs, Strict
from hascheduler.errors import InvalidInput
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.trigger import Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.triggers import check_trigger, excluded_until, latest_nominal, next_nominal

_FIRES_MAX = 2**53 - 1


class WindowBody(Strict):
    """From `from` until before `to`."""

    from_: InstantMs = Field(alias="from", examples=["2030-12-24T00:00:00+01:00"])
    to: InstantMs = Field(examples=["2030-12-27T00:00:00+01:00"])


class Narrowing(Strict):
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


class CronBody(Narrowing):
    """The wall times that a cron expression names: five fields, or six with the seconds last."""

    type: Literal["cron"]
    expression: str = Field(examples=["*/5 * * * *", "30 2 * * mon-fri"])
    timezone: str = Field(default="UTC", description="An IANA time zone", examples=["Europe/Paris"])


class IntervalBody(Narrowing):
    """At `anchor` plus whole multiples of `every`."""

    type: Literal["interval"]
    every: DurationMs = Field(examples=["1s", "1m30s"])
    anchor: InstantMs | None = Field(
        default=None, description="Default: the instant of creation; an edit keeps the stored one"
    )


class TimesBody(Narrowing):
    """At each of these instants, ascending."""

    type: Literal["times"]
    at: list[InstantMs] = Field(examples=[["2030-01-31T09:30:00Z", "2030-02-28T09:30:00Z"]])


class OnceBody(Narrowing):
    """At one instant in the future, and never again."""

    type: Literal["once"]
    at: InstantMs = Field(examples=["2030-01-31T09:30:00Z"])


TriggerBody = Annotated[CronBody | IntervalBody | TimesBody | OnceBody, Field(discriminator="type")]


def trigger_of(body: TriggerBody, stored: Trigger | None, now: WallMs) -> Trigger:
    """The trigger that a request means; `InvalidInput` where it makes no sense, or would never fire.

    The stored trigger may be sent again even when all its times have passed: nothing would change.
    """
    trigger = Trigger(
        _pattern(body, stored, now),
        jitter_ms=body.jitter,
        start_at_ms=_instant(body.start_at),
        end_at_ms=_instant(body.end_at),
        max_fires=body.max_fires,
        exclude=tuple(Window(WallMs(window.from_), WallMs(window.to)) for window in body.exclude),
    )
    if trigger != stored:
        check_trigger(trigger, ("trigger",))
        _demand_a_future(trigger, now)
    return trigger


def _pattern(body: TriggerBody, stored: Trigger | None, now: WallMs) -> Pattern:
    match body:
        case CronBody():
            return Cron(body.expression, body.timezone)
        case IntervalBody():
            return Interval(body.every, _anchor(body, stored, now))
        case TimesBody():
            return Times(tuple(WallMs(at) for at in body.at))
        case OnceBody():
            return Once(WallMs(body.at))


def _anchor(body: IntervalBody, stored: Trigger | None, now: WallMs) -> WallMs:
    if body.anchor is not None:
        return WallMs(body.anchor)
    # An edit keeps the phase, so that another payload does not shift the nominal times.
    if stored is not None and isinstance(stored.pattern, Interval):
        return stored.pattern.anchor_ms
    return now


def _demand_a_future(trigger: Trigger, now: WallMs) -> None:
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
    is_listed = isinstance(trigger.pattern, Once | Times)
    field = "at" if is_listed and next_nominal(replace(trigger, end_at_ms=None), now) is None else "end_at"
    passed = "all of it" if last_ms is None else format_instant(last_ms)
    problem = f"{passed} has passed, so it would never fire"
    return InvalidInput(("trigger", field), problem, f"an instant after {format_instant(now)}")


def _instant(at_ms: int | None) -> WallMs | None:
    return None if at_ms is None else WallMs(at_ms)
