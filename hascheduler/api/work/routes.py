"""``/v1/work``: processors in any language take jobs over HTTP, with access to neither the broker nor the database.

::

    register ─► fetch ─► start ─► (the work itself) ─► finish        heartbeat, once an interval; a fetch that
                  ▲                                       │          waits is one too
                  └───────────────────────────────────────┘

A processor may send each request to another replica. As for all processors, the compare-and-set of each start and
finish keeps an attempt from running twice. HTTP adds nothing to that. Repeating a request is harmless: a second start
of an attempt returns the same job again, and the processor makes sure that it runs once.

If there are several shards, a processor works for one, which it gets when it registers.

A fetch is a long poll. This replica's stream wakes it when it shows attempts that are promised to the processor; in
case it does not, the mirror is polled every second. While the client is connected, the replica writes one heartbeat of
the processor each heartbeat interval, and none once it has left. A finished attempt is stored by the same rules as for
all processors: the job and its definition decide when a failed one is retried.
"""

import asyncio
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from secrets import token_hex
from typing import Annotated

from fastapi import APIRouter, Path, Request

from hascheduler.api.admission.worker_registrations import not_registered, require_own_processor
from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.dependencies import definitions_of
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Worker
from hascheduler.api.routing.long_poll import ClientGone, ReplicaStopping, notified
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.api.work.schemas import (
    WORK_VALUES_MAX,
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
from hascheduler.dispatch.settlements import has_attempt_record
from hascheduler.errors import Conflict
from hascheduler.model.job import JobState
from hascheduler.model.processor import POLLING_PREFIX, ProcessorRef, with_shard
from hascheduler.model.values.fields import instant_or_none
from hascheduler.model.values.instants import WallMs
from hascheduler.model.values.redaction import kept_traceback
from hascheduler.ports import AttemptOutcome, FinishAnswer, StartedJob, StoredDocument
from hascheduler.schema.definition import Definition, time_over
from hascheduler.schema.noun import AS_REQUEST

_POLL_S = 1.0
_SOON_S = 0.02
"""The stream wakes a fetch as soon as the mirror is updated, perhaps before the core's step: poll again soon."""


class _WorkRoute(JsonRoute):
    values_max = WORK_VALUES_MAX


router = APIRouter(prefix="/work", tags=["work"], route_class=_WorkRoute)


@router.post("/processors", status_code=HTTPStatus.CREATED, responses=problem_responses(413, 422, 429))
async def register_processor(
    body: Annotated[RegisterBody, AS_REQUEST], services: Services, caller: Worker, note: Noted
) -> RegisteredResponse:
    """Register a processor. Use the id in the response in all other requests; it is new each time.

    429 if tokens of that name have reached their limit of processors, slots or definitions.
    """
    terms, id = services.work_terms, f"{POLLING_PREFIX}{body.name}.{token_hex(4)}"
    registered_by = None if caller.id is None else caller.name
    processor = ProcessorRef(
        id=with_shard(id, terms.scheduler) if services.is_one_of_several else id,
        name=body.name,
        shard=terms.scheduler,
        definitions=frozenset(body.definitions),
        slots=body.slots,
        beat=1,
        draining=False,
        parked=0,
        resources=body.resources,
        registered_by=registered_by,
    )
    services.registrations.require_room(processor, terms)
    note.location = f"/v1/work/processors/{id}"
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
async def deregister_processor(
    id: Annotated[str, Path(description="The id from its registration")],
    services: Services,
    caller: Worker,
) -> None:
    """Deregister a processor. Its attempts go to others at once. The request may be repeated."""
    require_own_processor(id, caller, services.view)
    await services.work.deregister(id)


@router.post("/fetch", responses=problem_responses(404, 413, 422, 429))
async def fetch_work(
    body: Annotated[FetchBody, AS_REQUEST], services: Services, caller: Worker, request: Request
) -> FetchResponse:
    """Wait for attempts dispatched to the processor; the wait also counts as a heartbeat. One fetch at a time.

    404 `not-registered`: register again and use the new id.
    """
    require_own_processor(body.processor, caller, services.view)
    with holding_of(request.scope).hold_open("fetches"):
        attempts = await _promised(body, request, services)
    held = await _held_attempts(body.processor, [one.key for one in body.running], services)
    return FetchResponse(attempts=_names(attempts), cancelled=held.cancelled, revoked=held.revoked)


@router.post("/start", responses=problem_responses(404, 409, 413, 422))
async def start_attempt(body: Annotated[StartBody, AS_REQUEST], services: Services, caller: Worker) -> StartedResponse:
    """Start a dispatched attempt and get the job with its payload. 409: this processor does not hold the attempt."""
    require_own_processor(body.processor, caller, services.view)
    now = services.clock.wall_ms()
    started = await services.work.start(body.job, body.attempt, body.processor, now)
    if started is None:
        raise Conflict(f"attempt {body.attempt} of {body.job!r} is not held by this processor; drop it")
    return show_started(started, _timeout_ms(started, now))


@router.post("/heartbeat", responses=problem_responses(404, 413, 422))
async def beat(body: Annotated[HeartbeatBody, AS_REQUEST], services: Services, caller: Worker) -> HeldAttemptsResponse:
    """Send a heartbeat with progress. The response lists the attempts to stop."""
    require_own_processor(body.processor, caller, services.view)
    if not await services.work.touch(body.processor, draining=body.draining):
        raise not_registered(body.processor)
    now = services.clock.wall_ms()
    running = {one.key: one.progress(now) for one in body.running}
    reports = {key: progress for key, progress in running.items() if progress is not None}
    if reports:
        await services.work.report(body.processor, reports)
    return await _held_attempts(body.processor, list(running), services)


@router.post("/finish", responses=problem_responses(404, 409, 413, 422))
async def finish_attempt(body: Annotated[FinishBody, AS_REQUEST], services: Services, caller: Worker) -> FinishResponse:
    """Report the outcome of an attempt. A failed one is retried by its definition. The request may be repeated.

    A success after the attempt's timeout is `late`: the attempt has failed.
    """
    require_own_processor(body.processor, caller, services.view)
    return await _finish(body, services)


async def _promised(body: FetchBody, request: Request, services: ApiServices) -> Sequence[tuple[str, int]]:
    """Return at most ``body.limit`` attempts, none at the timeout; 404 if the processor is not registered."""
    held = {one.key for one in body.running}
    clock = asyncio.get_running_loop().time
    until = clock() + body.wait_ms / 1_000
    interval_s = services.work_terms.heartbeat_interval_ms / 1_000
    beat_at = clock()
    poll_s = _POLL_S
    with services.view.dispatch_waiter(body.processor) as wakeup:
        while True:
            if clock() >= beat_at:
                beat_at = clock() + interval_s
                if not await services.work.touch(body.processor):
                    raise not_registered(body.processor)
            found = [key for key in services.view.dispatched_attempts(body.processor) if key not in held]
            now = clock()
            if found or now >= until:
                return found[: body.limit]
            try:
                woken = await notified(wakeup, request.receive, max(min(until - now, beat_at - now, poll_s), 0))
            except (ClientGone, ReplicaStopping):
                return []
            poll_s = _SOON_S if woken else _POLL_S


async def _held_attempts(processor: str, running: list[tuple[str, int]], services: ApiServices) -> HeldAttemptsResponse:
    """Return which of the ``running`` attempts the processor must stop."""
    if not running:
        return HeldAttemptsResponse(cancelled=[], revoked=[])
    requests = await services.work.stop_requests(processor, running)
    return HeldAttemptsResponse(cancelled=_names(sorted(requests.cancelled)), revoked=_names(sorted(requests.revoked)))


def _timeout_ms(started: StartedJob, now: WallMs) -> int | None:
    """Return the rest of the attempt's or of the job's total timeout, whichever is shorter; None if it has neither."""
    over = time_over(
        started.rules,
        started.started_at_ms,
        started.first_started_at_ms,
        failures=started.failures,
        losses=started.losses,
    )
    return None if over is None else max(over.at_ms - now, 0)


def _names(attempts: Iterable[tuple[str, int]]) -> list[AttemptName]:
    return [AttemptName(job=job, attempt=attempt) for job, attempt in attempts]


async def _finish(body: FinishBody, services: ApiServices) -> FinishResponse:
    """Store the outcome of an attempt; raise `Conflict` if it was cancelled without a request to cancel."""
    now, error = services.clock.wall_ms(), body.error_text()
    if body.outcome == "given_back":
        ours = await services.work.give_back(body.job, body.attempt, body.processor, error or "given back", now)
        return FinishResponse(answer=FinishAnswer.DONE if ours else FinishAnswer.LATE, retry_at_ms=None)
    stored = await services.jobs.get(body.job)
    job = stored if stored is not None and _is_held(stored, body) else None  # None if too late, or finished already
    match body.outcome:
        case "succeeded":
            if job is None and stored is not None and _has_ended_otherwise(stored, body):
                return FinishResponse(answer=FinishAnswer.LATE, retry_at_ms=None)
            late = None if job is None else await _outcome_if_late(job, body, now, services)
            if late is not None:
                kept = await _store(body, late, now, services)
                return FinishResponse(answer=FinishAnswer.LATE, retry_at_ms=kept.retry_at_ms)
            outcome = AttemptOutcome(JobState.SUCCEEDED, result=body.result)
        case "cancelled":
            if job is not None and job.get("cancel_requested_at_ms") is None:
                raise Conflict(f"{body.job!r} has no cancel request; finish it as failed, or give it back")
            outcome = AttemptOutcome(JobState.CANCELLED, error=error)
        case _:  # the attempt failed
            retry_at_ms = None
            if body.retryable and job is not None:
                retry_at_ms = _next_try_ms(job, await _rules(job, services), body, now)
            traceback = kept_traceback(body.traceback)
            outcome = AttemptOutcome(JobState.FAILED, error=error, retry_at_ms=retry_at_ms, traceback=traceback)
    return await _store(body, outcome, now, services)


def _is_held(job: StoredDocument, body: FinishBody) -> bool:
    """Return True if this attempt of the job runs at this processor."""
    held = (JobState.RUNNING, body.attempt, body.processor)
    return (job.get("state"), job.get("attempt"), job.get("processor")) == held


def _has_ended_otherwise(job: StoredDocument, body: FinishBody) -> bool:
    """Return True if this repeats a success that was late."""
    return any(
        has_attempt_record(job, number=body.attempt, processor=body.processor, outcome=end.value)
        for end in (JobState.FAILED, JobState.CANCELLED)
    )


async def _outcome_if_late(
    job: StoredDocument, body: FinishBody, now: WallMs, services: ApiServices
) -> AttemptOutcome | None:
    """Return how an attempt that succeeds after its time has ended, as for all processors; None if it is in time."""
    rules = await _rules(job, services)
    failures, losses = job.get("failures") or 0, job.get("losses") or 0
    over = time_over(
        rules, job.get("started_at_ms") or now, job.get("first_started_at_ms"), failures=failures, losses=losses
    )
    if over is None or now < over.at_ms:
        return None
    if job.get("cancel_requested_at_ms") is not None:
        return AttemptOutcome(JobState.CANCELLED)
    retry_at_ms = None if over.final else _next_try_ms(job, rules, body, now)
    return AttemptOutcome(JobState.FAILED, error=over.error, retry_at_ms=retry_at_ms)


async def _store(body: FinishBody, outcome: AttemptOutcome, now: WallMs, services: ApiServices) -> FinishResponse:
    answer = await services.work.finish(body.job, body.attempt, body.processor, outcome, now)
    retry_at_ms = None
    if answer is FinishAnswer.DONE and outcome.state is JobState.FAILED and body.retryable:
        # Read it back: this may repeat an earlier finish, and the job may have been cancelled since.
        job = await services.jobs.get(body.job)
        if job is not None and job.get("state") == JobState.PENDING and job.get("attempt") == body.attempt:
            retry_at_ms = instant_or_none(job, "retry_at_ms")
    return FinishResponse(answer=answer, retry_at_ms=retry_at_ms)


def _next_try_ms(job: StoredDocument, rules: Definition, body: FinishBody, now: WallMs) -> WallMs | None:
    end_ms = rules.end_of(job.get("first_started_at_ms"))
    failures, losses = (job.get("failures") or 0) + 1, job.get("losses") or 0
    return rules.retry.retry_at_ms(body.job, failures, now, end_ms, body.retry_after, losses=losses)


async def _rules(job: StoredDocument, services: ApiServices) -> Definition:
    """Return the job's definition; the defaults if there is none, or it can't be read."""
    name = str(job.get("definition"))
    return (await definitions_of([name], services)).get(name) or Definition(name=name)
