"""``/v1/cluster``: the leader, replicas and findings from this replica's mirror; failovers, the pause, recordings.

The pause stops everything, on all replicas; ``…/recording`` streams the leader's inputs and decisions, as lines of
JSON.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import AdminOfAll, OperatorOfAll, Viewer
from hascheduler.api.middleware.overload import RECORDING_S_MAX
from hascheduler.api.ops.cluster_health import health
from hascheduler.api.ops.health_rules import HealthResponse
from hascheduler.api.routing.revisions import TRIES_MAX
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.recording import RecordingEnd, heading_line, step_line
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.schema_version import NEWEST_VERSION, OLDEST_VERSION
from hascheduler.ports import FAILOVERS_MAX, Recording, ResourceStore
from hascheduler.schema.failover import Failover
from hascheduler.schema.forms import Instant, Integer, Text, span
from hascheduler.schema.noun import AS_REQUEST, Part, read_document
from hascheduler.schema.pause import EVERYTHING, PauseResponse, StandingPause
from hascheduler.schema.replica import ReplicaResponse, show_replica

router = APIRouter(prefix="/cluster", tags=["cluster"], route_class=JsonRoute)


class LeaderResponse(Part):
    """The leader."""

    holder: str = Field(examples=["replica-2.5f2c9a01"])
    """The id of the replica that holds the lease"""
    term: Integer = Field(examples=[8])
    """The term of the leader: it grows with each change of leadership and fences earlier leaders"""
    endpoint: str = Field(examples=["10.0.0.12:40211"])
    """`host:port` where it proves that its process is alive"""
    since_ms: Instant = Field(examples=["2030-01-01T00:00:00.080Z"])
    """When it acquired the lease"""


class QuarantinedResponse(Part):
    """A stored document that can't be read."""

    collection: str = Field(examples=["schedules"])
    """The collection of the document"""
    id: str = Field(examples=["nightly"])
    """Its `_id`, as text"""
    reason: str = Field(examples=["rev: missing"])
    """The wrong field, and the problem"""


class SchemaResponse(Part):
    """The schema version of the database."""

    version: int = Field(examples=[1])
    """The version of the database; `hascheduler migrate` raises it"""
    oldest_read: int = Field(examples=[1])
    """The oldest version that the answering replica reads"""
    newest_read: int = Field(examples=[1])
    """The newest version that it reads"""


class ShardResponse(Part):
    """A shard of a deployment with several."""

    name: str = Field(examples=["0001"])
    """The name of the shard; the home has the name that a single shard would have"""
    leader: LeaderResponse | None = None
    """The holder of its lease; null if it was released"""
    leading: bool = Field(examples=[False])
    """True if the answering replica leads it"""
    ready: bool = Field(examples=[True])
    """True if the answering replica's mirror of it is complete and fresh"""
    unready_reason: str = Field(examples=[""])
    """Why it is not ready; empty if it is"""
    stream_lag_ms: int | None = Field(default=None, alias="stream_lag_ms", examples=[7])
    """The lag of its change stream, in milliseconds"""
    journal_seq: int | None = Field(default=None, examples=[421])
    """The newest entry of its journal in the change stream"""
    processors: int = Field(examples=[2])
    """How many live processors serve it"""
    counts: dict[str, int] = Field(examples=[{"schedules": 3, "pending": 0, "dispatched": 1, "running": 2}])
    """The counts of its live jobs by state, and of its schedules"""
    followers: list[str] = Field(default=[], examples=[["replica-1", "replica-4"]])
    """The names of the replicas that follow it, including those that have just started"""
    followed: bool = Field(default=True, examples=[False])
    """True if the answering replica is one of them; otherwise it asked another one"""


class FindingsResponse(Part):
    """The findings of the leader's last check of the database."""

    at_ms: Instant = Field(examples=["2030-01-01T00:00:30.000Z"])
    """When the check ended"""
    counts: dict[str, int] = Field(examples=[{}])
    """The count of findings by kind; `hascheduler check` lists each with its remedy"""


class ClusterResponse(Part):
    """The deployment, as the answering replica sees it."""

    replica_id: str = Field(examples=["replica-2.5f2c9a01"])
    """The id of the answering replica"""
    leading: bool = Field(examples=[True])
    """True if it leads"""
    ready: bool = Field(examples=[True])
    """True if its mirror is complete and fresh"""
    unready_reason: str = Field(examples=[""])
    """Why it is not ready; empty if it is"""
    leader: LeaderResponse | None = None
    """The holder of the lease; null if it was released"""
    stream_lag_ms: int | None = Field(default=None, alias="stream_lag_ms", examples=[9])
    """Milliseconds that the answering replica's last heartbeat took to come back through the change stream; null
    before the first"""
    position: str = Field(examples=["1893456030.1"])
    """The position of its mirror in the change stream: cluster time, as `seconds.increment`"""
    digest: str = Field(examples=["8c1f0a6be2d94c37"])
    """Digest of its mirror: equal digests at equal positions mean equal mirrors"""
    journal_seq: int | None = Field(default=None, examples=[1187])
    """The newest journal entry in the change stream"""
    schema_: SchemaResponse = Field(alias="schema")
    """The schema version of the database"""
    replicas: list[ReplicaResponse]
    """All registered replicas by id; silent ones too, until they are removed"""
    counts: dict[str, int] = Field(examples=[{"schedules": 12, "definitions": 3, "pending": 0, "running": 4}])
    """The counts of live jobs by state, of schedules and of definitions"""
    paused: PauseResponse | None = Field(default=None, examples=[None])
    """The pause of everything: since when, by whom and why; null if nothing is paused"""
    findings: FindingsResponse | None = None
    """The findings of the leader's last check of the database; null before the first"""
    mirrors_differ: list[str] = Field(examples=[[]])
    """Replicas whose mirrors differ from the answering replica's, or did within the last minute"""
    quarantine: list[QuarantinedResponse]
    """Stored documents that can't be read, newest first; only for tokens for all tenants"""
    shards: list[ShardResponse] = Field(default=[])
    """The shards, the home first; empty in a deployment of one. The leader, journal and stream above are those of
    the home, the counts those of all shards"""
    health: HealthResponse | None = None
    """The verdict on all of it, and what is wrong"""


@router.get("")
async def get_cluster(services: Services, caller: Viewer) -> ClusterResponse:
    """Get the leader, the replicas and what is wrong, as the answering replica sees it now."""
    return await show_cluster(services, caller.only)


async def show_cluster(services: ApiServices, tenant: str | None) -> ClusterResponse:
    """Return the cluster for the tokens of that tenant; only those for all tenants (None) see unreadable documents."""
    cluster, verdict = await health(services, tenant)
    found = cluster.last_check
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
        schema_=SchemaResponse(version=cluster.schema_version, oldest_read=OLDEST_VERSION, newest_read=NEWEST_VERSION),
        replicas=[show_replica(replica, alive=replica.id not in cluster.silent) for replica in cluster.replicas],
        counts=dict(cluster.counts),
        paused=cluster.pause,
        findings=None if found is None else FindingsResponse(at_ms=found.at_ms, counts=dict(found.counts)),
        mirrors_differ=list(cluster.differing),
        quarantine=[
            QuarantinedResponse(collection=collection, id=id, reason=reason)
            for collection, id, reason in (cluster.quarantine if tenant is None else ())
        ],
        health=verdict,
    )


def _leader(lease: LeaseRecord | None) -> LeaderResponse | None:
    if lease is None or not lease.holder:
        return None
    return LeaderResponse(holder=lease.holder, term=lease.term, endpoint=lease.endpoint, since_ms=lease.acquired_at_ms)


class FailoversQuery(BaseModel):
    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="The most items, newest first")


class FailoversResponse(BaseModel):
    items: list[Failover] = Field(description="The changes of leadership, newest first")


@router.get("/failovers", responses=problem_responses(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """List the latest changes of leadership of all shards, newest first."""
    failovers = await services.failovers.newest(services.work_terms.scheduler, query.limit)
    return FailoversResponse(items=[*failovers])


class PauseAllBody(Part):
    """The reason and the extent of a pause."""

    because: Text = Field(examples=["the database of the invoices moves"])
    """The reason, for people who wonder why nothing happens"""
    schedules_only: bool = Field(default=False, examples=[False])
    """Pause only schedules; waiting jobs are still dispatched"""


class PausedResponse(Part):
    """The state of the pause of everything."""

    paused: PauseResponse | None = None
    """The pause of everything; null if there is none"""
    resumed: PauseResponse | None = None
    """The pause of everything that this request has ended; null if there was none"""


@router.post("/pause", responses=problem_responses(409, 413, 422))
async def pause_all(
    body: Annotated[PauseAllBody, AS_REQUEST], services: Services, caller: AdminOfAll, note: Noted
) -> PausedResponse:
    """Pause everything: no schedule fires and no job is dispatched until it is resumed. Dispatched jobs go on.

    A repeated request changes the reason, author and extent of the same pause.
    """
    note.target, note.because = EVERYTHING, body.because
    asked = StandingPause(id=EVERYTHING, since_ms=services.clock.wall_ms(), by=caller.name, **body.model_dump())
    return PausedResponse(paused=await store_pause(services.pauses, asked))


@router.post("/resume", responses=problem_responses(422))
async def resume_all(services: Services, caller: AdminOfAll, note: Noted) -> PausedResponse:
    """Resume everything.

    The misfire policy of each schedule decides which times since the pause fire, as after a time without a leader.
    """
    note.target = EVERYTHING
    resumed = None
    stored = await services.pauses.get(EVERYTHING)
    if await services.pauses.delete(EVERYTHING) and stored is not None:
        with suppress(InvalidInput):  # it paused nothing
            resumed = read_document(StandingPause, EVERYTHING, stored)
    return PausedResponse(resumed=resumed)


async def store_pause(store: ResourceStore[StandingPause], asked: StandingPause) -> StandingPause:
    """Return the pause as stored now: with its first ``since_ms``, and its old reason if ``asked`` has none."""
    for _ in range(TRIES_MAX):
        stored = await store.get(asked.id)
        if stored is None:
            written = await store.create(asked)
        else:
            try:
                known = read_document(StandingPause, stored["_id"], stored)
            except InvalidInput:  # it pauses nothing
                await store.delete(asked.id)
                continue
            because = known.because if asked.because is None else asked.because
            pause = asked.model_copy(update={"since_ms": known.since_ms, "because": because})
            written = await store.replace(pause, known.rev)
        if written is not None:
            return read_document(StandingPause, written["_id"], written)
    raise Conflict("the pause is being changed by other requests; retry")


MEDIA_TYPE = "application/x-ndjson"


class RecordingQuery(BaseModel):
    for_: Annotated[int, span(100, RECORDING_S_MAX * 1_000, of_query=True)] = Field(
        default="30s",  # a number would be documented as milliseconds, and sent as seconds
        validate_default=True,
        alias="for",
        description=f"How long to record; at most {RECORDING_S_MAX // 60} minutes",
        examples=["30s"],
    )


@router.get(
    "/recording",
    response_class=StreamingResponse,
    responses={
        200: {"content": {MEDIA_TYPE: {}}, "description": "A recording for `hascheduler simulate`"},
        **problem_responses(409, 422, 429),
    },
)
async def record(
    query: Annotated[RecordingQuery, Query(), AS_REQUEST], services: Services, caller: OperatorOfAll, request: Request
) -> StreamingResponse:
    """Record the leader: a line with its policy, lines with its state, then a line for each of its steps."""
    caller.require_payloads()  # limits per key hold values of payloads
    holding_of(request.scope).hold_open("recordings")  # until the response has ended
    recording = services.view.record(query.for_)
    if recording is None:
        raise Conflict("only the leader can be recorded, by a few clients at once; see /v1/cluster for the leader")
    return _Closing(_lines(recording), media_type=MEDIA_TYPE)


class _Closing(StreamingResponse):
    """A stream that records for as long as it is sent."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):
            await super().__call__(scope, receive, send)


async def _lines(recording: Recording) -> AsyncGenerator[bytes, None]:
    heading, steps = recording
    yield orjson.dumps(heading_line(heading), option=orjson.OPT_APPEND_NEWLINE)
    async for step in steps:
        line = {"end": step.reason} if isinstance(step, RecordingEnd) else step_line(step)
        yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
