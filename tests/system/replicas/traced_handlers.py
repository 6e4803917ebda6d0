"""Handlers that trace and log by themselves, as any program would that knows nothing of the scheduler's tracing."""

import structlog
from opentelemetry import trace

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()
tracer = trace.get_tracer("somebody's application")
log = structlog.get_logger("processors.traced")


@handlers.handler("traced")
async def traced(job: JobContext) -> dict[str, int]:
    """Succeeds in the attempt that its payload names."""
    with tracer.start_as_current_span("in a coroutine"):
        log.info("at_work")
        if job.attempt < job.payload["succeeds_in"]:
            raise LookupError(f"attempt {job.attempt} was never to succeed")
        return {"attempt": job.attempt}


@handlers.handler("traced-thread")
def traced_thread(job: JobContext) -> None:
    with tracer.start_as_current_span("in a thread"):
        log.info("at_work")
