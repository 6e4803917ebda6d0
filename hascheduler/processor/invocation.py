"""Calls a handler, and judges what came of it."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.ports import Outcome
from hascheduler.processor.attempts import Ending
from hascheduler.processor.context import JobContext
from hascheduler.processor.failures import Failure, failure_of
from hascheduler.processor.handlers import Handler
from hascheduler.processor.results import checked_result
from hascheduler.processor.threads import run_in_thread


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The attempt did not come to its own end: the job waits for the next one."""

    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The attempt is somebody else's by now: there is nothing to say about it."""


End = Outcome | Failure | GiveBack | Drop


async def invoke(handler: Handler, job: JobContext) -> Any:
    """What the handler returns or raises; a plain function runs in a thread."""
    try:
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
            return await handler(job)
        result = await run_in_thread(handler, job)
        return await result if inspect.isawaitable(result) else result
    except SystemExit as error:
        raise RuntimeError("the handler raised SystemExit") from error  # it may end its job, not the event loop


def end_of(handler: asyncio.Task[Any], ending: Ending | None, timeout: Failure) -> End:
    """How an attempt ended whose handler is done, and which was told to stop for ``ending``, or for a ``timeout``.

    A result stands even after a request to cancel or a drain: it was there first. An error does not: a handler that is
    being stopped may raise anything.
    """
    if ending is Ending.REVOKED or ending is Ending.FENCED:
        return unfinished(ending, timeout)
    error = asyncio.CancelledError("by the handler itself") if handler.cancelled() else handler.exception()
    if error is None:
        try:
            return Outcome(JobState.SUCCEEDED, result=checked_result(handler.result()))
        except InvalidInput as refused:
            return failure_of(refused)
    if ending is not None:
        return unfinished(ending, timeout)
    return failure_of(error)


def unfinished(ending: Ending, timeout: Failure) -> End:
    """How an attempt ends that was stopped before it had a result."""
    match ending:
        case Ending.DRAINED:
            return GiveBack("the processor is draining")
        case Ending.TIMED_OUT:
            return timeout
        case Ending.CANCELLED:
            return Outcome(JobState.CANCELLED)
        case Ending.REVOKED:
            return Drop()
        case Ending.FENCED:
            return GiveBack("the processor could not show life in time")
