"""The long poll of a processor: held open until this replica's stream shows attempts that are promised to it.

The stream wakes the waiting request; in case it does not, the mirror is read every second. While the client is
connected, the replica writes one heartbeat of its processor each heartbeat interval; once it has left, none.
"""

import asyncio
from collections.abc import Sequence

from fastapi import Request

from hascheduler.api.admission.worker_registrations import not_registered
from hascheduler.api.middleware.pools import held_open, taken
from hascheduler.api.routing.long_poll import ClientGone, ReplicaStopping, waiting_client
from hascheduler.api.services import ApiServices
from hascheduler.api.work.schemas import FetchBody

_LOOK_AGAIN_S = 1.0
_SOON_S = 0.02
"""The stream wakes the request when it feeds the mirror, and the core may have to step first."""


async def promised(body: FetchBody, request: Request, services: ApiServices) -> Sequence[tuple[str, int]]:
    """At most ``body.limit`` attempts; none when the time is over.

    404 if the processor is not registered; 429 or 503 if too many fetches wait.
    """
    slot = taken(services.pools.fetches, request.scope)
    with held_open(slot, request.scope):
        return await _promised(body, request, services)


async def _promised(body: FetchBody, request: Request, services: ApiServices) -> Sequence[tuple[str, int]]:
    held = {one.key for one in body.running}
    clock = asyncio.get_running_loop().time
    until = clock() + body.wait / 1_000
    interval_s = services.work_terms.heartbeat_interval_ms / 1_000
    beat_at = clock()
    look_s = _LOOK_AGAIN_S
    async with waiting_client(request) as client:
        with services.view.promises(body.processor) as bell:
            while True:
                if clock() >= beat_at:
                    beat_at = clock() + interval_s
                    if not await services.work.touch(body.processor):
                        raise not_registered(body.processor)
                found = [key for key in services.view.promised(body.processor) if key not in held]
                now = clock()
                if found or now >= until:
                    return found[: body.limit]
                try:
                    rang = await client.rung(bell, max(min(until - now, beat_at - now, look_s), 0))
                except (ClientGone, ReplicaStopping):
                    return []
                look_s = _SOON_S if rang else _LOOK_AGAIN_S
