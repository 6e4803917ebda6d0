"""``/v1/cluster/failovers``: the changes of leadership, as those who took over have kept them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.access import Viewer
from hascheduler.api.failover_schemas import EXAMPLE, FailoverResponse, show_failover
from hascheduler.api.responses import refused
from hascheduler.api.services import Services
from hascheduler.ports import FAILOVERS_MAX

router = APIRouter(prefix="/cluster", tags=["cluster"])


class FailoversQuery(BaseModel):
    """Unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="How many, the latest first")


class FailoversResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE]}]})

    items: list[FailoverResponse]


@router.get("/failovers", responses=refused(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """The latest changes of leadership of this shard, the latest first. One is here once its replica has caught up."""
    failovers = await services.failovers.newest(services.work_terms.shard, query.limit)
    return FailoversResponse(items=[show_failover(failover) for failover in failovers])
