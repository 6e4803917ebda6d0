"""A job as it is submitted, and as answers show it. The part that a mirror holds is `hascheduler.model.job.JobRef`."""

import hashlib
from typing import Annotated, Literal

import orjson
from pydantic import ConfigDict, Field, JsonValue, SkipValidation, Strict, field_validator

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState, NewJob
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, json_bytes
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.forms import Instant, Labels, Listed, Name, ResourceAmounts, Text, TextOrEmpty, whole, wrong
from hascheduler.schema.lane import DEFAULT_LANE, PRIORITY_MAX
from hascheduler.schema.noun import Part, example_of, published_name

DEPENDENCIES_MAX = 1_000
_ALWAYS_HASHED = frozenset(
    {
        "definition", "payload", "priority", "fairness_key", "lane", "mode", "resources", "target", "labels",
        "not_before_ms", "expires_at_ms", "depends_on", "on_dependency_failure",
    }
)  # fmt: skip
"""The fields that 0.2.0 hashes, with their defaults, to compare a repeated request with the stored one.

A newer field counts only if it differs from its default, so that a release that adds it recognises older requests.
"""

Priority = Annotated[int, whole(0, PRIORITY_MAX)]


class JobBody(Part):
    """The common fields of a submitted job and of a schedule's job."""

    definition: Name = Field(examples=["log"])
    """The type of job, which selects the handler"""
    payload: SkipValidation[JsonValue] = Field(default=None, examples=[{"seconds": 1.5}])
    """The input of the handler: any JSON"""
    priority: Priority = 5
    """From 0 to 10; 10 is the most urgent"""
    tenant: Name | None = Field(default=None, examples=["acme"])
    """The tenant that owns the job; default: the tenant of the token, else `default`"""
    fairness_key: TextOrEmpty | None = Field(default=None, examples=["customer-7"])
    """The key that divides a tenant's share: jobs of the key that has consumed least go first; default: the tenant's
    name"""
    lane: Text = DEFAULT_LANE
    """The lane of the job; a token of one tenant may name `default` and the lanes of /v1/lanes"""
    mode: Literal["queued", "on_demand"] = "queued"
    """`on_demand`: the caller waits for the result"""
    resources: ResourceAmounts | None = Field(default=None, examples=[{"cpu": 2, "gpu": 1}])
    """What it needs besides a slot; null: the resources of its definition"""

    def key(self, tenant: str) -> str:
        """Return the job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key


class SubmitJobBody(JobBody):
    """A job to run as soon as possible."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"definition": "sleep", "target": "demo", "payload": {"seconds": 1.5}, "priority": 7}]
        }
    )

    target: Text | None = Field(default=None, examples=["demo"])
    """The target of the job; default: the job's id"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Labels by key, for filters and for the keys of limits"""
    not_before_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:00.000Z"])
    """The earliest start"""
    expires_at_ms: Instant | None = Field(default=None, examples=["2030-01-02T00:00:00.000Z"])
    """The latest start: if it has not started by this instant, it fails"""
    depends_on: Annotated[tuple[Text, ...], Listed] = Field(
        default=(), max_length=DEPENDENCIES_MAX, examples=[["job:0194f3a1b2c3000001deadbeef01"]]
    )
    """Ids of jobs that must succeed before it runs; `batch:…` stands for all jobs of a batch and counts as one
    dependency"""
    on_dependency_failure: Literal["fail", "ignore"] = "fail"
    """If a dependency fails or is cancelled: fail too, or run once all have ended"""

    @field_validator("payload")
    @classmethod
    def _not_too_large(cls, payload: JsonValue) -> JsonValue:
        size = json_bytes(payload)
        if size > PAYLOAD_BYTES_MAX:
            raise wrong(f"{size} bytes of JSON", f"at most {PAYLOAD_BYTES_MAX}")
        return payload

    def require_time_to_start(self, now: WallMs) -> None:
        """Raise `InvalidInput` if it would expire before it could start."""
        least = max(now, self.not_before_ms or 0)
        if self.expires_at_ms is not None and self.expires_at_ms <= least:
            after = "not_before" if least > now else "now"
            problem = f"{format_instant(self.expires_at_ms)} is not after {after}"
            raise InvalidInput(("expires_at",), problem, f"later than {format_instant(WallMs(least))}")

    def request_hash(self) -> str:
        """Return the hash that is equal for bodies that ask for the same job.

        It tells apart two uses of an idempotency key.
        """
        values = self.model_dump(include=set(_ALWAYS_HASHED))
        if newer := set(SubmitJobBody.model_fields) - _ALWAYS_HASHED - {"tenant"}:
            values |= self.model_dump(include=newer, exclude_defaults=True)
        hashed = {published_name(name): value for name, value in values.items()}
        return hashlib.sha256(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def job(self, id: str, tenant: str, now: WallMs) -> NewJob:
        """Return the job to insert, without its dependencies and its idempotency key."""
        return NewJob(
            id=id,
            tenant=tenant,
            target=self.target or id,
            fairness_key=self.key(tenant),
            labels=dict(self.labels),
            submitted_at_ms=now,
            ignores_failures=self.on_dependency_failure == "ignore",
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
        )


_MADE = ("tenant", "target", "fairness_key", "labels", "depends_on")
_AS_THEY_ARE = tuple(name for name in SubmitJobBody.model_fields if name in NewJob.__match_args__ and name not in _MADE)


class ProgressResponse(Part):
    """The progress of an attempt, as its handler reported it."""

    percent: float | None = Field(examples=[40.0])
    """Percent of the work, 0 to 100; null if the handler reported only text"""
    text: str = Field(examples=["2 of 5 pages"])
    """The handler's own description of its progress; may be empty"""
    at_ms: Instant = Field(examples=["2030-01-01T00:00:10.000Z"])
    """When the handler reported it"""


class JobSummary(Part):
    """A job without its payload, result and attempts."""

    id: str = Field(examples=["fire:tick:1893456009000", "job:0194f3a1b2c3000001deadbeef01"])
    """The id; its ':' needs no escape in a path"""
    state: Annotated[JobState, Strict(False)] = Field(examples=["running"])
    """`pending`: waiting; `dispatched`: assigned to a processor; `running`; or how it ended"""
    attempt: int = Field(examples=[1])
    """Number of the newest attempt, 0 before the first; the fencing token. A revival uses up a number without an
    attempt, so `tries` is the count of attempts"""
    tries: int = Field(examples=[1])
    """How many attempts there have been: `attempt` minus `revivals`"""
    revivals: int = Field(examples=[0])
    """How often it was retried by request after it had ended"""
    definition: str = Field(examples=["log"])
    """The type of job, which selects the handler"""
    target: str = Field(examples=["demo"])
    """The target of the job"""
    priority: int = Field(examples=[5])
    """Priority, 0 to 10; 10 is the most urgent"""
    tenant: str = Field(examples=["default"])
    """The tenant that owns the job"""
    fairness_key: str = Field(examples=["default"])
    """The key that divides its tenant's share"""
    lane: str = Field(examples=["default"])
    """The lane of the job"""
    mode: str = Field(examples=["queued"])
    """`on_demand`: the caller waits for the result; otherwise `queued`"""
    resources: ResourceAmounts | None = Field(examples=[None])
    """What it needs besides a slot; null: the resources of its definition"""
    unschedulable: bool = Field(examples=[False])
    """True if it waits and no live processor can run it"""
    labels: dict[str, str] = Field(examples=[{"team": "a"}])
    """Labels by key, for filters and for the keys of limits"""
    schedule: str | None = Field(examples=["tick"])
    """The schedule that made it; null if none did"""
    nominal_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.000Z"])
    """The nominal time of the fire; null if no schedule made it"""
    submitted_at_ms: Instant = Field(examples=["2030-01-01T00:00:09.000Z"])
    """When it was submitted, or its schedule fired"""
    not_before_ms: Instant | None = Field(examples=[None])
    """The earliest start; null: at once"""
    processor: str | None = Field(examples=["worker-1.5f0c9a21"])
    """The processor of the newest attempt, while dispatched or running"""
    dispatched_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.012Z"])
    """When the newest attempt was dispatched; null while it waits"""
    started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When the newest attempt started; null before that"""
    finished_at_ms: Instant | None = Field(examples=[None])
    """When it succeeded, failed or was cancelled; null before that"""
    cancel_requested_at_ms: Instant | None = Field(examples=[None])
    """When its running attempt was asked to stop; null if it was not asked"""
    failures: int = Field(examples=[0])
    """How many attempts have failed"""
    losses: int = Field(examples=[0])
    """How many attempts were lost while running: their processor died, was cut off or fenced itself"""
    retry_at_ms: Instant | None = Field(examples=[None])
    """The earliest next attempt, after a failed or lost one"""
    first_started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When its first attempt started; the total timeout counts from here"""
    expires_at_ms: Instant | None = Field(examples=[None])
    """The latest start: if it has not started by this instant, it fails; null: no limit"""
    depends_on: Annotated[tuple[str, ...], Listed] = Field(examples=[[]])
    """The ids of all jobs and batches that it was submitted to wait for"""
    on_dependency_failure: Literal["fail", "ignore"] = Field(examples=["fail"])
    """If a dependency fails or is cancelled: fail too, or run once all have ended"""
    batch: str | None = Field(examples=[None])
    """The batch it was submitted in"""
    overdue_since_ms: Instant | None = None
    """When the running attempt timed out, if its thread has not ended yet: until it does, the attempt holds its slot
    and conflict groups and has not failed"""
    failed_job: str | None = Field(examples=[None])
    """The failed job that this one reports; null if it reports none"""
    on_failure_job: str | None = Field(examples=[None])
    """The job that reports its failure, by `on_failure` of its schedule or definition; null until there is one"""
    progress: ProgressResponse | None = Field(examples=[example_of(ProgressResponse)])
    """The progress that the newest attempt reported"""
    error: str | None = Field(examples=[None])
    """Why it failed or was cancelled, if known; `attempts` has the errors of single attempts"""


class AttemptResponse(Part):
    """A finished attempt."""

    number: int = Field(examples=[1])
    """The number of the attempt, from 1; its fencing token. A missing number was used up by a revival"""
    processor: str | None = Field(examples=["worker-1.5f0c9a21"])
    """The id of its processor"""
    dispatched_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.012Z"])
    """When it was dispatched"""
    started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When it started; null if it never did"""
    finished_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:12.000Z"])
    """When it ended"""
    outcome: str = Field(examples=["failed"])
    """`succeeded`, `failed`, `cancelled`, `given_back` (for another processor to run), or `lost` (its processor
    died, was cut off or fenced itself)"""
    error: str | None = Field(examples=["the host did not answer"])
    """What went wrong, or why it was given back"""
    traceback: str | None = None
    """The handler's traceback: its last 16 KiB, without secrets, kept for the three newest attempts; null if there
    is none"""


class JobResponse(JobSummary):
    """A job with all its fields."""

    payload: JsonValue = Field(examples=[{"message": "hello"}])
    """The input of the handler"""
    result: JsonValue = Field(examples=[None])
    """What the handler returned; null unless it succeeded"""
    attempts: Annotated[tuple[AttemptResponse, ...], Listed] = Field(examples=[[]])
    """The attempts that have ended"""
