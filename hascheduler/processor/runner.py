"""Run one attempt, from its message to its end.

The order of effects is the protocol: wait for a slot → start (compare-and-set) → acknowledge → handler → finish or give
back (compare-and-set) → forget.
"""

import asyncio
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import structlog
from structlog.contextvars import bind_contextvars

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.job import JobState
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import format_instant
from hascheduler.ports import AttemptOutcome, Clock, Delivery, FinishAnswer, HandlerProgress, StartedJob, WorkStore
from hascheduler.processor.attempts import Acknowledgements, HeldAttempt, HeldAttempts, Phase, ProcessSlots, StopReason
from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.handlers import Handlers, JobContext
from hascheduler.processor.heartbeat import SelfFence
from hascheduler.processor.invocation import Drop, End, GiveBack, TimeLimit, end_of, invoke, unfinished
from hascheduler.processor.outcomes import (
    Failure,
    checked_percent,
    error_text,
    loss_of,
    outcome_of,
    shown_text,
    until_answered,
    with_cause,
)
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.tracing import (
    JOB_ATTEMPT,
    JOB_DEFINITION,
    JOB_ID,
    JOB_SCHEDULE,
    OUTCOME,
    PROCESSOR,
    Attribute,
    Span,
    SpanKind,
    Tracer,
    traced,
)

log = structlog.get_logger(__name__)

_OF_ATTEMPT = (
    "id", "attempt", "definition", "target", "payload", "tenant", "labels", "schedule", "nominal_ms", "submitted_at_ms",
)  # fmt: skip
"""What a handler sees of a `StartedJob`."""


@dataclass(kw_only=True)
class Runner:
    """Runs attempts, each in one of the ``slots``."""

    handlers: Handlers
    work: WorkStore
    clock: Clock
    config: ProcessorConfig
    attempts: HeldAttempts
    fence: SelfFence
    receipts: Acknowledgements
    slots: ProcessSlots
    handler_loop: HandlerLoop | None
    tracer: Tracer
    metrics: ProcessorMetrics

    async def run(self, attempt: HeldAttempt, delivery: Delivery) -> None:
        """Run the attempt; raise nothing but a cancellation: the failure of one attempt is its own."""
        job_id, number = attempt.key
        # The task is the attempt's own: the fields are on all its log lines, its handler's included, and on no others.
        bind_contextvars(job=job_id, attempt=number)
        try:
            # The leader counts on a free slot, so one is free or about to be. If not, it should dispatch elsewhere.
            if await attempt.wait_for(self._slot, self.config.slot_limit_ms / 1000):
                attempt.has_slot = True
                try:
                    await self._carry_out(attempt, delivery)
                finally:
                    self._free_slot(attempt)
            else:
                reason = "the processor is draining" if attempt.stop_reason is not None else "no slot became free"
                await self._settle(attempt, GiveBack(reason))
                await self.receipts.acknowledge(delivery)
        except Exception:  # a defect, of this code or of a document: this attempt must not take the others along
            log.exception("attempt_crashed", job=attempt.key[0], attempt=attempt.key[1])
        finally:
            self.attempts.forget(attempt)

    async def _slot(self) -> None:
        await self.fence.wait_until_open()
        await self.slots.acquire()

    def _free_slot(self, attempt: HeldAttempt) -> None:
        if attempt.has_slot:
            attempt.has_slot = False
            self.slots.release()

    async def _carry_out(self, attempt: HeldAttempt, delivery: Delivery) -> None:
        attempt.phase = Phase.STARTING
        try:
            started = await self._start(attempt)
        except InvalidInput as error:
            attempt.phase = Phase.SETTLING
            self.metrics.ended(attempt.definition, "unreadable")
            await self.receipts.park(delivery, str(error))
            return
        except WorldError:
            # It may have started, but nothing will run it.
            await self.receipts.acknowledge(delivery)
            await self._settle(attempt, GiveBack("unknown whether it started"))
            return
        except Exception as error:  # a document that can't be read: given back, it would come again for ever
            log.exception("attempt_crashed", job=attempt.key[0], attempt=attempt.key[1])
            await self.receipts.acknowledge(delivery)
            await self._settle(attempt, AttemptOutcome(JobState.FAILED, error=error_text(error)))
            return
        await self.receipts.acknowledge(delivery)
        if started is None:
            log.debug("attempt_not_owned", job=attempt.key[0], attempt=attempt.key[1])
            self.metrics.ended(attempt.definition, "lost_race")
            return
        attempt.definition = started.definition
        with attempt_span(self.tracer, delivery, started, self.config.id) as span:
            end = explained(await self._execute(attempt, started), attempt)
            record_end(span, end)
            if isinstance(end, Failure):
                if end.traceback is None:
                    log.warning("attempt_failed", definition=started.definition, error=end.error)
                else:
                    log.warning("handler_raised", definition=started.definition, exception=end.traceback)
                end = outcome_of(end, started, self.clock.wall_ms())
            elif isinstance(end, GiveBack) and end.lost:
                end = loss_of(end.reason, started) or end
            await self._settle(attempt, end)

    async def _start(self, attempt: HeldAttempt) -> StartedJob | None:
        job_id, number = attempt.key
        at_ms = self.clock.wall_ms()
        return await until_answered(
            lambda: self.work.start(job_id, number, self.config.id, at_ms), "start", retry_while=self.fence.check
        )

    async def _execute(self, attempt: HeldAttempt, started: StartedJob) -> End:
        limit = TimeLimit.of(started, self.clock.wall_ms())
        handler = self.handlers.find(started.definition)
        if handler is None:
            log.error("handler_missing", job=started.id, definition=started.definition)
            return GiveBack(f"this processor has no handler for {started.definition!r}")
        attempt.phase = Phase.RUNNING
        self.fence.check()
        reason = attempt.stop_reason or (None if self.fence.trusted else StopReason.FENCED)
        if reason is not None:
            end = unfinished(reason, limit.failure)
            return GiveBack(end.reason) if isinstance(end, GiveBack) else end  # it never ran, so it is not a loss
        log.debug("attempt_started", job=started.id, attempt=started.attempt, definition=started.definition)
        context = self._context(attempt, started, limit)
        task = asyncio.create_task(invoke(handler, context, attempt, self.handler_loop), name=f"handler {started.id}")
        began_ms = self.clock.mono_ms()
        with limit.watched(attempt), self.metrics.handling(started.definition):
            has_ended = await attempt.wait_for_handler(task)
        attempt.handled_for_ms = self.clock.mono_ms() - began_ms
        self.fence.check()
        if not has_ended:
            log.error("handler_abandoned", job=started.id, attempt=started.attempt, definition=started.definition)
            return unfinished(attempt.abandon_reason, limit.failure)
        return end_of(task, attempt.stop_reason, limit.failure, late=attempt.timed_out)

    async def _settle(self, attempt: HeldAttempt, end: AttemptOutcome | GiveBack | Drop) -> None:
        """Write how it ended, however long that takes: until then the attempt is held.

        Its slot is free before: one database that does not answer must not delay the jobs of another one. The leader
        counts the slot as taken until it has read the end.
        """
        attempt.phase = Phase.SETTLING
        self._free_slot(attempt)
        match end:
            case AttemptOutcome():
                try:
                    await self._finish(attempt, end)
                except InvalidInput as error:
                    await self._finish(attempt, AttemptOutcome(JobState.FAILED, error=error_text(error)))
            case GiveBack(reason, lost):
                await self._give_back(attempt, reason, lost=lost)
            case Drop():
                log.info("attempt_revoked", job=attempt.key[0], attempt=attempt.key[1])
                self.metrics.ended(attempt.definition, "revoked")

    async def _finish(self, attempt: HeldAttempt, outcome: AttemptOutcome) -> None:
        job_id, number = attempt.key
        at_ms = self.clock.wall_ms()
        answer = await until_answered(
            lambda: self.work.finish(job_id, number, self.config.id, outcome, at_ms), "finish"
        )
        is_late = answer is FinishAnswer.LATE
        self.metrics.ended(attempt.definition, "late" if is_late else outcome.attempt_end)
        line: dict[str, object] = {"definition": attempt.definition, "job": job_id, "attempt": number}
        line |= {"state": "late" if is_late else outcome.state.value, "duration_ms": attempt.handled_for_ms}
        if outcome.error is not None:
            line["error"] = outcome.error.partition("\n")[0]
        if outcome.retry_at_ms is not None:
            line["retry_at"] = format_instant(outcome.retry_at_ms)
        log.info("attempt_finished", **line)

    async def _give_back(self, attempt: HeldAttempt, reason: str, *, lost: bool) -> None:
        job_id, number = attempt.key
        at_ms = self.clock.wall_ms()
        ours = await until_answered(
            lambda: self.work.give_back(job_id, number, self.config.id, reason, at_ms, lost=lost),
            "give back",
        )
        outcome = "lost" if lost else "given_back"
        self.metrics.ended(attempt.definition, outcome if ours else "late")
        log.info(outcome, job=job_id, attempt=number, reason=reason, ours=ours)

    def _context(self, attempt: HeldAttempt, started: StartedJob, limit: TimeLimit) -> JobContext:
        def report(percent: float | None, text: str) -> None:
            attempt.progress = HandlerProgress(checked_percent(percent), shown_text(text), self.clock.wall_ms())

        return JobContext(
            **{name: getattr(started, name) for name in _OF_ATTEMPT},
            deadline_ms=limit.at_ms,
            _report=report,
            _cancel_requested=lambda: attempt.cancel_requested,
            _stop_requested=lambda: attempt.stop_reason is not None or not self.fence.trusted,
        )


def attempt_span(
    tracer: Tracer, delivery: Delivery, started: StartedJob, processor_id: str
) -> AbstractContextManager[Span]:
    """Return the span from the attempt's start in the database to its stored end; it is current in the handler."""
    attributes: dict[str, Attribute] = {
        JOB_ID: started.id,
        JOB_ATTEMPT: started.attempt,
        JOB_DEFINITION: started.definition,
        PROCESSOR: processor_id,
    }
    if started.schedule is not None:
        attributes[JOB_SCHEDULE] = started.schedule
    return traced(tracer, SpanKind.ATTEMPT, started.definition, _parent(delivery, started), attributes)


def explained(end: End, attempt: HeldAttempt) -> End:
    """Return ``end``, with the stall of the event loop that may have caused it."""
    stall = attempt.stall
    if stall is None or not stall.explains(attempt.key):
        return end
    match end:
        case Failure(error):
            return replace(end, error=with_cause(error, stall))
        case GiveBack(reason, lost):
            # Nobody knows who blocks: any of those there may do so again, and this must end.
            lost = lost or (attempt.stop_reason is StopReason.BLOCKED and stall.blocker is None)
            return GiveBack(with_cause(reason, stall), lost)
    return end


def record_end(span: Span, end: End) -> None:
    """Record how the attempt ended in the span."""
    match end:
        case AttemptOutcome(state):
            span.set(OUTCOME, state.value)
        case Failure(error, error_type=error_type):
            span.set(OUTCOME, "failed")
            span.fail(error_type, error)
        case GiveBack(_, lost):
            span.set(OUTCOME, "lost" if lost else "given_back")
        case Drop():
            span.set(OUTCOME, "revoked")


def _parent(delivery: Delivery, started: StartedJob) -> TraceContext | None:
    """Return the message's trace, unless the job itself names another one: a message may come from anywhere."""
    sent, kept = delivery.trace, started.trace
    if sent is not None and (kept is None or sent.trace_id == kept.trace_id):
        return sent
    return kept
