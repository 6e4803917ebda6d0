"""``/v1/processors``: the registered ones, and the drained names, whose processors get no new jobs.

A drain applies to a *name*, which stays the same when the process starts again, and is stored: it outlives the
processor and the leader. The number of drains is bounded, and those of names that are gone are forgotten after a week.
"""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import AdminOfAll, ViewerOfAll
from hascheduler.api.ops.cluster import store_pause
from hascheduler.api.routing.queries import PathName
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput, NotFound
from hascheduler.model.values.fields import NAME_CHARACTERS_MAX
from hascheduler.model.values.instants import format_instant
from hascheduler.ports import Cluster
from hascheduler.schema.forms import Text
from hascheduler.schema.noun import AS_REQUEST, Part
from hascheduler.schema.pause import DRAIN_FORGOTTEN_AFTER_MS, DRAINS_MAX, DrainedResponse, StandingPause, drain_id

router = APIRouter(prefix="/processors", tags=["cluster"], route_class=JsonRoute)


class RestResponse(BaseModel):
    missed: int = Field(description="How many dispatched jobs in a row it did not start")
    until: str = Field(description="It gets no jobs until then, and afterwards one at a time until it starts one")


class ProcessorResponse(BaseModel):
    id: str = Field(description="Unique per process start")
    name: str = Field(description="The name; several processors may share it")
    shard: str = Field(description="The shard whose jobs it runs")
    definitions: list[str] = Field(description="The definitions it runs; `*`: all")
    slots: int = Field(description="How many jobs it runs at once")
    resources: dict[str, int] = Field(description="The resources that its jobs share besides the slots")
    occupied: int = Field(description="How many slots have a dispatched or running job")
    alive: bool = Field(description="True if its heartbeats still arrive")
    draining: bool = Field(description="True if it gets no new jobs: it is stopping, changing shards, or `drained`")
    drained: DrainedResponse | None = Field(
        default=None,
        description="Since when, by whom and why its name is drained; null if it is not. Done once `occupied` is 0",
    )
    parked: int = Field(description="How many messages it could not read")
    consuming: bool = Field(default=True, description="True if it receives messages; if not, it is `draining` too")
    rest: RestResponse | None = Field(
        default=None, description="Set if it did not start the last jobs that it got; otherwise null"
    )


class DrainedNameResponse(DrainedResponse):
    """A drained name."""

    name: str = Field(examples=["resizer-0"])
    """The name of the processors"""


class ProcessorsResponse(BaseModel):
    items: list[ProcessorResponse] = Field(
        description="All registered processors by id; silent ones too, until they are removed"
    )
    absent: list[DrainedNameResponse] = Field(
        default=[], description="Drained names that no processor has now; a new processor with such a name gets no jobs"
    )


class DrainBody(Part):
    """The reason of a drain."""

    because: Text | None = Field(default=None, examples=["its node is being replaced"])
    """The reason, for people; default: unchanged"""


class DrainResponse(Part):
    """The drain of the processors of a name."""

    name: str = Field(examples=["resizer-0"])
    """The name of the processors"""
    drained: DrainedResponse | None = None
    """Since when, by whom and why; null if they are not drained"""


@router.get("")
async def list_processors(services: Services, caller: ViewerOfAll) -> ProcessorsResponse:
    """List all registered processors by id, and the drained names that none of them has."""
    return show_processors(services.view.cluster())


def show_processors(cluster: Cluster) -> ProcessorsResponse:
    there = {processor.name for processor, _, _ in cluster.processors}
    return ProcessorsResponse(
        items=[
            ProcessorResponse(
                **{name: getattr(processor, name) for name in ("id", "name", "shard", "slots", "parked", "consuming")},
                definitions=sorted(processor.definitions),
                resources=dict(processor.resources),
                occupied=occupied,
                alive=alive,
                draining=processor.draining or processor.name in cluster.drains,
                drained=cluster.drains.get(processor.name),
                rest=rest and RestResponse(missed=rest.missed, until=format_instant(rest.until_ms)),
            )
            for processor, occupied, alive in cluster.processors
            for rest in (cluster.rests.get(processor.id),)
        ],
        absent=[
            DrainedNameResponse(name=name, since_ms=drain.since_ms, by=drain.by, because=drain.because)
            for name, drain in cluster.drains.items()
            if name not in there
        ],
    )


@router.post("/{name}/drain", responses=problem_responses(404, 409, 413, 422))
async def drain_processors(
    name: PathName,
    services: Services,
    caller: AdminOfAll,
    note: Noted,
    body: Annotated[DrainBody, AS_REQUEST] | None = None,
) -> DrainResponse:
    """Drain the processors of that name: they get no new jobs until they are undrained, also after a restart.

    Jobs they already have go on to their end. Repeating the request is harmless.
    """
    because = note.because = None if body is None else body.because
    there = _names_there(services)
    if len(name) > NAME_CHARACTERS_MAX:
        raise InvalidInput(("name",), f"{len(name)} characters", f"at most {NAME_CHARACTERS_MAX}")
    is_known = name in there or services.is_one_of_several
    if not is_known and await services.pauses.get(drain_id(name)) is None:
        raise NotFound("processor", name)
    await _make_room(name, services, there)
    asked = StandingPause(id=drain_id(name), rev=0, since_ms=services.clock.wall_ms(), by=caller.name, because=because)
    return DrainResponse(name=name, drained=await store_pause(services.pauses, asked))


@router.post("/{name}/undrain", responses=problem_responses(404, 422))
async def undrain_processors(name: PathName, services: Services, caller: AdminOfAll) -> DrainResponse:
    """Give jobs to the processors of that name again. Repeating the request is harmless."""
    if not await services.pauses.delete(drain_id(name)) and name not in _names_there(services):
        raise NotFound("processor", name)
    return DrainResponse(name=name, drained=None)


def _names_there(services: ApiServices) -> Collection[str]:
    return {processor.name for processor, _, _ in services.view.cluster().processors}


async def _make_room(name: str, services: ApiServices, there: Collection[str]) -> None:
    """Forget the drains of names that have long been gone; 409 if there are still too many."""
    drains: Mapping[str, StandingPause] = services.view.cluster().drains
    before_ms = services.clock.wall_ms() - DRAIN_FORGOTTEN_AFTER_MS
    forgotten = 0
    for other, drain in () if services.is_one_of_several else drains.items():  # that processor may be in another shard
        if other != name and other not in there and drain.since_ms < before_ms:
            forgotten += await services.pauses.delete(drain.id, drain.rev)
    if name not in drains and len(drains) - forgotten >= DRAINS_MAX:
        raise Conflict(f"{DRAINS_MAX} names are drained already; undrain unused ones, see GET /v1/processors")
