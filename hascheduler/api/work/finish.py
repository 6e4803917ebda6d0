"""Ends an attempt that a processor finished over HTTP, by the same rules as for all processors."""

from hascheduler.api.routing.wire_format import instant_or_none
from hascheduler.api.services import ApiServices
from hascheduler.api.work.schemas import FinishBody, FinishResponse
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.definition import Definition
from hascheduler.model.documents.definition import decode_definition
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome, FinishAnswer, StoredDocument


async def finished(body: FinishBody, services: ApiServices) -> FinishResponse:
    """Store the outcome of an attempt; `Conflict` for outcome ``cancelled`` if no cancellation was requested."""
    now = services.clock.wall_ms()
    error = body.error_text()
    match body.outcome:
        case "succeeded":
            return await _store(body, AttemptOutcome(JobState.SUCCEEDED, result=body.result), now, services)
        case "cancelled":
            job = await _held(body, services)
            if job is not None and job.get("cancel_requested_at_ms") is None:
                raise Conflict(f"nobody asked for {body.job!r} to be cancelled; finish it as failed, or give it back")
            return await _store(body, AttemptOutcome(JobState.CANCELLED, error=error), now, services)
        case "given_back":
            reason = error or "given back"
            ours = await services.work.give_back(body.job, body.attempt, body.processor, reason, now)
            return FinishResponse(answer=FinishAnswer.DONE if ours else FinishAnswer.LATE, retry_at=None)
        case "failed":
            retry_at_ms = await _retry_at_ms(body, now, services) if body.retryable else None
            return await _store(
                body, AttemptOutcome(JobState.FAILED, error=error, retry_at_ms=retry_at_ms), now, services
            )


async def _store(body: FinishBody, outcome: AttemptOutcome, now: WallMs, services: ApiServices) -> FinishResponse:
    answer = await services.work.finish(body.job, body.attempt, body.processor, outcome, now)
    retry_at = None
    if answer is FinishAnswer.DONE and outcome.state is JobState.FAILED and body.retryable:
        # Read back: this may repeat an earlier finish, and the job may be cancelled since.
        job = await services.jobs.get(body.job)
        if job is not None and job.get("state") == JobState.PENDING and job.get("attempt") == body.attempt:
            retry_at = instant_or_none(job, "retry_at_ms")
    return FinishResponse(answer=answer, retry_at=retry_at)


async def _retry_at_ms(body: FinishBody, now: WallMs, services: ApiServices) -> WallMs | None:
    job = await _held(body, services)
    if job is None:
        return None  # too late, or finished already: this changes nothing
    rules = await _rules(str(job.get("definition")), services)
    end_ms = rules.end_of(job.get("first_started_at_ms"))
    return rules.retry.retry_at_ms(body.job, (job.get("failures") or 0) + 1, now, end_ms, body.retry_after)


async def _held(body: FinishBody, services: ApiServices) -> StoredDocument | None:
    """The job, if this attempt of it runs at this processor."""
    job = await services.jobs.get(body.job)
    if job is None or job.get("state") != JobState.RUNNING:
        return None
    return job if (job.get("attempt"), job.get("processor")) == (body.attempt, body.processor) else None


async def _rules(name: str, services: ApiServices) -> Definition:
    """The definition; the defaults if there is none, or it can't be read."""
    document = await services.definitions.get(name)
    try:
        return Definition(name) if document is None else decode_definition(name, document)
    except InvalidInput:
        return Definition(name)
