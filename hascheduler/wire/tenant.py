"""Tenants: the owners of jobs and schedules, and their quotas."""

from typing import Any

from pydantic import ConfigDict, Field

from hascheduler.schema.tenant import Tenant
from hascheduler.wire.definition import RateLimitBody, RateLimitResponse
from hascheduler.wire.fields import JOBS_MAX, Owner, Revisioned, StrictModel

_EXAMPLE: dict[str, Any] = {
    "max_running": 10,
    "max_pending": 10_000,
    "submit_rate": {"count": 100, "per": "1s"},
    "max_schedules": 200,
    "fire_rate": {"count": 600, "per": "1m"},
    "owner": "team-a",
}


class RunningLimit(StrictModel):
    """What of a tenant decides when its jobs may start."""

    max_running: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs run at once; null: no limit"
    )

    def resource(self, name: str, rev: int = 0) -> Tenant:
        return Tenant(name=name, rev=rev, max_running=self.max_running)


class TenantBody(RunningLimit):
    """Who owns jobs; what is left out gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    max_pending: int | None = Field(
        default=None,
        ge=1,
        le=JOBS_MAX,
        description="How many of its jobs wait at once, those of its schedules among them; null: no limit",
    )
    submit_rate: RateLimitBody | None = Field(
        default=None, description="How fast its jobs are accepted; null: no limit"
    )
    max_schedules: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many schedules it has; null: the deployment's limit"
    )
    fire_rate: RateLimitBody | None = Field(
        default=None,
        description="How fast its schedules fire, all together; times beyond it are throttled; null: no limit",
    )
    owner: Owner = None

    def resource(self, name: str, rev: int = 0) -> Tenant:
        submits, fires = self.submit_rate, self.fire_rate
        return Tenant(
            name=name,
            rev=rev,
            max_running=self.max_running,
            max_pending=self.max_pending,
            submit_rate=None if submits is None else submits.limit(),
            max_schedules=self.max_schedules,
            fire_rate=None if fires is None else fires.limit(),
            owner=self.owner,
        )


class TenantResponse(TenantBody, Revisioned):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme", "rev": 2, **_EXAMPLE}]})

    submit_rate: RateLimitResponse | None = Field(description="How fast its jobs are accepted; null: no limit")
    fire_rate: RateLimitResponse | None = Field(
        description="How fast its schedules fire, all together; times beyond it are throttled; null: no limit"
    )

    @classmethod
    def of(cls, tenant: Tenant) -> "TenantResponse":
        return cls.model_construct(
            name=tenant.name,
            rev=tenant.rev,
            max_running=tenant.max_running,
            max_pending=tenant.max_pending,
            submit_rate=RateLimitResponse.of(tenant.submit_rate),
            max_schedules=tenant.max_schedules,
            fire_rate=RateLimitResponse.of(tenant.fire_rate),
            owner=tenant.owner,
        )
