"""``/v1/cluster/failovers``: the changes of leadership; each new leader records its own."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.services import Services
from hascheduler.model.failover import Cause, Failover, FailoverEnd
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.wire.fields import instant_text

EXAMPLE: JsonDict = {
    "term": 8,
    "shard": "default",
    "holder": "replica-2.5f2c9a01",
    "cause": "died",
    "previous_term": 7,
    "previous_holder": "replica-1.3f9a0c11",
    "last_sign_at": "2030-01-01T00:00:00.020Z",
    "last_decision_at": "2030-01-01T00:00:00.012Z",
    "detected_at": "2030-01-01T00:00:00.060Z",
    "won_at": "2030-01-01T00:00:00.080Z",
    "began_at": "2030-01-01T00:00:00.095Z",
    "deciding_at": "2030-01-01T00:00:00.140Z",
    "first_decision_at": "2030-01-01T00:00:00.150Z",
    "first_dispatch_at": "2030-01-01T00:00:00.160Z",
    "told_at": "2030-01-01T00:00:00.160Z",
    "ended": "caught_up",
    "detection_ms": 40,
    "takeover_ms": 80,
    "first_decision_ms": 10,
    "gap_ms": 138,
    "began_seq": 1042,
    "reapplied_entries": 2,
    "reapplied_decisions": 9,
    "fires_late": 3,
    "worst_lag_ms": 132,
    "coalesced": 0,
    "missed": 0,
    "skipped": 0,
    "requeued": 0,
}


class FailoverResponse(BaseModel):
    """How a replica came to lead. All instants but one are by its own clock."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    term: int = Field(description="The number of the leadership that began")
    shard: str = Field(description="Which shard it leads; terms are counted in each")
    holder: str = Field(description="The id of the replica that took over")
    cause: Cause = Field(
        description="How the lease became free: no leader before it (first), it was given back (released), its holder"
        " was proved dead (died), its holder stood still and was followed early (stood_still), it was not renewed in"
        " time (lapsed), it was deleted by hand (deleted)"
    )
    previous_term: int | None = Field(description="Null where no replica had led before")
    previous_holder: str | None = Field(description="The id of the replica that led before; null where none had")
    last_sign_at: str | None = Field(
        description="When a renewal or decision of the holder before last arrived; null where this replica came later"
    )
    last_decision_at: str | None = Field(
        description="The last decision before, by its leader's clock: the one instant of another clock"
    )
    detected_at: str = Field(description="It knew that the lease is free")
    won_at: str = Field(description="It held the lease")
    began_at: str = Field(description="The journal had its `term_began`")
    deciding_at: str | None = Field(
        description="Its stream had delivered that, so that it might decide; null where the term ended before"
    )
    first_decision_at: str | None = Field(description="In the journal; null where nothing was due")
    first_dispatch_at: str | None = Field(description="Carried out; null where nothing could run")
    told_at: str = Field(description="The account was closed")
    ended: FailoverEnd = Field(
        description="Why: all that was due is decided (caught_up), that took more than a minute (still_behind), or the"
        " term was over before (term_ended)"
    )
    detection_ms: int | None = Field(
        description="From the last sign to the detection; where there was no sign, from the last decision"
    )
    takeover_ms: int | None = Field(description="From the detection to deciding")
    first_decision_ms: int | None = Field(description="From deciding to the first decision")
    gap_ms: int | None = Field(description="From the last decision before to the first one after, on two clocks")
    began_seq: int = Field(description="The number of the `term_began` in the journal")
    reapplied_entries: int = Field(description="Of earlier terms, that might not have been carried out")
    reapplied_decisions: int = Field(description="In those entries")
    fires_late: int = Field(description="Fires that were due before it could decide")
    worst_lag_ms: int = Field(description="The longest that one of them came after it was due")
    coalesced: int = Field(description="Nominal times due before that, which a later fire stands for")
    missed: int = Field(description="… that were later than their misfire grace")
    skipped: int = Field(description="… that an earlier job was in the way of")
    requeued: int = Field(description="Attempts that it took from their processors")


def show_failover(failover: Failover) -> FailoverResponse:
    backlog = failover.backlog
    return FailoverResponse(
        term=failover.term,
        shard=failover.shard,
        holder=failover.holder,
        cause=failover.cause,
        previous_term=failover.previous_term,
        previous_holder=failover.previous_holder,
        last_sign_at=_instant(failover.last_sign_at_ms),
        last_decision_at=_instant(failover.last_decision_at_ms),
        detected_at=instant_text(failover.detected_at_ms),
        won_at=instant_text(failover.won_at_ms),
        began_at=instant_text(failover.began_at_ms),
        deciding_at=_instant(failover.deciding_at_ms),
        first_decision_at=_instant(failover.first_decision_at_ms),
        first_dispatch_at=_instant(failover.first_dispatch_at_ms),
        told_at=instant_text(failover.told_at_ms),
        ended=failover.ended,
        detection_ms=failover.detection_ms,
        takeover_ms=failover.takeover_ms,
        first_decision_ms=failover.first_decision_ms,
        gap_ms=failover.gap_ms,
        began_seq=failover.began_seq,
        reapplied_entries=failover.reapplied_entries,
        reapplied_decisions=failover.reapplied_decisions,
        fires_late=backlog.fires_late,
        worst_lag_ms=backlog.worst_lag_ms,
        coalesced=backlog.coalesced,
        missed=backlog.missed,
        skipped=backlog.skipped,
        requeued=backlog.requeued,
    )


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else instant_text(at_ms)


router = APIRouter(prefix="/cluster", tags=["cluster"])


class FailoversQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="How many, the latest first")


class FailoversResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE]}]})

    items: list[FailoverResponse] = Field(description="The latest first")


@router.get("/failovers", responses=problem_responses(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """The latest changes of leadership, of all shards, the latest first. One is here once its replica has caught up."""
    failovers = await services.failovers.newest(services.work_terms.shard, query.limit)
    return FailoversResponse(items=[show_failover(failover) for failover in failovers])
