"""``/v1/cluster``: the leader, replicas and findings, from this replica's mirror; and the changes of leadership."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.ops.pause_all import PauseResponse, show_pause
from hascheduler.api.services import Services
from hascheduler.model.failover import Cause, Failover
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.schema_version import NEWEST_VERSION, OLDEST_VERSION
from hascheduler.ports import FAILOVERS_MAX, Cluster
from hascheduler.schema.forms import instant_text

router = APIRouter(prefix="/cluster", tags=["cluster"])


class LeaderResponse(BaseModel):
    holder: str = Field(description="The id of the replica that holds the lease")
    term: int = Field(description="The number of its leadership: it grows with each change, and fences those before")
    endpoint: str = Field(description="Where it proves that its process lives")
    since: str = Field(description="When it took the lease")


class ReplicaResponse(BaseModel):
    id: str = Field(description="Unique per process start")
    name: str = Field(description="For people; it may stay the same after a restart")
    version: str | None = Field(description="Of its software; null where it does not say, as before 0.2.0")
    zone_data: str | None = Field(
        default=None, description="The release of its time-zone data; null where it does not say, as in 0.2.0"
    )
    started_at: str = Field(description="When its process began")
    http_endpoint: str = Field(description="`host:port` of its API")
    liveness_endpoint: str = Field(description="`host:port` where it proves that its process lives")
    alive: bool = Field(description="Whether its beats still come; else all below is what it said last")
    ready: bool = Field(description="Whether it said so, and is alive")
    stream_lag_ms: int | None = Field(
        description="Milliseconds that its last beat took to come back through the change stream; null before one"
    )
    position: str = Field(
        description="How far in the change stream its mirror had come: cluster time, as `seconds.increment`"
    )
    digest: str = Field(description="Equal digests at equal positions are equal mirrors")
    quarantined: int = Field(description="Documents that it could not read")


class QuarantinedResponse(BaseModel):
    collection: str = Field(description="Where it is stored")
    id: str = Field(description="Its `_id` there, as text")
    reason: str = Field(description="Which field is wrong, and how")


class SchemaResponse(BaseModel):
    version: int = Field(description="Of the database; `hascheduler migrate` raises it")
    oldest_read: int = Field(description="What the replica that answers reads: from that version")
    newest_read: int = Field(description="to that one")


_SHARD: JsonDict = {
    "name": "0001",
    "leader": {
        "holder": "replica-1.5f2c9a01",
        "term": 3,
        "endpoint": "10.0.0.11:40211",
        "since": "2030-01-01T00:00:00.080Z",
    },
    "leading": False,
    "ready": True,
    "unready_reason": "",
    "stream_lag_ms": 7,
    "journal_seq": 421,
    "processors": 2,
    "counts": {"schedules": 3, "pending": 0, "dispatched": 1, "running": 2},
    "followers": ["replica-1", "replica-4"],
    "followed": False,
}


class ShardResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_SHARD]})

    name: str = Field(description="The home's is that of a deployment of one shard")
    leader: LeaderResponse | None = Field(description="Who holds its lease; null when it was given back")
    leading: bool = Field(description="Whether the replica that answers leads it")
    ready: bool = Field(description="Whether this replica's mirror of it is complete and fresh")
    unready_reason: str = Field(description="Why it is not; empty where it is")
    stream_lag_ms: int | None = Field(description="Of its change stream, as above")
    journal_seq: int | None = Field(description="The newest entry of its journal that came by")
    processors: int = Field(description="Processors that serve it and live")
    counts: dict[str, int] = Field(description="Its live jobs by state, and schedules")
    followers: list[str] = Field(
        default=[],
        description="The names of the replicas that host it, those that have just begun among them",
    )
    followed: bool = Field(
        default=True,
        description="Whether the replica that answers is one of them; else another one answered for it",
    )


_EXAMPLE: JsonDict = {
    "replica_id": "replica-2.5f2c9a01",
    "leading": True,
    "ready": True,
    "unready_reason": "",
    "leader": {
        "holder": "replica-2.5f2c9a01",
        "term": 8,
        "endpoint": "10.0.0.12:40211",
        "since": "2030-01-01T00:00:00.080Z",
    },
    "stream_lag_ms": 9,
    "position": "1893456030.1",
    "digest": "8c1f0a6be2d94c37",
    "journal_seq": 1187,
    "schema": {"version": 1, "oldest_read": 1, "newest_read": 1},
    "replicas": [
        {
            "id": "replica-2.5f2c9a01",
            "name": "replica-2",
            "version": "0.2.0",
            "zone_data": "2029c",
            "started_at": "2029-12-31T09:00:00.000Z",
            "http_endpoint": "10.0.0.12:8080",
            "liveness_endpoint": "10.0.0.12:40211",
            "alive": True,
            "ready": True,
            "stream_lag_ms": 9,
            "position": "1893456030.1",
            "digest": "8c1f0a6be2d94c37",
            "quarantined": 0,
        }
    ],
    "counts": {"schedules": 12, "definitions": 3, "pending": 0, "dispatched": 1, "running": 4},
    "paused": None,
    "findings": {"at": "2030-01-01T00:00:30.000Z", "counts": {}},
    "mirrors_differ": [],
    "quarantine": [],
    "shards": [],
}


class FindingsResponse(BaseModel):
    at: str = Field(description="When the leader looked")
    counts: dict[str, int] = Field(description="By kind; `hascheduler check` tells each, and what to do about it")


class ClusterResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    replica_id: str = Field(description="The replica that answers")
    leading: bool = Field(description="Whether it leads")
    ready: bool = Field(description="Whether its mirror is complete and fresh")
    unready_reason: str = Field(description="Why it is not ready; empty where it is")
    leader: LeaderResponse | None = Field(description="Who holds the lease; null when it was given back")
    stream_lag_ms: int | None = Field(
        description="Milliseconds that the last beat of the replica that answers took to come back through the change "
        "stream; null before one"
    )
    position: str = Field(
        description="How far in the change stream this replica's mirror has come: cluster time, as `seconds.increment`"
    )
    digest: str = Field(description="Of this replica's mirror: equal digests at equal positions are equal mirrors")
    journal_seq: int | None = Field(description="The newest entry that came by")
    schema_: SchemaResponse = Field(alias="schema", description="Which forms the stored documents have")
    replicas: list[ReplicaResponse] = Field(description="By id, also those that are silent until they are removed")
    counts: dict[str, int] = Field(description="Live jobs by state, schedules, definitions")
    paused: PauseResponse | None = Field(
        default=None, description="Since when everything is paused, by whom and why; null where it is not"
    )
    findings: FindingsResponse | None = Field(
        description="What the leader's last look through the database found broken; null where there was none yet"
    )
    mirrors_differ: list[str] = Field(
        description="Replicas whose mirrors differ from that of the one that answers, or did within a minute"
    )
    quarantine: list[QuarantinedResponse] = Field(
        description="Documents that can't be read, the newest first; shown to tokens for all tenants"
    )
    shards: list[ShardResponse] = Field(
        default=[],
        description="Of a deployment of several, the home first; the leader, the journal and the stream above are the"
        " home's, counts are of all. Empty where there is one",
    )


@router.get("")
async def get_cluster(services: Services, caller: Viewer) -> ClusterResponse:
    """The leader, the replicas and what is wrong, as the replica that answers sees it now."""
    return show_cluster(services.view.cluster(), services.view.unready_reason, of_all=caller.only is None)


def show_cluster(cluster: Cluster, unready_reason: str, *, of_all: bool) -> ClusterResponse:
    """Documents that can't be read are shown to tokens ``of_all`` tenants alone."""
    found = cluster.last_check
    return ClusterResponse(
        replica_id=cluster.replica_id,
        leading=cluster.leading,
        ready=cluster.ready,
        unready_reason=unready_reason,
        leader=_leader(cluster.lease),
        stream_lag_ms=cluster.stream_lag_ms,
        position=cluster.position,
        digest=cluster.digest,
        journal_seq=cluster.journal.seq if cluster.journal else None,
        schema=SchemaResponse(version=cluster.schema_version, oldest_read=OLDEST_VERSION, newest_read=NEWEST_VERSION),
        replicas=[_replica(replica, alive=replica.id not in cluster.silent) for replica in cluster.replicas],
        counts=dict(cluster.counts),
        paused=None if cluster.pause is None else show_pause(cluster.pause),
        findings=None if found is None else FindingsResponse(at=instant_text(found.at_ms), counts=dict(found.counts)),
        mirrors_differ=list(cluster.differing),
        quarantine=[
            QuarantinedResponse(collection=collection, id=id, reason=reason)
            for collection, id, reason in (cluster.quarantine if of_all else ())
        ],
    )


def _leader(lease: LeaseRecord | None) -> LeaderResponse | None:
    if lease is None or not lease.holder:
        return None
    return LeaderResponse(
        holder=lease.holder, term=lease.term, endpoint=lease.endpoint, since=instant_text(lease.acquired_at_ms)
    )


def _replica(replica: ReplicaStatus, *, alive: bool) -> ReplicaResponse:
    return ReplicaResponse(
        id=replica.id,
        name=replica.name,
        version=replica.version,
        zone_data=replica.zone_data,
        started_at=instant_text(replica.started_at_ms),
        http_endpoint=replica.http_endpoint,
        liveness_endpoint=replica.liveness_endpoint,
        alive=alive,
        ready=alive and replica.ready,
        stream_lag_ms=replica.stream_lag_ms,
        position=replica.position,
        digest=replica.digest,
        quarantined=replica.quarantined,
    )


_FAILOVER: JsonDict = {
    "term": 8,
    "shard": "default",
    "holder": "replica-2.5f2c9a01",
    "cause": "died",
    "deciding_at": "2030-01-01T00:00:00.140Z",
    "gap_ms": 120,
    "first_decision_at": "2030-01-01T00:00:00.150Z",
}


class FailoverResponse(BaseModel):
    """How a replica came to lead."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FAILOVER]})

    term: int = Field(description="The number of the leadership that began")
    shard: str = Field(description="Which shard it leads; terms are counted in each")
    holder: str = Field(description="The id of the replica that took over")
    cause: Cause = Field(
        description="How the lease became free: no leader before it (first), it was given back (released), its holder"
        " was proved dead (died), its holder stood still and was followed early (stood_still), it was not renewed in"
        " time (lapsed), it was deleted by hand (deleted)"
    )
    deciding_at: str = Field(description="When it could decide, by its own clock")
    gap_ms: int | None = Field(description="From the last sign of the leader before until then; null if unknown")
    first_decision_at: str | None = Field(description="When it first decided something; null until then")


class FailoversQuery(BaseModel):
    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="How many, the latest first")


class FailoversResponse(BaseModel):
    items: list[FailoverResponse] = Field(description="The latest first")


@router.get("/failovers", responses=problem_responses(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """The latest changes of leadership, of all shards, the latest first."""
    failovers = await services.failovers.newest(services.work_terms.scheduler, query.limit)
    return FailoversResponse(items=[_failover(failover) for failover in failovers])


def _failover(failover: Failover) -> FailoverResponse:
    first_ms = failover.first_decision_at_ms
    return FailoverResponse(
        shard=failover.name,
        term=failover.term,
        holder=failover.holder,
        cause=failover.cause,
        gap_ms=failover.gap_ms,
        deciding_at=instant_text(failover.deciding_at_ms),
        first_decision_at=None if first_ms is None else instant_text(first_ms),
    )
