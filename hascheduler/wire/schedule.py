"""Schedules: when they fire, what becomes of late and overlapping times, and the job that each fire makes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.fired_job import require_storable_payload
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
from hascheduler.wire.fields import DurationMs, Labels, Name, StrictModel, Text, invalid_value
from hascheduler.wire.job import JobFields
from hascheduler.wire.trigger import TriggerBody

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


class ScheduleFields(StrictModel):
    trigger: TriggerBody = Field(description="When it fires")
    misfire: MisfireBody = Field(
        default=MisfireBody(), description="What becomes of nominal times that could not be decided in time"
    )
    overlap: OverlapText = Field(
        default="allow", description="What becomes of a nominal time while an earlier job has not ended"
    )
    pause_after_failures: int | None = Field(
        default=None, ge=1, le=_FAILURES_MAX, description="Pause after as many failed jobs in a row; null: never"
    )
    job: TemplateBody = Field(description="The job that each fire makes")
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


class CreateScheduleBody(ScheduleFields):
    """A new schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name = Field(description="Unique among schedules")
    paused: bool = Field(default=False, description="It does not fire until it is resumed")


def _not_here(_: object) -> Any:
    raise invalid_value("an edit does not pause or resume", "POST …/pause or POST …/resume")


class ReplaceScheduleBody(ScheduleFields):
    """A whole schedule; what is left out gets its default. `name`, if given, must be the one in the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name | None = Field(default=None, description="The name in the path, or nothing")
    paused: SkipJsonSchema[Annotated[None, BeforeValidator(_not_here)]] = None

    def require_consistent(self, name: str) -> None:
        """`InvalidInput` unless the body is for the schedule ``name`` and passes `require_storable`."""
        if self.name is not None and self.name != name:
            raise InvalidInput(("name",), f"{self.name!r} is not the name in the path", f"{name!r}, or nothing")
        self.require_storable(name)


def require_known_placeholders(payload: object, labels: Mapping[str, str], path: tuple[str | int, ...]) -> None:
    """`InvalidInput` where ``payload`` has a placeholder that does not exist."""
    known = [*PLACEHOLDERS, *(f"label.{key}" for key in labels)]
    for where, name in missing_placeholders(payload, frozenset(known), path):
        raise InvalidInput(
            where, f"there is no ${{{name[:64]}}}", f"one of {', '.join(known)}, or $$ for a dollar sign"
        )


# As answers show them


class TemplateResponse(TemplateBody):
    model_config = ConfigDict(extra="ignore", strict=False)

    target: str = Field(description="What it works on")
    tenant: str = Field(description="Who owns the schedule and its jobs")
    fairness_key: str = Field(description="Divides its tenant's share between those of one key and those of another")
    mode: str = Field(description="`on_demand`: somebody is waiting for the answer; else `queued`")  # type: ignore[assignment]  # as it is stored
    render: bool = Field(description="Whether `${…}` in the texts of the payload is filled")
    resources: dict[str, int] | None = Field(
        description="What each needs besides a slot; null: what its definition says"
    )

    @classmethod
    def of(cls, template: JobTemplate, schedule: str, payload: JsonValue, *, render: bool) -> "TemplateResponse":
        return cls.model_construct(
            definition=template.definition,
            target=template.target_of(schedule),
            payload=payload,
            render=render,
            priority=template.priority,
            tenant=template.tenant,
            fairness_key=template.fairness_key,
            lane=template.lane,
            mode=template.mode,
            resources=None if template.resources is None else dict(template.resources),
        )


class MisfireResponse(MisfireBody):
    model_config = ConfigDict(extra="ignore", strict=False)

    catch_up: CatchUp = Field(description="Beyond the grace: nothing, the latest for all, or all of them fire")  # type: ignore[assignment]  # the same texts, under their published name

    @classmethod
    def of(cls, policy: SchedulePolicy) -> "MisfireResponse":
        return cls.model_construct(grace=policy.grace_ms, catch_up=policy.catch_up, limit=policy.catch_up_max)
