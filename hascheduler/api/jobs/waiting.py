"""Holds a request open until a job has ended, for ``?wait=``.

This replica's stream shows the end of the job. In case it does not, the database is polled every five seconds.
"""

import asyncio
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.limits import NoRoom, holding_of
from hascheduler.api.middleware.overload import WAIT_S_MAX
from hascheduler.api.routing.long_poll import ClientGone, ReplicaStopping, notified
from hascheduler.api.services import ApiServices
from hascheduler.model.job import TERMINAL
from hascheduler.ports import StoredDocument
from hascheduler.schema.forms import span

_POLL_S = 5.0


class WaitForJobQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    wait: Annotated[int, span(0, WAIT_S_MAX * 1_000, of_query=True)] | None = Field(
        default=None,
        description=f"How long to wait for the end of the job before responding; at most {WAIT_S_MAX // 60} minutes. "
        "A caller that has used up its share of the waits gets its response at once",
        examples=["30s"],
    )


class Unwanted(ClientGone):
    """The client is gone and no other request wants the job: it may be cancelled."""


async def end_of(
    job_id: str, wait_ms: int, request: Request, services: ApiServices, *, made: bool = False, cancels: bool = False
) -> StoredDocument | None:
    """Return the job when it has ended, or as it stands if the wait times out or this replica stops.

    None if there is no such job, or the caller's share of the waits is used up. `ClientGone` if the client disconnects,
    and `Unwanted` by the rule of `SharedWaits`, which takes ``made`` and ``cancels``.
    """
    services.waits.join(job_id, made=made, cancels=cancels)
    is_gone = is_unwanted = False
    try:
        return await _end_of(job_id, wait_ms, request, services)
    except ClientGone:
        is_gone = True
    finally:
        is_unwanted = services.waits.leave(job_id, disconnected=is_gone)
    raise Unwanted if is_unwanted else ClientGone


async def _end_of(job_id: str, wait_ms: int, request: Request, services: ApiServices) -> StoredDocument | None:
    clock = asyncio.get_running_loop().time
    until = clock() + wait_ms / 1_000
    try:
        slot = holding_of(request.scope).hold_open("waits")
    except NoRoom:
        return None
    with slot, services.view.job_end_waiter(job_id) as wakeup:
        while True:
            document = await services.jobs.get(job_id)
            left_s = until - clock()
            if document is None or document.get("state") in TERMINAL or left_s <= 0:
                return document
            try:
                await notified(wakeup, request.receive, min(left_s, _POLL_S))
            except ReplicaStopping:
                return document
