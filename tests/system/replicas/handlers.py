"""Handlers that fail as they are told to."""

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()


@handlers.handler("flaky")
async def flaky(job: JobContext) -> dict[str, int]:
    """Succeeds in the attempt that its payload names."""
    if job.attempt < job.payload["succeeds_in"]:
        raise RuntimeError(f"attempt {job.attempt} was never to succeed")
    return {"attempt": job.attempt}
