"""Schedules: when they fire, what becomes of late and overlapping times, and which jobs each fire makes."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import InitErrorDetails

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.fired_job import Payload, require_storable_payload
from hascheduler.model.payload import NOTHING, PAYLOAD_BYTES_MAX, require_few_placeholders
from hascheduler.model.values.durations import format_duration
from hascheduler.schema.schedule import (
    CATCH_UP_MAX_DEFAULT,
    GRACE_MS_DEFAULT,
    GRAPH_JOBS_MAX,
    GRAPH_JOBS_MIN,
    CatchUp,
    JobGraph,
    JobTemplate,
    Overlap,
    SchedulePolicy,
    graph_order,
)
from hascheduler.wire.fields import DurationMs, Labels, Name, StrictModel, invalid_value
from hascheduler.wire.schedule_jobs import (
    GraphJobBody,
    TemplateBody,
    require_known_placeholders,
    require_one_tenant,
)
from hascheduler.wire.trigger import TriggerBody

OverlapText = Literal["allow", "skip", "buffer_one", "cancel_running"]
CatchUpText = Literal["none", "latest", "all"]
_FAILURES_MAX = 1_000


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
    {
        "name": "import",
        "trigger": {"type": "cron", "expression": "0 4 * * *"},
        "overlap": "skip",
        "jobs": [
            {"ref": "extract", "definition": "log", "payload": {"message": "extract"}},
            {"ref": "load", "definition": "log", "payload": {"message": "load"}, "depends_on": ["extract"]},
        ],
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
    job: TemplateBody | None = Field(default=None, description="The job that each fire makes; or `jobs`")
    jobs: list[GraphJobBody] | None = Field(
        default=None,
        min_length=GRAPH_JOBS_MIN,
        max_length=GRAPH_JOBS_MAX,
        description="Several jobs that each fire makes, some of which wait for others; one of them comes after all the"
        " others, directly or not. All belong to one tenant",
    )
    labels: Labels = Field(default={}, description="Texts for people; the jobs it makes carry them too")

    def policy(self) -> SchedulePolicy:
        return SchedulePolicy(
            grace_ms=self.misfire.grace,
            catch_up=CatchUp(self.misfire.catch_up),
            catch_up_max=self.misfire.limit,
            overlap=Overlap(self.overlap),
            pause_after_failures=self.pause_after_failures,
        )


class ScheduleBody(ScheduleFields):
    """What requests have to keep, beyond each field alone."""

    @model_validator(mode="after")
    def _makes_jobs(self) -> "ScheduleBody":
        if self.jobs is None:
            if self.job is None:
                raise _refused(InvalidInput(("job",), "missing", "job, or several in jobs"))
            return self
        try:
            order = graph_order([(job.ref, job.depends_on) for job in self.jobs])
            require_one_tenant(self.jobs)
        except InvalidInput as error:
            raise _refused(error) from None
        if self.job is not None and not self.jobs[order[-1]].is_same_job(self.job):
            problem = "is not the last of jobs, and both can't be had"
            raise _refused(InvalidInput(("job",), problem, "job or jobs; null takes a stored one away"))
        return self

    @model_validator(mode="after")
    def _expires_after_its_due_time(self) -> "ScheduleBody":
        for path, job in self.made:
            if job.expires_in is not None and job.expires_in <= max(self.trigger.jitter, 0):
                problem = f"{format_duration(job.expires_in)} is over before it is due"
                expected = "more than 0s" if not self.trigger.jitter else "more than the jitter of the trigger"
                raise _refused(InvalidInput((*path, "expires_in"), problem, expected))
        return self

    @property
    def made(self) -> Sequence[tuple[tuple[str | int, ...], TemplateBody]]:
        """All jobs that a fire makes, each with its path."""
        if self.jobs is not None:
            return [(("jobs", number), job) for number, job in enumerate(self.jobs)]
        assert self.job is not None
        return [(("job",), self.job)]

    def graph(self) -> JobGraph | None:
        if self.jobs is None:
            return None
        order = graph_order([(job.ref, job.depends_on) for job in self.jobs])
        return JobGraph(tuple(job.graph_job() for job in self.jobs), order)

    def template(self) -> JobTemplate:
        """The template of the job that stands for a fire."""
        graph = self.graph()
        if graph is not None:
            return graph.last.template
        assert self.job is not None
        return self.job.template()

    @property
    def said_tenant(self) -> tuple[tuple[str | int, ...], str | None]:
        """The tenant that a job names, with its path; None where none does."""
        path, job = next((made for made in self.made if made[1].tenant is not None), self.made[0])
        return (*path, "tenant"), job.tenant

    def of_tenant(self, tenant: str) -> Self:
        """With all its jobs of that tenant."""
        owned = {"tenant": tenant}
        if self.jobs is not None:
            return self.model_copy(update={"job": None, "jobs": [job.model_copy(update=owned) for job in self.jobs]})
        assert self.job is not None
        return self.model_copy(update={"job": self.job.model_copy(update=owned)})

    def require_storable(self, name: str) -> None:
        """`InvalidInput` unless the payloads can be rendered, and the jobs of the schedule ``name`` can be stored."""
        size = NOTHING
        for path, job in self.made:
            at = (*path, "payload")
            payload = Payload(job.payload, job.target or name, rendered=job.render)
            size += require_storable_payload(payload, name, self.labels, at)
            if job.render:
                require_known_placeholders(job.payload, self.labels, at)
        # Of one job, that was refused above.
        if size.bytes > PAYLOAD_BYTES_MAX:
            problem = f"{size.bytes} bytes of JSON in all their payloads"
            raise InvalidInput(("jobs",), problem, f"at most {PAYLOAD_BYTES_MAX} in all")
        require_few_placeholders(size.placeholders, ("jobs",))


def _refused(error: InvalidInput) -> ValidationError:
    wrong = invalid_value(error.problem, error.expected or "")
    return ValidationError.from_exception_data("Schedule", [InitErrorDetails(type=wrong, loc=error.path, input=None)])


class CreateScheduleBody(ScheduleBody):
    """A new schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name = Field(description="Unique among schedules")
    paused: bool = Field(default=False, description="It does not fire until it is resumed")


def _not_here(_: object) -> Any:
    raise invalid_value("an edit does not pause or resume", "POST …/pause or POST …/resume")


class ReplaceScheduleBody(ScheduleBody):
    """A whole schedule; what is left out gets its default. `name`, if given, must be the one in the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    name: Name | None = Field(default=None, description="The name in the path, or nothing")
    paused: SkipJsonSchema[Annotated[None, BeforeValidator(_not_here)]] = None

    def require_consistent(self, name: str) -> None:
        """`InvalidInput` unless the body is for the schedule ``name`` and passes `require_storable`."""
        if self.name is not None and self.name != name:
            raise InvalidInput(("name",), f"{self.name!r} is not the name in the path", f"{name!r}, or nothing")
        self.require_storable(name)


# As answers show them


class MisfireResponse(MisfireBody):
    model_config = ConfigDict(extra="ignore", strict=False)

    catch_up: CatchUp = Field(description="Beyond the grace: nothing, the latest for all, or all of them fire")  # type: ignore[assignment]  # the same texts, under their published name

    @classmethod
    def of(cls, policy: SchedulePolicy) -> "MisfireResponse":
        return cls.model_construct(grace=policy.grace_ms, catch_up=policy.catch_up, limit=policy.catch_up_max)
