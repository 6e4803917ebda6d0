"""The spans of the leader's messages: one for each dispatched attempt, from here until the broker has confirmed it."""

from collections.abc import Mapping, Sequence, Set

import structlog

from hascheduler.dispatch.decisions import Publish, Send
from hascheduler.errors import WorldError
from hascheduler.ports import JobTraces, TracedJob
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
    """``traces`` None: messages carry no headers here."""

    def __init__(self, tracer: Tracer = NO_TRACING, traces: JobTraces | None = None) -> None:
        self._tracer = tracer
        self._traces = traces if tracer.enabled else None

    async def begin(self, sends: Sequence[Send], term: int | None) -> Sequence[Span]:
        """One for each message, in their order; ``term`` is the present one while this replica decides.

        `UNTRACED` where tracing is off, or the database does not answer in time: the processor reads the trace of its
        job when it starts it.
        """
        published = [send.job_id for send in sends if isinstance(send, Publish)]
        if self._traces is None or not published:
            return [UNTRACED] * len(sends)
        try:
            jobs = await self._traces.of(published)
        except WorldError as error:
            log.debug("traces_unread", messages=len(published), error=str(error))
            return [UNTRACED] * len(sends)
        return [self._span(send, jobs, term) for send in sends]

    def end(self, sends: Sequence[Send], spans: Sequence[Span], unconfirmed: Set[str]) -> None:
        """``unconfirmed`` are the ids of messages of which the fate is unknown."""
        for send, span in zip(sends, spans, strict=True):
            if span is UNTRACED:
                continue
            if f"{send.job_id}/{send.attempt}" in unconfirmed:
                span.fail("unconfirmed", "the broker did not confirm the message; it is published again")
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
