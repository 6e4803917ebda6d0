"""The messages to processors: dispatched attempts, and cancel requests. Bounded, and never in the way of another loop.

The job document is the outbox, so a message may be lost: the core publishes a dispatched job again if it does not start
in time. Therefore a full queue drops, and a publish without an answer is given up after a few tries.

With a fallback the core also dispatches while the broker is away, and its messages go there: MongoDB, where processors
find their jobs meanwhile.

Each dispatched attempt has a span, from here until the broker has confirmed its message.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import structlog
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_attempt, wait_random_exponential

from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.dispatch.decisions import CancelNotice, Publish, Send
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.errors import WorldError
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.model.message import Message, MessageKind
from hascheduler.model.processor import is_polling
from hascheduler.model.trace import TraceContext
from hascheduler.ports import Confirm, JobTraces, TracedJob, Transport
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.tracing import (
    JOB_ATTEMPT,
    JOB_DEFINITION,
    JOB_ID,
    JOB_SCHEDULE,
    NO_TRACING,
    PROCESSOR,
    TERM,
    UNTRACED,
    Attribute,
    Span,
    SpanKind,
    Tracer,
)

log = structlog.get_logger(__name__)


class MessageSpans:
    """The spans of messages; with ``traces`` None messages carry no headers."""

    def __init__(self, tracer: Tracer = NO_TRACING, traces: JobTraces | None = None) -> None:
        self._tracer = tracer
        self._traces = traces if tracer.enabled else None

    async def begin(self, sends: Sequence[Send], term: int | None) -> Sequence[Span]:
        """Begin a span for each message, in order; ``term`` is the present one while this replica decides.

        It is `UNTRACED` if tracing is off, or the database does not answer in time: the processor reads the trace of
        its job when it starts it.
        """
        published = [send.job_id for send in sends if isinstance(send, Publish)]
        if self._traces is None or not published:
            return [UNTRACED] * len(sends)
        try:
            jobs = await self._traces.of(published)
        except WorldError as error:
            log.debug("trace_lookup_failed", messages=len(published), error=str(error))
            return [UNTRACED] * len(sends)
        return [self._span(send, jobs, term) for send in sends]

    def end(self, sends: Sequence[Send], spans: Sequence[Span], unconfirmed: Set[str]) -> None:
        """End the spans; ``unconfirmed`` holds the ids of messages with an unknown fate."""
        for send, span in zip(sends, spans, strict=True):
            if span is UNTRACED:
                continue
            if f"{send.job_id}/{send.attempt}" in unconfirmed:
                span.fail("unconfirmed", "the broker did not confirm the message, which is published again")
            span.end()

    def _span(self, send: Send, jobs: Mapping[str, TracedJob], term: int | None) -> Span:
        job = jobs.get(send.job_id)
        if job is None or not isinstance(send, Publish):
            return UNTRACED
        attributes: dict[str, Attribute] = {
            JOB_ID: send.job_id,
            JOB_ATTEMPT: send.attempt,
            JOB_DEFINITION: job.definition,
            PROCESSOR: send.processor,
        }
        if job.schedule is not None:
            attributes[JOB_SCHEDULE] = job.schedule
        if term is not None:
            attributes[TERM] = term
        return self._tracer.start(SpanKind.DISPATCH, job.definition, job.trace, attributes)


QUEUE_MAX = 20_000
BATCH_MAX = 1_000


@dataclass
class Publisher:
    """Owner of the queue of messages, and of the known state of the broker."""

    transport: Transport
    inbox: Inbox
    spans: MessageSpans = field(default_factory=MessageSpans)
    metrics: ReplicaMetrics = field(default_factory=ReplicaMetrics)
    fallback: Transport | None = None

    def __post_init__(self) -> None:
        self._queue: asyncio.Queue[Send] = asyncio.Queue(maxsize=QUEUE_MAX)
        self._unconfirmed: asyncio.Queue[list[tuple[str, Message]]] = asyncio.Queue(maxsize=1)
        self._known: bool | None = None

    def offer(self, sends: Iterable[Send]) -> None:
        """Queue for publishing; what does not fit is dropped, and repaired later by its start timeout.

        Processors that poll for their jobs have no queue: they read the mirror.
        """
        dropped = 0
        for send in sends:
            if is_polling(send.processor):
                continue
            try:
                self._queue.put_nowait(send)
            except asyncio.QueueFull:
                dropped += 1
        if dropped:
            self.metrics.publishes.labels("dropped").inc(dropped)
            log.warning("publish_queue_full", dropped=dropped)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything offered has been published or given up, and return True if that happened in time."""
        return await in_time(self._queue.join(), timeout_s)

    async def run(self, deciding_term: Callable[[], int | None] = lambda: None) -> None:
        """Publish until cancelled. ``deciding_term`` is the present term while this replica decides, for the spans."""
        self._report_transport()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.transport.run(self._report_transport), name="transport")
            tasks.create_task(self._publish(deciding_term), name="publish")
            tasks.create_task(self._publish_again(), name="publish-again")

    def _report_transport(self) -> None:
        """Put the state of the broker into the inbox, at first and after each change."""
        known, accepting = self._known, self.transport.accepting
        if accepting is known:
            return
        self._known = accepting
        self.inbox.put_now(TransportSeen(accepting or self.fallback is not None))
        if known is not None or not accepting:
            log.info("transport_changed", accepting=accepting)

    async def _publish(self, deciding_term: Callable[[], int | None]) -> None:
        while True:
            batch = await _take(self._queue)
            spans = await self.spans.begin(batch, deciding_term())
            unsent = await self._deliver(
                [(send.processor, _message(send, span.context)) for send, span in zip(batch, spans, strict=True)]
            )
            self.spans.end(batch, spans, {message.message_id for _, message in unsent})
            for _ in batch:
                self._queue.task_done()
            if self._unconfirmed.empty() and unsent:
                self._unconfirmed.put_nowait(unsent)

    async def _publish_again(self) -> None:
        """Try once more, in a task of its own, so that a queue that is gone does not delay messages to the others."""
        while True:
            unsent = await self._unconfirmed.get()
            try:
                await AsyncRetrying(
                    retry=retry_if_result(bool),
                    wait=wait_random_exponential(multiplier=0.05, max=0.5),
                    stop=stop_after_attempt(3),
                )(self._deliver, unsent)
            except RetryError as error:
                _, first = unsent[0]
                still = len(error.last_attempt.result())
                log.warning("publish_unknown", messages=still, job=first.job_id, attempt=first.attempt)

    async def _deliver(self, messages: list[tuple[str, Message]]) -> list[tuple[str, Message]]:
        """Publish, and return the messages that the broker did not confirm."""
        transport = self.transport
        if self.fallback is not None and not transport.accepting:
            transport = self.fallback
        with self.metrics.publish_confirm_seconds.time():
            confirms = await transport.publish(messages)
        leave_if_cancelled()
        self.metrics.published(confirms)
        return [
            message for message, confirm in zip(messages, confirms, strict=True) if confirm is not Confirm.CONFIRMED
        ]


async def _take(queue: asyncio.Queue[Send]) -> list[Send]:
    batch = [await queue.get()]
    while len(batch) < BATCH_MAX and not queue.empty():
        batch.append(queue.get_nowait())
    return batch


def _message(send: Send, trace: TraceContext | None) -> Message:
    kind = MessageKind.CANCEL if isinstance(send, CancelNotice) else MessageKind.RUN
    return Message(kind, send.job_id, send.attempt, trace)
