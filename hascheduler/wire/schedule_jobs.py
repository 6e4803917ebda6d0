"""The jobs that each fire of a schedule makes: one, or several of which some wait for others."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from hascheduler.errors import InvalidInput
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, PLACEHOLDERS, PLACEHOLDERS_MAX, missing_placeholders
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.schedule import GRAPH_JOBS_MAX, REF_EXPECTED, REF_PATTERN, GraphJob, JobTemplate, is_ref
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.wire.fields import DurationMs, Text, invalid_value
from hascheduler.wire.job import JobFields


def _ref(text: str) -> str:
    if not is_ref(text):
        raise invalid_value(f"{quoted(text)} is not a ref", REF_EXPECTED)
    return text


Ref = Annotated[str, AfterValidator(_ref), Field(json_schema_extra={"pattern": REF_PATTERN})]


class TemplateBody(JobFields):
    """The job that each fire makes."""

    target: Text | None = Field(default=None, description="What it works on; default: the schedule's name")
    expires_in: DurationMs | None = Field(
        default=None,
        description="If it has not begun so long after its nominal time, it fails instead of running; a time that is "
        "decided later than that is `missed`. Of a backfill and of a trigger by hand: so long after the request. "
        "Null: never",
    )
    render: bool = Field(
        default=False,
        description="Fill `${…}` in the texts of the payload: "
        + ", ".join(PLACEHOLDERS)
        + f", label.<key>; `$$` is `$`. Local ones are of the zone of the cron expression; UTC without one. At most "
        f"{PLACEHOLDERS_MAX:,} of them. Filled with the longest of each it has at most {PAYLOAD_BYTES_MAX:,} bytes",
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
            expires_in_ms=self.expires_in,
        )


class GraphJobBody(TemplateBody):
    """One of several jobs that each fire makes."""

    ref: Ref = Field(description="What the others call it; its id ends with it")
    depends_on: list[Ref] = Field(
        default=[], max_length=GRAPH_JOBS_MAX - 1, description="The refs of jobs that have to succeed before it runs"
    )

    def graph_job(self) -> GraphJob:
        return GraphJob(self.ref, tuple(self.depends_on), self.template(), self.render)

    def is_same_job(self, job: TemplateBody) -> bool:
        """Whether ``job`` says the same as this, apart from the graph."""
        return all(getattr(self, name) == getattr(job, name) for name in TemplateBody.model_fields)


def require_one_tenant(jobs: Sequence[TemplateBody]) -> None:
    """`InvalidInput` where the jobs of one schedule are said to belong to several tenants."""
    named = [(number, job.tenant) for number, job in enumerate(jobs) if job.tenant is not None]
    for number, tenant in named:
        if tenant != named[0][1]:
            raise InvalidInput(("jobs", number, "tenant"), f"{quoted(tenant)} is another tenant", quoted(named[0][1]))


def require_known_placeholders(payload: object, labels: Mapping[str, str], path: tuple[str | int, ...]) -> None:
    """`InvalidInput` where ``payload`` has a placeholder that does not exist."""
    known = [*PLACEHOLDERS, *(f"label.{key}" for key in labels)]
    for where, name in missing_placeholders(payload, frozenset(known), path):
        raise InvalidInput(
            where, f"there is no ${{{name[:64]}}}", f"one of {', '.join(known)}, or $$ for a dollar sign"
        )


class TemplateResponse(TemplateBody):
    model_config = ConfigDict(extra="ignore", strict=False)

    target: str = Field(description="What it works on")
    tenant: str = Field(description="Who owns the schedule and its jobs")
    fairness_key: str = Field(description="Divides its tenant's share between those of one key and those of another")
    mode: str = Field(description="`on_demand`: the caller waits for the answer; else `queued`")  # type: ignore[assignment]  # as it is stored
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
            expires_in=template.expires_in_ms,
        )


class GraphJobResponse(TemplateResponse):
    ref: str = Field(description="What the others call it; its id ends with it")
    depends_on: list[str] = Field(description="The refs of jobs that have to succeed before it runs")

    @classmethod
    def of_graph(cls, job: GraphJob, schedule: str, payload: JsonValue) -> "GraphJobResponse":
        said = TemplateResponse.of(job.template, schedule, payload, render=job.render)
        return cls.model_construct(**dict(said), ref=job.ref, depends_on=list(job.depends_on))
