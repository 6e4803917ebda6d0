"""``/v1/work``: processors in any language take jobs over HTTP, with access to neither the broker nor the database.

::

    register ─► fetch ─► start ─► (the work itself) ─► finish        heartbeat, once an interval; a fetch that
                  ▲                                       │          waits is one too
                  └───────────────────────────────────────┘

A processor may send each request to another replica. As for all processors, the compare-and-set of each start and
finish keeps an attempt from running twice; HTTP adds nothing to that. Repeating a request is harmless: a second start
of an attempt returns the same job again, and the processor makes sure that it runs once.
"""

from collections.abc import Iterable
from http import HTTPStatus
from secrets import token_hex

from fastapi import APIRouter, Request

from hascheduler.api.admission.worker_registrations import demand_own, not_registered
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Worker
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.api.work.fetch import promised
from hascheduler.api.work.finish import finished
from hascheduler.api.work.schemas import (
    RUNNING_MAX,
    AttemptName,
    FetchBody,
    FetchResponse,
    FinishBody,
    FinishResponse,
    HeartbeatBody,
    HeldAttemptsResponse,
    RegisterBody,
    RegisteredResponse,
    StartBody,
    StartedResponse,
    show_started,
)
from hascheduler.errors import Conflict
from hascheduler.model.instants import WallMs
from hascheduler.model.processor import POLLING_PREFIX, ProcessorRef
from hascheduler.ports import StartedJob


class _WorkRoute(JsonRoute):
    """A heartbeat has a report, an object of two to four fields, for each attempt that its processor runs."""

    values_max = 8 * RUNNING_MAX


router = APIRouter(prefix="/work", tags=["work"], route_class=_WorkRoute)


@router.post("/processors", status_code=HTTPStatus.CREATED, responses=problem_responses(413, 422, 429))
async def register_processor(body: RegisterBody, services: Services, caller: Worker) -> RegisteredResponse:
    """Register; the id in the answer is to be named from then on, and is new each time. 429 where processors, slots or
    definitions enough are registered with tokens of that name."""
    terms = services.work_terms
    processor = ProcessorRef(
        id=f"{POLLING_PREFIX}{body.name}.{token_hex(4)}",
        name=body.name,
        shard=terms.shard,
        definitions=frozenset(body.definitions),
        slots=body.slots,
        beat=1,
        draining=False,
        parked=0,
        resources=body.offers(),
        registered_by=None if caller.id is None else caller.name,
    )
    services.registrations.demand_room(processor, terms)
    try:
        await services.work.register(processor)
    except BaseException:
        services.registrations.not_new(processor)
        raise
    return RegisteredResponse(
        processor=processor.id,
        heartbeat_interval=terms.heartbeat_interval_ms / 1_000,
        heartbeat_deadline=terms.heartbeat_deadline_ms / 1_000,
    )


@router.delete("/processors/{id}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404))
async def deregister_processor(id: str, services: Services, caller: Worker) -> None:
    """Leave. What it still holds goes to others at once; repeating it is harmless."""
    demand_own(id, caller, services.view)
    await services.work.deregister(id)


@router.post("/fetch", responses=problem_responses(404, 413, 422, 429))
async def fetch_work(body: FetchBody, services: Services, caller: Worker, request: Request) -> FetchResponse:
    """Wait for attempts that are promised to the processor, and show life meanwhile. One fetch at a time."""
    demand_own(body.processor, caller, services.view)
    attempts = await promised(body, request, services)
    standing = await _standing(body.processor, [one.key for one in body.running], services)
    return FetchResponse(attempts=_names(attempts), cancelled=standing.cancelled, revoked=standing.revoked)


@router.post("/start", responses=problem_responses(404, 409, 413, 422))
async def start_attempt(body: StartBody, services: Services, caller: Worker) -> StartedResponse:
    """Begin a promised attempt, and get the job with its payload; 409: it is not this processor's, or not any more."""
    demand_own(body.processor, caller, services.view)
    now = services.clock.wall_ms()
    started = await services.work.start(body.job, body.attempt, body.processor, now)
    if started is None:
        raise Conflict(f"attempt {body.attempt} of {body.job!r} is not this processor's, or not any more; leave it")
    return show_started(started, _timeout_ms(started, now))


@router.post("/heartbeat", responses=problem_responses(404, 413, 422))
async def beat(body: HeartbeatBody, services: Services, caller: Worker) -> HeldAttemptsResponse:
    """Show life and progress; the answer says which attempts are to stop."""
    demand_own(body.processor, caller, services.view)
    if not await services.work.touch(body.processor, draining=body.draining):
        raise not_registered(body.processor)
    now = services.clock.wall_ms()
    running = {one.key: one.progress(now) for one in body.running}
    reports = {key: progress for key, progress in running.items() if progress is not None}
    if reports:
        await services.work.report(body.processor, reports)
    return await _standing(body.processor, list(running), services)


@router.post("/finish", responses=problem_responses(404, 409, 413, 422))
async def finish_attempt(body: FinishBody, services: Services, caller: Worker) -> FinishResponse:
    """Tell how an attempt ended. A failed one is tried again as its definition says; repeating it is harmless."""
    demand_own(body.processor, caller, services.view)
    return await finished(body, services)


async def _standing(processor: str, running: list[tuple[str, int]], services: ApiServices) -> HeldAttemptsResponse:
    if not running:
        return HeldAttemptsResponse(cancelled=[], revoked=[])
    standing = await services.work.standing(processor, running)
    return HeldAttemptsResponse(cancelled=_names(sorted(standing.cancelled)), revoked=_names(sorted(standing.revoked)))


def _timeout_ms(started: StartedJob, now: WallMs) -> int | None:
    """The rest of the attempt's timeout or of the job's total timeout, whichever is shorter; None: no timeout."""
    rules = started.rules
    own_ms = None if rules.timeout_ms is None else started.started_at_ms + rules.timeout_ms
    ends_ms = [end_ms for end_ms in (own_ms, rules.end_of(started.first_started_at_ms)) if end_ms is not None]
    return max(min(ends_ms) - now, 0) if ends_ms else None


def _names(attempts: Iterable[tuple[str, int]]) -> list[AttemptName]:
    return [AttemptName(job=job, attempt=attempt) for job, attempt in attempts]
