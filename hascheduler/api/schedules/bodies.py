"""Request bodies of schedules and their triggers, and the `Trigger` that each means.

A trigger's body checks the shape only; `hascheduler.triggers.check_trigger` checks that the times make sense.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from hascheduler.api.jobs.bodies import JobFields
from hascheduler.api.routing.field_types import DurationMs, InstantMs, Labels, Name, StrictModel, Text, invalid_value
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.fired_job import require_storable_payload
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, PLACEHOLDERS, missing_placeholders
from hascheduler.model.schedule import (
    CATCH_UP_MAX_DEFAULT,
    GRACE_MS_DEFAULT,
    CatchUp,
    JobTemplate,
    Overlap,
    SchedulePolicy,
)
from hascheduler.model.tenant import DEFAULT_TENANT
from hascheduler.model.trigger import Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.triggers import check_trigger, excluded_until, latest_nominal, next_nominal

_FIRES_MAX = 2**53 - 1


class WindowBody(StrictModel):
    """From `from` until before `to`."""

    from_: InstantMs = Field(alias="from", examples=["2030-12-24T00:00:00+01:00"])
    to: InstantMs = Field(examples=["2030-12-27T00:00:00+01:00"])


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
        _require_future(trigger, now)
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


def _require_future(trigger: Trigger, now: WallMs) -> None:
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


OverlapText = Literal["allow", "skip", "buffer_one", "cancel_running"]
CatchUpText = Literal["none", "latest", "all"]
_FAILURES_MAX = 1_000


class TemplateBody(JobFields):
    """The job that each fire makes."""

    target: Text | None = Field(default=None, description="What it works on; default: the schedule's name")
    render: bool = Field(
        default=False,
        description="Fill `${…}` in the texts of the payload: "
        + ", ".join(PLACEHOLDERS)
        + f", label.<key>; `$$` is `$`. Filled with the longest of each it has at most {PAYLOAD_BYTES_MAX:,} bytes",
    )

    def template(self) -> JobTemplate:
        return JobTemplate(
            definition=self.definition,
            target=self.target,
            tenant=self.tenant or DEFAULT_TENANT,
            lane=self.lane,
            fairness_key=self.key(self.tenant or DEFAULT_TENANT),
            priority=self.priority,
            mode=self.mode,
            resources=self.needs(),
        )


class MisfireBody(StrictModel):
    """What becomes of nominal times that could not be decided in time."""

    grace: DurationMs = Field(default=GRACE_MS_DEFAULT, description="How late a fire may be and still be on time")
    catch_up: CatchUpText = Field(
        default="latest", description="Beyond the grace: nothing, the latest for all, or all of them fire"
    )
    limit: int = Field(
        default=CATCH_UP_MAX_DEFAULT, ge=1, le=CATCH_UP_MAX_DEFAULT, description="The most that `all` fires"
    )


_EXAMPLES: list[JsonDict] = [
    {
        "name": "tick",
        "trigger": {"type": "interval", "every": "1s", "jitter": "200ms"},
        "overlap": "skip",
        "job": {"definition": "log", "target": "demo", "payload": {"message": "hello"}},
        "labels": {"team": "a"},
    },
    {
        "name": "nightly",
        "trigger": {"type": "cron", "expression": "30 2 * * mon-fri", "timezone": "Europe/Paris"},
        "misfire": {"grace": "5m", "catch_up": "latest"},
        "pause_after_failures": 3,
        "job": {"definition": "log", "payload": {"day": "${nominal_date}"}, "render": True},
    },
]


class _ScheduleFields(StrictModel):
    trigger: TriggerBody
    misfire: MisfireBody = MisfireBody()
    overlap: OverlapText = Field(
        default="allow", description="What becomes of a nominal time while an earlier job has not ended"
    )
    pause_after_failures: int | None = Field(
        default=None, ge=1, le=_FAILURES_MAX, description="Pause after as many failed jobs in a row; null: never"
    )
    job: TemplateBody
    labels: Labels = Field(default={}, description="Texts for people; the jobs it makes carry them too")

    def policy(self) -> SchedulePolicy:
        return SchedulePolicy(
            grace_ms=self.misfire.grace,
            catch_up=CatchUp(self.misfire.catch_up),
            catch_up_max=self.misfire.limit,
            overlap=Overlap(self.overlap),
            pause_after_failures=self.pause_after_failures,
        )

    def require_storable(self, name: str) -> None:
        """`InvalidInput` unless the payload can be rendered, and the jobs of the schedule ``name`` can be stored."""
        path = ("job", "payload")
        if self.job.render:
            require_known_placeholders(self.job.payload, self.labels, path)
        target = self.job.target or name
        require_storable_payload(self.job.payload, name, target, self.labels, rendered=self.job.render, path=path)


class CreateScheduleBody(_ScheduleFields):
    """A new schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name
    paused: bool = Field(default=False, description="It does not fire until it is resumed")


def _not_here(_: object) -> Any:
    raise invalid_value("an edit does not pause or resume", "POST …/pause or POST …/resume")


class ReplaceScheduleBody(_ScheduleFields):
    """A whole schedule; what is left out gets its default. `name`, if given, must be the one in the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name | None = None
    paused: SkipJsonSchema[Annotated[None, BeforeValidator(_not_here)]] = None

    def require_consistent(self, name: str) -> None:
        """`InvalidInput` unless the body is for the schedule ``name`` and passes `require_storable`."""
        if self.name is not None and self.name != name:
            raise InvalidInput(("name",), f"{self.name!r} is not the name in the path", f"{name!r}, or nothing")
        self.require_storable(name)


SchedulePatch = Annotated[
    dict[str, Any],
    Body(
        description="Any part of a schedule, as a JSON merge patch (RFC 7396): objects merge, null removes, that is, "
        "goes back to the default. A trigger of another type replaces the stored one as a whole.",
        examples=[{"trigger": {"every": "5s"}, "overlap": "skip", "labels": {"team": None}}],
    ),
]


def require_known_placeholders(payload: object, labels: Mapping[str, str], path: tuple[str | int, ...]) -> None:
    """`InvalidInput` where ``payload`` has a placeholder that does not exist."""
    known = [*PLACEHOLDERS, *(f"label.{key}" for key in labels)]
    for where, name in missing_placeholders(payload, frozenset(known), path):
        raise InvalidInput(
            where, f"there is no ${{{name[:64]}}}", f"one of {', '.join(known)}, or $$ for a dollar sign"
        )
