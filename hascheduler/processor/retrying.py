"""Retries a question to the database until it answers. Each may be repeated: it is a compare-and-set."""

import asyncio
from collections.abc import Awaitable, Callable
from random import uniform
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled

log = structlog.get_logger(__name__)

_T = TypeVar("_T")
_FIRST_PAUSE_S = 0.1


async def until_answered(ask: Callable[[], Awaitable[_T]], doing: str, *, hopeful: Callable[[], bool]) -> _T:
    """What ``ask`` returns, asked again after each unknown answer for as long as it is ``hopeful``.

    Then the last `WorldError`. Where hope has no end, the end is the cancellation by the drain.
    """

    def asked_in_vain(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("unanswered", doing=doing, tries=state.attempt_number + 1, error=str(error))

    async def asked() -> _T:
        # A coroutine function, by which tenacity knows what to await; ``ask`` may be a lambda.
        try:
            return await ask()
        finally:
            leave_if_cancelled()

    try:
        # Nearly always, and without what it costs to be prepared for more.
        return await ask()
    except WorldError as error:
        if not hopeful():
            raise
        log.warning("unanswered", doing=doing, tries=1, error=str(error))
        leave_if_cancelled()
    await asyncio.sleep(uniform(0, _FIRST_PAUSE_S))  # noqa: S311  # jitter, no secret
    return await AsyncRetrying(
        retry=retry_if_exception_type(WorldError),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        stop=lambda state: not hopeful(),
        before_sleep=asked_in_vain,
        reraise=True,
    )(asked)


def always() -> bool:
    return True
