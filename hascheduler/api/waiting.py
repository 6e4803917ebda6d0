"""``?wait=``: a submit that is answered when its job has ended, at any replica.

This replica's stream shows the end; in case it does not, the database is read every five seconds. If the client
disconnects, the job goes on, unless ``cancel_on_disconnect`` was set. If the caller's share of the waits is used up,
the answer comes at once, as if the time were over.
"""

import asyncio
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.listeners import Ending, listening
from hascheduler.api.long_requests import WAIT_S_MAX
from hascheduler.api.pools import held_open, take
from hascheduler.api.services import ApiServices
from hascheduler.api.shares import Refused
from hascheduler.api.texts import QueryDurationMs
from hascheduler.model.job import TERMINAL
from hascheduler.ports import StoredDocument

_LOOK_AGAIN_S = 5.0


class WaitQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    wait: Annotated[QueryDurationMs, Field(ge=0, le=WAIT_S_MAX * 1_000)] | None = Field(
        default=None,
        description=f"Answer when the job has ended, or after so long; at most {WAIT_S_MAX // 60} minutes. Who waits "
        "for as many as their share is at this replica is answered 202 at once",
        examples=["30s"],
    )
    cancel_on_disconnect: bool = Field(default=False, description="Cancel the job if you leave before it has ended")


Waiting = Annotated[WaitQuery, Query()]


async def end_of(job_id: str, wait_ms: int, request: Request, services: ApiServices) -> StoredDocument | None:
    """The job when it has ended, or as it stands when the time is over or this replica stops.

    None if there is no such job, or the caller's share of the waits is used up. `Left` if the client disconnects.
    """
    slot = take(services.pools.waits, request.scope)
    if isinstance(slot, Refused):
        return None
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_ms / 1_000
    with held_open(slot, request.scope):
        return await _end_of(job_id, until, request, services)


async def _end_of(job_id: str, until: float, request: Request, services: ApiServices) -> StoredDocument | None:
    loop = asyncio.get_running_loop()
    async with listening(request) as client:
        with services.view.ended(job_id) as bell:
            while True:
                document = await services.jobs.get(job_id)
                left_s = until - loop.time()
                if document is None or document.get("state") in TERMINAL or left_s <= 0:
                    return document
                try:
                    await client.rung(bell, min(left_s, _LOOK_AGAIN_S))
                except Ending:
                    return document
