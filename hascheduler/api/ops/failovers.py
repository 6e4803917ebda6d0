"""``/v1/cluster/failovers``: the changes of leadership; each new leader records its own."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.services import Services
from hascheduler.model.failover import Cause, Failover
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.wire.fields import instant_text

_EXAMPLE: JsonDict = {
    "term": 8,
    "shard": "default",
    "holder": "replica-2.5f2c9a01",
    "cause": "died",
    "deciding_at": "2030-01-01T00:00:00.140Z",
    "gap_ms": 120,
    "first_decision_ms": 10,
}


class FailoverResponse(BaseModel):
    """How a replica came to lead."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    term: int = Field(description="The number of the leadership that began")
    shard: str = Field(description="Which shard it leads; terms are counted in each")
    holder: str = Field(description="The id of the replica that took over")
    cause: Cause = Field(
        description="How the lease became free: no leader before it (first), it was given back (released), its holder"
        " was proved dead (died), its holder stood still and was followed early (stood_still), it was not renewed in"
        " time (lapsed), it was deleted by hand (deleted)"
    )
    deciding_at: str = Field(description="When it could decide, by its own clock")
    gap_ms: int | None = Field(
        description="From the last sign of the leader before until then; null if no such sign is known"
    )
    first_decision_ms: int | None = Field(description="From then to its first decision; null if nothing was due")


def _show(failover: Failover) -> FailoverResponse:
    return FailoverResponse(
        term=failover.term,
        shard=failover.shard,
        holder=failover.holder,
        cause=failover.cause,
        deciding_at=instant_text(failover.deciding_at_ms),
        gap_ms=failover.gap_ms,
        first_decision_ms=failover.first_decision_ms,
    )


router = APIRouter(prefix="/cluster", tags=["cluster"])


class FailoversQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="How many, the latest first")


class FailoversResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_EXAMPLE]}]})

    items: list[FailoverResponse] = Field(description="The latest first")


@router.get("/failovers", responses=problem_responses(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """The latest changes of leadership, of all shards, the latest first."""
    failovers = await services.failovers.newest(services.work_terms.shard, query.limit)
    return FailoversResponse(items=[_show(failover) for failover in failovers])
