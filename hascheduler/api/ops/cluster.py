"""``/v1/cluster``: the leader, replicas and findings from this replica's mirror; failovers, the pause, recordings.

The pause stops everything, on all replicas; ``…/recording`` streams the leader's inputs and decisions, as lines of
JSON.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
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
from hascheduler.api.routing.revisions import TRIES_MAX
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.dispatch.recording import RecordingEnd, heading_line, step_line
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.schema_version import NEWEST_VERSION, OLDEST_VERSION
from hascheduler.ports import FAILOVERS_MAX, Cluster, Recording, ResourceStore
from hascheduler.schema.failover import Failover
from hascheduler.schema.forms import Instant, Integer, Text, span
from hascheduler.schema.noun import AS_REQUEST, Part, read_document
from hascheduler.schema.pause import EVERYTHING, PauseResponse, StandingPause
from hascheduler.schema.replica import ReplicaResponse, show_replica

router = APIRouter(prefix="/cluster", tags=["cluster"], route_class=JsonRoute)


class LeaderResponse(Part):
    """Who leads."""

    holder: str = Field(examples=["replica-2.5f2c9a01"])
    """The id of the replica that holds the lease"""
    term: Integer = Field(examples=[8])
    """The number of its leadership: it grows with each change, and fences those before"""
    endpoint: str = Field(examples=["10.0.0.12:40211"])
    """Where it proves that its process lives"""
    since_ms: Instant = Field(examples=["2030-01-01T00:00:00.080Z"])
    """When it took the lease"""


class QuarantinedResponse(Part):
    """A document that can't be read."""

    collection: str = Field(examples=["schedules"])
    """Where it is stored"""
    id: str = Field(examples=["nightly"])
    """Its `_id` there, as text"""
    reason: str = Field(examples=["rev: missing"])
    """Which field is wrong, and how"""


class SchemaResponse(Part):
    """Which forms the stored documents have."""

    version: int = Field(examples=[1])
    """Of the database; `hascheduler migrate` raises it"""
    oldest_read: int = Field(examples=[1])
    """What the replica that answers reads: from that version"""
    newest_read: int = Field(examples=[1])
    """to that one"""


class ShardResponse(Part):
    """One shard of several."""

    name: str = Field(examples=["0001"])
    """The home's is that of a deployment of one shard"""
    leader: LeaderResponse | None = None
    """Who holds its lease; null when it was given back"""
    leading: bool = Field(examples=[False])
    """Whether the replica that answers leads it"""
    ready: bool = Field(examples=[True])
    """Whether this replica's mirror of it is complete and fresh"""
    unready_reason: str = Field(examples=[""])
    """Why it is not; empty where it is"""
    stream_lag_ms: int | None = Field(default=None, alias="stream_lag_ms", examples=[7])
    """Of its change stream, as above"""
    journal_seq: int | None = Field(default=None, examples=[421])
    """The newest entry of its journal that came by"""
    processors: int = Field(examples=[2])
    """Processors that serve it and live"""
    counts: dict[str, int] = Field(examples=[{"schedules": 3, "pending": 0, "dispatched": 1, "running": 2}])
    """Its live jobs by state, and schedules"""
    followers: list[str] = Field(default=[], examples=[["replica-1", "replica-4"]])
    """The names of the replicas that host it, those that have just begun among them"""
    followed: bool = Field(default=True, examples=[False])
    """Whether the replica that answers is one of them; else another one answered for it"""


class FindingsResponse(Part):
    """What the leader found broken."""

    at_ms: Instant = Field(examples=["2030-01-01T00:00:30.000Z"])
    """When the leader looked"""
    counts: dict[str, int] = Field(examples=[{}])
    """By kind; `hascheduler check` tells each, and what to do about it"""


class ClusterResponse(Part):
    """The deployment, as the replica that answers sees it."""

    replica_id: str = Field(examples=["replica-2.5f2c9a01"])
    """The replica that answers"""
    leading: bool = Field(examples=[True])
    """Whether it leads"""
    ready: bool = Field(examples=[True])
    """Whether its mirror is complete and fresh"""
    unready_reason: str = Field(examples=[""])
    """Why it is not ready; empty where it is"""
    leader: LeaderResponse | None = None
    """Who holds the lease; null when it was given back"""
    stream_lag_ms: int | None = Field(default=None, alias="stream_lag_ms", examples=[9])
    """Milliseconds that the last beat of the replica that answers took to come back through the change stream; null
    before one"""
    position: str = Field(examples=["1893456030.1"])
    """How far in the change stream this replica's mirror has come: cluster time, as `seconds.increment`"""
    digest: str = Field(examples=["8c1f0a6be2d94c37"])
    """Of this replica's mirror: equal digests at equal positions are equal mirrors"""
    journal_seq: int | None = Field(default=None, examples=[1187])
    """The newest entry that came by"""
    schema_: SchemaResponse = Field(alias="schema")
    """Which forms the stored documents have"""
    replicas: list[ReplicaResponse]
    """By id, also those that are silent until they are removed"""
    counts: dict[str, int] = Field(examples=[{"schedules": 12, "definitions": 3, "pending": 0, "running": 4}])
    """Live jobs by state, schedules, definitions"""
    paused: PauseResponse | None = Field(default=None, examples=[None])
    """Since when everything is paused, by whom and why; null where it is not"""
    findings: FindingsResponse | None = None
    """What the leader's last look through the database found broken; null where there was none yet"""
    mirrors_differ: list[str] = Field(examples=[[]])
    """Replicas whose mirrors differ from that of the one that answers, or did within a minute"""
    quarantine: list[QuarantinedResponse]
    """Documents that can't be read, the newest first; shown to tokens for all tenants"""
    shards: list[ShardResponse] = Field(default=[])
    """Of a deployment of several, the home first; the leader, the journal and the stream above are the home's, counts
    are of all. Empty where there is one"""


@router.get("")
async def get_cluster(services: Services, caller: Viewer) -> ClusterResponse:
    """Get the leader, the replicas and what is wrong, as the answering replica sees it now."""
    return show_cluster(services.view.cluster(), services.view.unready_reason, of_all=caller.only is None)


def show_cluster(cluster: Cluster, unready_reason: str, *, of_all: bool) -> ClusterResponse:
    """Return the cluster. Documents that can't be read are shown only to tokens ``of_all`` tenants."""
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
        schema_=SchemaResponse(version=cluster.schema_version, oldest_read=OLDEST_VERSION, newest_read=NEWEST_VERSION),
        replicas=[show_replica(replica, alive=replica.id not in cluster.silent) for replica in cluster.replicas],
        counts=dict(cluster.counts),
        paused=cluster.pause,
        findings=None if found is None else FindingsResponse(at_ms=found.at_ms, counts=dict(found.counts)),
        mirrors_differ=list(cluster.differing),
        quarantine=[
            QuarantinedResponse(collection=collection, id=id, reason=reason)
            for collection, id, reason in (cluster.quarantine if of_all else ())
        ],
    )


def _leader(lease: LeaseRecord | None) -> LeaderResponse | None:
    if lease is None or not lease.holder:
        return None
    return LeaderResponse(holder=lease.holder, term=lease.term, endpoint=lease.endpoint, since_ms=lease.acquired_at_ms)


class FailoversQuery(BaseModel):
    limit: int = Field(default=FAILOVERS_MAX, ge=1, le=FAILOVERS_MAX, description="How many, the latest first")


class FailoversResponse(BaseModel):
    items: list[Failover] = Field(description="The latest first")


@router.get("/failovers", responses=problem_responses(422))
async def list_failovers(
    query: Annotated[FailoversQuery, Query()], services: Services, caller: Viewer
) -> FailoversResponse:
    """List the latest changes of leadership of all shards, newest first."""
    failovers = await services.failovers.newest(services.work_terms.scheduler, query.limit)
    return FailoversResponse(items=[*failovers])


class PauseAllBody(Part):
    """Why and what."""

    because: Text = Field(examples=["the database of the invoices moves"])
    """Why, for all who wonder why nothing happens"""
    schedules_only: bool = Field(default=False, examples=[False])
    """No schedule fires, and jobs that wait are dispatched all the same"""


class PausedResponse(Part):
    """Whether everything is paused."""

    paused: PauseResponse | None = None
    """The pause of everything; null where there is none"""


@router.post("/pause", responses=problem_responses(409, 413, 422))
async def pause_all(
    body: Annotated[PauseAllBody, AS_REQUEST], services: Services, caller: AdminOfAll, note: Noted
) -> PausedResponse:
    """No schedule fires and no job is dispatched, by any leader, until it is resumed; what has been dispatched goes on.

    Said again, it is the same pause with another reason, author and extent.
    """
    note.target, note.because = EVERYTHING, body.because
    asked = StandingPause(id=EVERYTHING, since_ms=services.clock.wall_ms(), by=caller.name, **body.model_dump())
    return PausedResponse(paused=await store_pause(services.pauses, asked))


@router.post("/resume", responses=problem_responses(422))
async def resume_all(services: Services, caller: AdminOfAll, note: Noted) -> PausedResponse:
    """Resume everything.

    Times since the pause fire as each schedule's misfire policy allows, as after a time without a leader.
    """
    note.target = EVERYTHING
    await services.pauses.delete(EVERYTHING)
    return PausedResponse(paused=None)


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
    raise Conflict("it is being paused and resumed by others; try again")


MEDIA_TYPE = "application/x-ndjson"


class RecordingQuery(BaseModel):
    for_: Annotated[int, span(100, RECORDING_S_MAX * 1_000, of_query=True)] = Field(
        default="30s",  # a number would be documented as milliseconds, and sent as seconds
        validate_default=True,
        alias="for",
        description=f"How long; at most {RECORDING_S_MAX // 60} minutes",
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
    """Record the leader: a line with its policy, lines with all it knows, then a line for each of its steps."""
    caller.require_payloads()  # limits per key hold values of payloads
    holding_of(request.scope).hold_open("recordings")  # until the response has ended
    recording = services.view.record(query.for_)
    if recording is None:
        raise Conflict("only the leader can be recorded, and by a few at once; /v1/cluster says who leads")
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
