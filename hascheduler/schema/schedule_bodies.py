"""Schedules as people write and read them: their times, their policies, and the jobs that each fire makes.

The part that a mirror holds is `hascheduler.schema.schedule.ScheduleRef`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, Strict, ValidationError
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import InitErrorDetails

from hascheduler.errors import InvalidInput
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, PLACEHOLDERS, PLACEHOLDERS_MAX, missing_placeholders
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs, format_duration
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.forms import Instant, Labels, Listed, Name, Span, Text, whole, wrong
from hascheduler.schema.job import JobBody
from hascheduler.schema.noun import Part
from hascheduler.schema.schedule import (
    CATCH_UP_MAX_DEFAULT,
    GRACE_MS_DEFAULT,
    GRAPH_JOBS_MAX,
    GRAPH_JOBS_MIN,
    REF_EXPECTED,
    REF_PATTERN,
    CatchUp,
    GraphJob,
    JobGraph,
    JobTemplate,
    Overlap,
    SchedulePolicy,
    graph_order,
    is_ref,
)
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.schema.trigger import Interval, Trigger
from hascheduler.schema.trigger_bodies import HasTrigger, TriggerBody, narrowing_of, show_trigger

_FAILURES_MAX = 1_000


class MisfireBody(Part):
    """What happens to nominal times that could not be decided in time."""

    grace_ms: Span = Field(default=GRACE_MS_DEFAULT, examples=["1m"])
    """How late a fire may be and still count as on time; default 1m"""
    catch_up: Annotated[CatchUp, Strict(False)] = CatchUp.LATEST
    """Which times beyond the grace fire: none, the latest in place of all, or all"""
    limit: Annotated[int, whole(1, CATCH_UP_MAX_DEFAULT)] = CATCH_UP_MAX_DEFAULT
    """The most times that `all` fires"""


# The jobs of a fire


def _ref(text: str) -> str:
    if not is_ref(text):
        raise wrong(f"{quoted(text)} is not a ref", REF_EXPECTED)
    return text


Ref = Annotated[str, AfterValidator(_ref), Field(json_schema_extra={"pattern": REF_PATTERN})]


class TemplateBody(JobBody):
    """The job that each fire makes."""

    never_null = ("target", "tenant", "fairness_key")

    target: Text | None = Field(default=None, examples=["demo"])
    """The target of the job; default: the schedule's name"""
    expires_in_ms: Span | None = Field(default=None, examples=["10m"])
    """How long after its nominal time it may start: later it fails instead, and a time that is decided later is
    `missed`. For a backfill or a manual trigger, the span counts from the request. Null: no limit"""
    render: bool = Field(
        default=False,
        description="Fill `${…}` in the texts of the payload: "
        + ", ".join(PLACEHOLDERS)
        + f", label.<key>; `$$` is `$`. Local times are in the zone of the cron expression, or else UTC. At most "
        f"{PLACEHOLDERS_MAX:,} placeholders; with the longest value of each, at most {PAYLOAD_BYTES_MAX:,} bytes",
    )

    def template(self) -> JobTemplate:
        tenant = self.tenant or DEFAULT_TENANT
        values = {name: getattr(self, name) for name in _ALIKE}
        return JobTemplate(**values, tenant=tenant, fairness_key=self.key(tenant))


_ALIKE = ("definition", "target", "lane", "priority", "mode", "resources", "expires_in_ms")
"""The fields that a template and its published form have in common as they are."""


class GraphJobBody(TemplateBody):
    """One of several jobs that each fire makes."""

    ref: Ref = Field(examples=["extract"])
    """Its name in `depends_on` of the others; its job id ends with it"""
    depends_on: Annotated[tuple[Ref, ...], Listed] = Field(
        default=(), max_length=GRAPH_JOBS_MAX - 1, examples=[["extract"]]
    )
    """The refs of jobs that must succeed before it runs"""

    def graph_job(self) -> GraphJob:
        return GraphJob(self.ref, self.depends_on, self.template(), self.render)

    def is_same_job(self, job: TemplateBody) -> bool:
        """Return True if ``job`` equals this one, apart from the graph."""
        return all(getattr(self, name) == getattr(job, name) for name in TemplateBody.model_fields)


def show_template(template: JobTemplate, schedule: str, payload: JsonValue, *, render: bool) -> TemplateBody:
    return TemplateBody.model_construct(**_shown(template, schedule), payload=payload, render=render)


def show_graph_job(job: GraphJob, schedule: str, payload: JsonValue) -> GraphJobBody:
    values = _shown(job.template, schedule)
    return GraphJobBody.model_construct(
        **values, payload=payload, render=job.render, ref=job.ref, depends_on=job.depends_on
    )


def _shown(template: JobTemplate, schedule: str) -> dict[str, Any]:
    values = {name: getattr(template, name) for name in (*_ALIKE, "tenant", "fairness_key")}
    return {**values, "target": template.target_of(schedule)}


def _require_one_tenant(jobs: Sequence[TemplateBody]) -> None:
    """Raise an `InvalidInput` if the jobs of one schedule name several tenants."""
    named = [(number, job.tenant) for number, job in enumerate(jobs) if job.tenant is not None]
    for number, tenant in named:
        if tenant != named[0][1]:
            raise InvalidInput(("jobs", number, "tenant"), f"{quoted(tenant)} is another tenant", quoted(named[0][1]))


def require_known_placeholders(payload: object, labels: Mapping[str, str], path: tuple[str | int, ...]) -> None:
    """Raise an `InvalidInput` if ``payload`` has a placeholder that does not exist."""
    known = [*PLACEHOLDERS, *(f"label.{key}" for key in labels)]
    for where, name in missing_placeholders(payload, frozenset(known), path):
        raise InvalidInput(
            where, f"the placeholder ${{{name[:64]}}} is unknown", f"one of {', '.join(known)}, or $$ for a dollar sign"
        )


# The schedule

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


class ScheduleFields(HasTrigger):
    """The common fields of requests and answers."""

    misfire: MisfireBody = MisfireBody()
    """What happens to nominal times that could not be decided in time"""
    overlap: Annotated[Overlap, Strict(False)] = Overlap.ALLOW
    """What happens to a nominal time while an earlier job has not ended"""
    pause_after_failures: Annotated[int, whole(1, _FAILURES_MAX)] | None = Field(default=None, examples=[3])
    """How many failed jobs in a row pause the schedule; null: never"""
    on_failure: Name | None = Field(default=None, examples=["notify"])
    """The definition of a job that is submitted when a job of the schedule fails for good, of several jobs the last;
    null: the definition of the failed job says"""
    job: TemplateBody | None = None
    """The job that each fire makes, unless `jobs` has several. Answers show the last of several"""
    jobs: Annotated[tuple[GraphJobBody, ...], Listed] | None = Field(
        default=None, min_length=GRAPH_JOBS_MIN, max_length=GRAPH_JOBS_MAX
    )
    """Several jobs that each fire makes, of one tenant, some of which wait for others. One of them depends on all
    the others, directly or not; null: each fire makes one job"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Labels of the schedule and of the jobs it makes"""


class ScheduleBody(ScheduleFields):
    """The rules for requests that concern several fields."""

    model_config = ConfigDict(json_schema_extra={"examples": [*_EXAMPLES]})

    def check_request(self, given: Mapping[str, Any]) -> None:
        try:
            self._require_jobs()
            self._require_time_to_start()
        except InvalidInput as error:
            refused = InitErrorDetails(type=wrong(error.problem, error.expected or ""), loc=error.path, input=None)
            raise ValidationError.from_exception_data(type(self).__name__, [refused]) from None

    def _require_jobs(self) -> None:
        if self.jobs is None:
            if self.job is None:
                raise InvalidInput(("job",), "missing", "job, or jobs for several")
            return
        order = graph_order([(job.ref, job.depends_on) for job in self.jobs])
        _require_one_tenant(self.jobs)
        if self.job is not None and not self.jobs[order[-1]].is_same_job(self.job):
            problem = "differs from the last of jobs"
            raise InvalidInput(("job",), problem, "job or jobs, not both; null removes a stored one")

    def _require_time_to_start(self) -> None:
        jitter_ms = narrowing_of(self.trigger)["jitter_ms"]
        for path, job in self.made:
            if job.expires_in_ms is not None and job.expires_in_ms <= jitter_ms:
                problem = f"{format_duration(job.expires_in_ms)} is over before it is due"
                expected = "more than the jitter of the trigger" if jitter_ms else "more than 0s"
                raise InvalidInput((*path, "expires_in"), problem, expected)

    def policy(self) -> SchedulePolicy:
        misfire = self.misfire
        return SchedulePolicy(
            misfire.grace_ms, misfire.catch_up, misfire.limit, self.overlap, self.pause_after_failures
        )

    @property
    def made(self) -> Sequence[tuple[tuple[str | int, ...], TemplateBody]]:
        """Return all jobs that a fire makes, each with its path."""
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
        """Return the template of the job that stands for a fire."""
        graph = self.graph()
        if graph is not None:
            return graph.last.template
        assert self.job is not None
        return self.job.template()

    @property
    def named_tenant(self) -> tuple[tuple[str | int, ...], str | None]:
        """Return the tenant that a job names, with its path; None if none does."""
        path, job = next((made for made in self.made if made[1].tenant is not None), self.made[0])
        return (*path, "tenant"), job.tenant

    def of_tenant(self, tenant: str) -> Self:
        """Return the body with that tenant for all its jobs."""
        owned = {"tenant": tenant}
        if self.jobs is not None:
            jobs = tuple(job.model_copy(update=owned) for job in self.jobs)
            return self.model_copy(update={"job": None, "jobs": jobs})
        assert self.job is not None
        return self.model_copy(update={"job": self.job.model_copy(update=owned)})


class CreateScheduleBody(ScheduleBody):
    """A new schedule."""

    name: Name
    """Unique among schedules"""
    paused: bool = False
    """True if it is paused: it does not fire until it is resumed"""


def _not_here(_: object) -> Any:
    raise wrong("an edit can't pause or resume", "POST …/pause or POST …/resume")


class ReplaceScheduleBody(ScheduleBody):
    """A whole schedule; an omitted field gets its default. `name`, if given, must be the one in the path."""

    name: Name | None = None
    """The name in the path; may be omitted"""
    paused: SkipJsonSchema[Annotated[None, BeforeValidator(_not_here)]] = None


# Answers


class CountsResponse(Part):
    """How many nominal times of the schedule got each verdict since its creation."""

    fired: int = 0
    """A job was made"""
    skipped: int = 0
    """An earlier job had not ended"""
    missed: int = 0
    """Too late for the misfire policy"""
    coalesced: int = 0
    """A later fire stands for these times"""
    paused: int = 0
    """The schedule was paused"""
    excluded: int = 0
    """In an exclusion window, or on a day that a calendar leaves out"""
    throttled: int = 0
    """A limit of the tenant was reached"""
    unstorable: int = 0
    """The job could not be stored in any database, so there is none"""

    @classmethod
    def of(cls, tally: FireCounts, unstorable: int) -> "CountsResponse":
        """Return the counts, with ``unstorable`` of the stored fired ones apart."""
        values = {name: getattr(tally, name) for name in cls.model_fields if name != "unstorable"}
        return cls.model_construct(**{**values, "fired": max(0, tally.fired - unstorable)}, unstorable=unstorable)


_SHOWN_TRIGGER = show_trigger(Trigger(Interval(1_000, WallMs(1_893_456_000_000)), jitter_ms=200))
_SHOWN_JOB = TemplateBody(
    definition="log", target="demo", payload={"message": "hello"}, tenant="default", fairness_key="default"
)


class ScheduleResponse(ScheduleFields):
    name: str = Field(examples=["tick"])
    """Unique among schedules"""
    rev: int = Field(examples=[3])
    """Revision; grows with every edit"""
    trigger: TriggerBody = Field(examples=[_SHOWN_TRIGGER.model_dump(mode="json", by_alias=True)])
    """When the schedule fires"""
    job: TemplateBody = Field(examples=[_SHOWN_JOB.model_dump(mode="json", by_alias=True)])
    """The job that each fire makes; of several, the last"""
    created_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When it was created; a deleted one of the same name was another"""
    paused: bool = False
    """True if it is paused: it does not fire until it is resumed"""
    paused_at_ms: Instant | None = None
    """Since when it is paused; null while it is not"""
    paused_because: str | None = None
    """The reason given, or that too many jobs in a row failed"""
    last_nominal_at_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:09.000Z"])
    """The last nominal time that was decided; null before the first"""
    next_at_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:10.000Z"])
    """The next nominal time that fires; null when none does, or it is paused"""
    next_due_at_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:10.137Z"])
    """The same with its jitter"""
    ahead_until_ms: Instant | None = None
    """Its times through this instant, which is to come, were decided by a clock that was wrong: it does not fire until
    then, unless it is reset; null: it is not ahead"""
    counts: CountsResponse = CountsResponse()
    """Of all its nominal times so far, by verdict"""
    failures_in_a_row: int = 0
    """How many of its jobs failed since the last that succeeded; without `pause_after_failures` as of up to 10 seconds
    ago"""
    late: bool = False
    """True if it is not paused and a fire has been due for longer than the grace and a minute"""
    warnings: Annotated[tuple[str, ...], Listed] = ()
    """Why it does not fire, and what of its cron expression may not be meant"""
