"""Tenants as requests write them and as answers show them."""

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.bounds import JOBS_MAX
from hascheduler.api.texts import Strict
from hascheduler.model.tenant import Tenant


class TenantBody(Strict):
    """Who owns jobs; what is left out gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_running": 10}]})

    max_running: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs run at once; null: no limit"
    )

    def noun(self, name: str, rev: int = 0) -> Tenant:
        return Tenant(name, rev, self.max_running)


class TenantResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme", "rev": 2, "max_running": 10}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    max_running: int | None


def show_tenant(tenant: Tenant) -> TenantResponse:
    return TenantResponse(name=tenant.name, rev=tenant.rev, max_running=tenant.max_running)
