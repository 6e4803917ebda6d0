"""Jobs as they are submitted; `JobFields` are what such a job and the job of a schedule have in common."""

import hashlib
from typing import Annotated, Literal

import orjson
from pydantic import ConfigDict, Field, JsonValue, SkipValidation, field_validator

from hascheduler.errors import InvalidInput
from hascheduler.model.job import NewJob
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, json_bytes
from hascheduler.model.resources import Resources, resources
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.lane import DEFAULT_LANE, PRIORITY_MAX
from hascheduler.wire.fields import (
    InstantMs,
    Labels,
    Name,
    ResourceAmounts,
    StrictModel,
    Text,
    TextOrEmpty,
    invalid_value,
)

DEPENDENCIES_MAX = 1_000
_ALWAYS_HASHED = frozenset(
    {
        "definition", "payload", "priority", "fairness_key", "lane", "mode", "resources", "target", "labels",
        "not_before", "expires_at", "depends_on", "on_dependency_failure",
    }
)  # fmt: skip
"""The fields that 0.2.0 hashes, with their defaults: it compares a repeated request with what is stored. A field that
is newer counts only where it is not its default, so that a release that brings it knows the requests from before."""

Mode = Literal["queued", "on_demand"]
Priority = Annotated[int, Field(ge=0, le=PRIORITY_MAX, description="10 is the most urgent")]


class JobFields(StrictModel):
    definition: Name = Field(description="The type of job: which handler runs it", examples=["log"])
    payload: SkipValidation[JsonValue] = Field(default=None, description="What the handler gets: any JSON")
    priority: Priority = 5
    tenant: Name | None = Field(
        default=None, description="Who owns it; default: the tenant of the token, else `default`"
    )
    fairness_key: TextOrEmpty | None = Field(
        default=None,
        description="Divides its tenant's share: of the jobs of one tenant those of the key that has consumed least go"
        " first; default: the tenant's name",
    )
    lane: Text = Field(
        default=DEFAULT_LANE,
        description="The class of work it belongs to; a token of one tenant may name `default` and those of /v1/lanes",
    )
    mode: Mode = Field(default="queued", description="`on_demand`: the caller waits for the answer")
    resources: ResourceAmounts | None = Field(
        default=None, description="What it needs besides a slot; null: what its definition says"
    )

    def key(self, tenant: str) -> str:
        """The job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key

    def needs(self) -> Resources | None:
        return None if self.resources is None else resources(self.resources)


class SubmitJobBody(JobFields):
    """One job, to run as soon as it may."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"definition": "sleep", "target": "demo", "payload": {"seconds": 1.5}, "priority": 7}]
        }
    )

    target: Text | None = Field(default=None, description="What it works on; default: the job's id")
    labels: Labels = Field(default={}, description="Texts for people")
    not_before: InstantMs | None = Field(default=None, description="It does not run before this instant")
    expires_at: InstantMs | None = Field(
        default=None, description="If it has not begun by this instant, it fails instead of running"
    )
    depends_on: list[Text] = Field(
        default=[],
        max_length=DEPENDENCIES_MAX,
        description="Ids of jobs that have to succeed before it runs; `batch:…` is all the jobs of a batch, by one"
        " dependency",
        examples=[["job:0194f3a1b2c3000001deadbeef01"]],
    )
    on_dependency_failure: Literal["fail", "ignore"] = Field(
        default="fail", description="When one of those fails or is cancelled: it fails too, or goes on when all ended"
    )

    @field_validator("payload")
    @classmethod
    def _not_too_large(cls, payload: JsonValue) -> JsonValue:
        size = json_bytes(payload)
        if size > PAYLOAD_BYTES_MAX:
            raise invalid_value(f"{size} bytes of JSON", f"at most {PAYLOAD_BYTES_MAX}")
        return payload

    def require_time_to_start(self, now: WallMs) -> None:
        """`InvalidInput` if it would expire before it could start."""
        least = max(now, self.not_before or 0)
        if self.expires_at is not None and self.expires_at <= least:
            after = "not_before" if least > now else "now"
            problem = f"{format_instant(self.expires_at)} is not after {after}"
            raise InvalidInput(("expires_at",), problem, f"later than {format_instant(WallMs(least))}")

    def request_hash(self) -> str:
        """Bodies that ask for the same job have the same hash; it tells apart two uses of an idempotency key."""
        newer = set(SubmitJobBody.model_fields) - _ALWAYS_HASHED - {"tenant"}
        asked = self.model_dump(include=set(_ALWAYS_HASHED)) | self.model_dump(include=newer, exclude_defaults=True)
        return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def job(self, id: str, tenant: str, now: WallMs) -> NewJob:
        """The job to insert, but for its dependencies and its idempotency key."""
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
            not_before_ms=None if self.not_before is None else WallMs(self.not_before),
            resources=self.needs(),
            expires_at_ms=None if self.expires_at is None else WallMs(self.expires_at),
            ignores_failures=self.on_dependency_failure == "ignore",
        )
