"""Tenants as requests write them and as answers show them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.bounds import JOBS_MAX
from hascheduler.api.rate_limits import RateLimitBody, RateLimitResponse, show_rate_limit
from hascheduler.api.texts import Strict
from hascheduler.model.tenant import Tenant

_EXAMPLE: dict[str, Any] = {"max_running": 10, "max_pending": 10_000, "submit_rate": {"count": 100, "per": "1s"}}


class TenantBody(Strict):
    """Who owns jobs; what is left out gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    max_running: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs run at once; null: no limit"
    )
    max_pending: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs wait at once; null: no limit"
    )
    submit_rate: RateLimitBody | None = Field(
        default=None, description="How fast its jobs are accepted; null: no limit"
    )

    def noun(self, name: str, rev: int = 0) -> Tenant:
        rate = self.submit_rate
        return Tenant(name, rev, self.max_running, self.max_pending, None if rate is None else rate.limit())


class TenantResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme", "rev": 2, **_EXAMPLE}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    max_running: int | None
    max_pending: int | None
    submit_rate: RateLimitResponse | None


def show_tenant(tenant: Tenant) -> TenantResponse:
    return TenantResponse(
        name=tenant.name,
        rev=tenant.rev,
        max_running=tenant.max_running,
        max_pending=tenant.max_pending,
        submit_rate=show_rate_limit(tenant.submit_rate),
    )
