"""``/v1/cluster/pause`` and ``…/resume``: everything stops and goes on, on all replicas; repeating either is harmless.

And how pauses are written, of everything and of processors (`hascheduler.api.ops.processors`).
"""

from dataclasses import replace

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import AdminOfAll
from hascheduler.api.routing.revisions import TRIES_MAX
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.pause import decode_pause
from hascheduler.model.pause import EVERYTHING, StandingPause
from hascheduler.model.values.instants import LATEST_MS
from hascheduler.ports import ResourceStore
from hascheduler.schema.forms import instant_text
from hascheduler.wire.fields import StrictModel, Text

router = APIRouter(prefix="/cluster", tags=["cluster"], route_class=JsonRoute)

_SHOWN: JsonDict = {
    "since": "2030-01-01T00:00:00.000Z",
    "by": "deployer",
    "because": "the database of the invoices moves",
    "schedules_only": False,
}


class PauseAllBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"because": "the database of the invoices moves"}]})

    because: Text = Field(description="Why, for all who wonder why nothing happens")
    schedules_only: bool = Field(
        default=False, description="No schedule fires, and jobs that wait are dispatched all the same"
    )


class PauseResponse(BaseModel):
    since: str = Field(description="When it began")
    by: str = Field(description="The name of the token that asked for it; `anonymous` without one")
    because: str | None = Field(description="Why, as they said")
    schedules_only: bool = Field(description="Only schedules are paused; jobs that wait are dispatched")


class PausedResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"paused": _SHOWN}]})

    paused: PauseResponse | None = Field(description="The pause of everything; null where there is none")


@router.post("/pause", responses=problem_responses(409, 413, 422))
async def pause_all(body: PauseAllBody, services: Services, caller: AdminOfAll, note: Noted) -> PausedResponse:
    """No schedule fires and no job is dispatched, by any leader, until it is resumed; what has been dispatched goes on.

    Said again, it is the same pause with another reason, author and extent.
    """
    note.target, note.because = EVERYTHING, body.because
    asked = StandingPause(EVERYTHING, 0, services.clock.wall_ms(), caller.name, body.because, body.schedules_only)
    return PausedResponse(paused=show_pause(await store_pause(services.pauses, asked)))


@router.post("/resume", responses=problem_responses(422))
async def resume_all(services: Services, caller: AdminOfAll, note: Noted) -> PausedResponse:
    """Everything goes on. Of the nominal times since the pause, those fire that each schedule's misfire policy lets
    fire, as after a time without a leader."""
    note.target = EVERYTHING
    await services.pauses.delete(EVERYTHING)
    return PausedResponse(paused=None)


def show_pause(pause: StandingPause) -> PauseResponse:
    return PauseResponse(
        since=since_text(pause), by=pause.by, because=pause.because, schedules_only=pause.schedules_only
    )


def since_text(pause: StandingPause) -> str:
    return instant_text(min(pause.since_ms, LATEST_MS))


async def store_pause(store: ResourceStore[StandingPause], asked: StandingPause) -> StandingPause:
    """The pause as it is stored now: with its first ``since_ms``, and with its old reason where ``asked`` has none."""
    for _ in range(TRIES_MAX):
        stored = await store.get(asked.id)
        if stored is None:
            written = await store.create(asked)
        else:
            try:
                known = decode_pause(stored["_id"], stored)
            except InvalidInput:  # it pauses nothing
                await store.delete(asked.id)
                continue
            because = known.because if asked.because is None else asked.because
            written = await store.replace(replace(asked, since_ms=known.since_ms, because=because), known.rev)
        if written is not None:
            return decode_pause(written["_id"], written)
    raise Conflict("it is being paused and resumed by others; try again")
