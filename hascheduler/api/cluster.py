"""``/v1/cluster``: who leads, who is there and what is wrong, as this replica's mirror has it."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hascheduler.api.access import Viewer
from hascheduler.api.services import Services
from hascheduler.api.shown import instant_text
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.replica import ReplicaStatus

router = APIRouter(prefix="/cluster", tags=["cluster"])


class LeaderResponse(BaseModel):
    holder: str = Field(description="The id of the replica that holds the lease")
    term: int
    endpoint: str = Field(description="Where it proves that its process lives")
    since: str


class ReplicaResponse(BaseModel):
    id: str = Field(description="Unique per process start")
    name: str
    started_at: str
    http_endpoint: str
    liveness_endpoint: str
    ready: bool
    stream_lag_ms: int | None
    position: str
    digest: str = Field(description="Equal digests at equal positions are equal mirrors")
    quarantined: int


class QuarantinedResponse(BaseModel):
    collection: str
    id: str
    reason: str


class ClusterResponse(BaseModel):
    replica_id: str = Field(description="The replica that answers")
    leading: bool = Field(description="Whether it leads")
    ready: bool = Field(description="Whether its mirror is complete and fresh")
    unready_reason: str
    leader: LeaderResponse | None = Field(description="Who holds the lease; null when it was given back")
    stream_lag_ms: int | None
    position: str
    digest: str
    journal_seq: int | None = Field(description="The newest entry that came by")
    replicas: list[ReplicaResponse]
    counts: dict[str, int] = Field(description="Live jobs by state, schedules, definitions")
    quarantine: list[QuarantinedResponse] = Field(
        description="Documents that can't be read, the newest first; shown to tokens for all tenants"
    )


@router.get("")
async def get_cluster(services: Services, caller: Viewer) -> ClusterResponse:
    cluster = services.view.cluster()
    return ClusterResponse(
        replica_id=cluster.replica_id,
        leading=cluster.leading,
        ready=cluster.ready,
        unready_reason=services.view.unready_reason,
        leader=_leader(cluster.lease),
        stream_lag_ms=cluster.stream_lag_ms,
        position=cluster.position,
        digest=cluster.digest,
        journal_seq=cluster.journal.seq if cluster.journal else None,
        replicas=[_replica(replica) for replica in cluster.replicas],
        counts=dict(cluster.counts),
        quarantine=[
            QuarantinedResponse(collection=collection, id=id, reason=reason)
            for collection, id, reason in (cluster.quarantine if caller.only is None else ())
        ],
    )


def _leader(lease: LeaseRecord | None) -> LeaderResponse | None:
    if lease is None or not lease.holder:
        return None
    return LeaderResponse(
        holder=lease.holder, term=lease.term, endpoint=lease.endpoint, since=instant_text(lease.acquired_at_ms)
    )


def _replica(replica: ReplicaStatus) -> ReplicaResponse:
    return ReplicaResponse(
        id=replica.id,
        name=replica.name,
        started_at=instant_text(replica.started_at_ms),
        http_endpoint=replica.http_endpoint,
        liveness_endpoint=replica.liveness_endpoint,
        ready=replica.ready,
        stream_lag_ms=replica.stream_lag_ms,
        position=replica.position,
        digest=replica.digest,
        quarantined=replica.quarantined,
    )
