"""A job as it is submitted, and as answers show it. What a mirror keeps of one is `hascheduler.model.job.JobRef`."""

import hashlib
from typing import Annotated, Literal

import orjson
from pydantic import ConfigDict, Field, JsonValue, SkipValidation, field_validator

from hascheduler.errors import InvalidInput
from hascheduler.model.job import NewJob
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, json_bytes
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.forms import Instant, Labels, Listed, Name, ResourceAmounts, Text, TextOrEmpty, whole, wrong
from hascheduler.schema.lane import DEFAULT_LANE, PRIORITY_MAX
from hascheduler.schema.noun import Part, published_name

DEPENDENCIES_MAX = 1_000
_ALWAYS_HASHED = frozenset(
    {
        "definition", "payload", "priority", "fairness_key", "lane", "mode", "resources", "target", "labels",
        "not_before_ms", "expires_at_ms", "depends_on", "on_dependency_failure",
    }
)  # fmt: skip
"""The fields that 0.2.0 hashes, with their defaults: it compares a repeated request with what is stored. A field that
is newer counts only if it is not its default, so that a release that brings it knows the requests from before."""

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
        """Return the hash that bodies have in common which ask for the same job.

        It tells apart two uses of an idempotency key.
        """
        said = self.model_dump(include=set(_ALWAYS_HASHED))
        if newer := set(SubmitJobBody.model_fields) - _ALWAYS_HASHED - {"tenant"}:
            said |= self.model_dump(include=newer, exclude_defaults=True)
        hashed = {published_name(name): value for name, value in said.items()}
        return hashlib.sha256(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def job(self, id: str, tenant: str, now: WallMs) -> NewJob:
        """Return the job to insert, but for its dependencies and its idempotency key."""
        return NewJob(
            id=id,
            definition=self.definition,
            target=self.target or id,
            payload=self.payload,
            tenant=tenant,
            lane=self.lane,
            fairness_key=self.key(tenant),
            priority=self.priority,
            mode=self.mode,
            labels=dict(self.labels),
            submitted_at_ms=now,
            not_before_ms=self.not_before_ms,
            resources=self.resources,
            expires_at_ms=self.expires_at_ms,
            ignores_failures=self.on_dependency_failure == "ignore",
        )
