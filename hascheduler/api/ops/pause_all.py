"""``/v1/cluster/pause`` and ``…/resume``: everything stops and goes on, on all replicas; repeating either is harmless.

And how pauses are written, of everything and of processors (`hascheduler.api.ops.processors`).
"""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import AdminOfAll
from hascheduler.api.routing.revisions import TRIES_MAX
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.ports import ResourceStore
from hascheduler.schema.forms import Text
from hascheduler.schema.noun import AS_REQUEST, Part, read_document
from hascheduler.schema.pause import EVERYTHING, PauseResponse, StandingPause

router = APIRouter(prefix="/cluster", tags=["cluster"], route_class=JsonRoute)


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
    """Everything goes on. Of the nominal times since the pause, those fire that each schedule's misfire policy lets
    fire, as after a time without a leader."""
    note.target = EVERYTHING
    await services.pauses.delete(EVERYTHING)
    return PausedResponse(paused=None)


async def store_pause(store: ResourceStore[StandingPause], asked: StandingPause) -> StandingPause:
    """The pause as it is stored now: with its first ``since_ms``, and with its old reason where ``asked`` has none."""
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
