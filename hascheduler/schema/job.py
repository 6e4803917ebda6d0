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
    """What a job that is submitted and the job of a schedule have in common."""

    definition: Name = Field(examples=["log"])
    """The type of job: which handler runs it"""
    payload: SkipValidation[JsonValue] = Field(default=None, examples=[{"seconds": 1.5}])
    """What the handler gets: any JSON"""
    priority: Priority = 5
    """10 is the most urgent"""
    tenant: Name | None = Field(default=None, examples=["acme"])
    """Who owns it; default: the tenant of the token, else `default`"""
    fairness_key: TextOrEmpty | None = Field(default=None, examples=["customer-7"])
    """Divides its tenant's share: of the jobs of one tenant those of the key that has consumed least go first; default:
    the tenant's name"""
    lane: Text = DEFAULT_LANE
    """The class of work it belongs to; a token of one tenant may name `default` and those of /v1/lanes"""
    mode: Literal["queued", "on_demand"] = "queued"
    """`on_demand`: the caller waits for the answer"""
    resources: ResourceAmounts | None = Field(default=None, examples=[{"cpu": 2, "gpu": 1}])
    """What it needs besides a slot; null: what its definition says"""

    def key(self, tenant: str) -> str:
        """Return the job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key


class SubmitJobBody(JobBody):
    """One job, to run as soon as it may."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"definition": "sleep", "target": "demo", "payload": {"seconds": 1.5}, "priority": 7}]
        }
    )

    target: Text | None = Field(default=None, examples=["demo"])
    """What it works on; default: the job's id"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Texts for people"""
    not_before_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:00.000Z"])
    """It does not run before this instant"""
    expires_at_ms: Instant | None = Field(default=None, examples=["2030-01-02T00:00:00.000Z"])
    """If it has not begun by this instant, it fails instead of running"""
    depends_on: Annotated[tuple[Text, ...], Listed] = Field(
        default=(), max_length=DEPENDENCIES_MAX, examples=[["job:0194f3a1b2c3000001deadbeef01"]]
    )
    """Ids of jobs that have to succeed before it runs; `batch:…` is all the jobs of a batch, by one dependency"""
    on_dependency_failure: Literal["fail", "ignore"] = "fail"
    """When one of those fails or is cancelled: it fails too, or goes on when all ended"""

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
        said = self.model_dump(include=set(_ALWAYS_HASHED))
        if newer := set(SubmitJobBody.model_fields) - _ALWAYS_HASHED - {"tenant"}:
            said |= self.model_dump(include=newer, exclude_defaults=True)
        hashed = {published_name(name): value for name, value in said.items()}
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
    """How far an attempt has come, as its handler says."""

    percent: float | None = Field(examples=[40.0])
    """Of the work, 0 to 100; null if the handler says it in words alone"""
    text: str = Field(examples=["2 of 5 pages"])
    """Where the handler is, in its own words; may be empty"""
    at_ms: Instant = Field(examples=["2030-01-01T00:00:10.000Z"])
    """When the handler said so"""


class JobSummary(Part):
    """A job, without its payload, its result and its attempts."""

    id: str = Field(examples=["fire:tick:1893456009000", "job:0194f3a1b2c3000001deadbeef01"])
    """Holds ':'; may stand in a path as it is"""
    state: Annotated[JobState, Strict(False)] = Field(examples=["running"])
    """`pending`: it waits; `dispatched`: promised to a processor; `running`; or how it ended"""
    attempt: int = Field(examples=[1])
    """Number of the newest attempt, 0 before the first; the fencing token. A revival takes a number of its own, under
    which nothing runs: `tries` counts attempts"""
    tries: int = Field(examples=[1])
    """How many attempts there have been; `attempt` less `revivals`"""
    revivals: int = Field(examples=[0])
    """How often it was made to wait again after its end (`retry`)"""
    definition: str = Field(examples=["log"])
    """The type of job: which handler runs it"""
    target: str = Field(examples=["demo"])
    """What it works on"""
    priority: int = Field(examples=[5])
    """0 to 10; 10 is the most urgent"""
    tenant: str = Field(examples=["default"])
    """Who owns it"""
    fairness_key: str = Field(examples=["default"])
    """Divides its tenant's share between those of one key and those of another"""
    lane: str = Field(examples=["default"])
    """The class of work it belongs to"""
    mode: str = Field(examples=["queued"])
    """`on_demand`: the caller waits for the answer; else `queued`"""
    resources: ResourceAmounts | None = Field(examples=[None])
    """Null: what its definition says"""
    unschedulable: bool = Field(examples=[False])
    """It waits, and no processor that lives could ever run it"""
    labels: dict[str, str] = Field(examples=[{"team": "a"}])
    """Texts for people"""
    schedule: str | None = Field(examples=["tick"])
    """The schedule that made it, if one did"""
    nominal_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.000Z"])
    """The nominal time that it was made for"""
    submitted_at_ms: Instant = Field(examples=["2030-01-01T00:00:09.000Z"])
    """When it was submitted, or its schedule fired"""
    not_before_ms: Instant | None = Field(examples=[None])
    """It does not run before this instant; null: at once"""
    processor: str | None = Field(examples=["worker-1.5f0c9a21"])
    """Who holds the newest attempt, while dispatched or running"""
    dispatched_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.012Z"])
    """When the newest attempt was promised to a processor; null while it waits"""
    started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When the handler of the newest attempt began; null before that"""
    finished_at_ms: Instant | None = Field(examples=[None])
    """When it succeeded, failed or was cancelled; null before that"""
    cancel_requested_at_ms: Instant | None = Field(examples=[None])
    """When its running attempt was asked to stop; null if it was not"""
    failures: int = Field(examples=[0])
    """How many attempts have failed"""
    losses: int = Field(examples=[0])
    """How many attempts were lost while they ran: their processor died, was cut off or fenced itself"""
    retry_at_ms: Instant | None = Field(examples=[None])
    """After a failed or lost attempt: the next one comes then at the earliest"""
    first_started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When its first attempt began: the total timeout counts from here"""
    expires_at_ms: Instant | None = Field(examples=[None])
    """If it has not begun by this instant, it fails instead of running; null: never"""
    depends_on: Annotated[tuple[str, ...], Listed] = Field(examples=[[]])
    """The ids of the jobs and batches that it waits, or has waited, for"""
    on_dependency_failure: Literal["fail", "ignore"] = Field(examples=["fail"])
    """When one of those fails or is cancelled: it fails too, or goes on when all ended"""
    batch: str | None = Field(examples=[None])
    """The batch that it was submitted in"""
    overdue_since_ms: Instant | None = None
    """When the running attempt timed out, if its thread has not ended yet: its slot and conflict groups are held until
    then, and only then the attempt has failed"""
    progress: ProgressResponse | None = Field(examples=[example_of(ProgressResponse)])
    """How far the newest attempt has come, as it says itself"""
    error: str | None = Field(examples=[None])
    """Why it failed, or was cancelled, if that is known; of single attempts: `attempts` of the job"""


class AttemptResponse(Part):
    """An attempt that has ended."""

    number: int = Field(examples=[1])
    """Counted from 1; the fencing token of the attempt. A number that is missing was taken by a revival"""
    processor: str | None = Field(examples=["worker-1.5f0c9a21"])
    """The id of the processor that had it"""
    dispatched_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.012Z"])
    """When it was promised to the processor"""
    started_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:09.020Z"])
    """When the handler began; null if it never did"""
    finished_at_ms: Instant | None = Field(examples=["2030-01-01T00:00:12.000Z"])
    """When it ended"""
    outcome: str = Field(examples=["failed"])
    """`succeeded`, `failed`, `cancelled`, `given_back` (another processor shall run it), or `lost` (its processor died,
    was cut off or fenced itself)"""
    error: str | None = Field(examples=["the host did not answer"])
    """What went wrong, or why it was given back"""
    traceback: str | None = None
    """Where the handler raised it: the last 16 KiB, without secrets, of the three newest attempts; null if nothing was
    raised, or by a release that kept none"""


class JobResponse(JobSummary):
    """A job, with everything about it."""

    payload: JsonValue = Field(examples=[{"message": "hello"}])
    """What the handler gets"""
    result: JsonValue = Field(examples=[None])
    """What the handler returned; null unless it succeeded"""
    attempts: Annotated[tuple[AttemptResponse, ...], Listed] = Field(examples=[[]])
    """The attempts that have ended"""
