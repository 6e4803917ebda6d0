"""Turn the driver's errors into ours, and give every exchange with the broker a time limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hascheduler.errors import BrokerUnavailable

EXCHANGE_LIMIT_S = 5.0


@asynccontextmanager
async def faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> AsyncIterator[None]:
    """Bound an exchange with the broker, ``doing`` something, by ``limit_s``, or raise `BrokerUnavailable`.

    A cancellation passes only if it is meant for this task: the driver also cancels those who wait on a channel that it
    closes. A cancellation that the driver has lost is raised again: it waits through ``asyncio.wait_for``, which in
    Python 3.11 drops a cancellation that coincides with a refusal of the broker.
    """
    task = asyncio.current_task()
    cancellations = task.cancelling() if task else 0
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise BrokerUnavailable(f"{doing}: no answer in time") from error
    except asyncio.CancelledError as error:
        raise BrokerUnavailable(f"{doing}: the connection was closed") from error
    except BrokerUnavailable:
        raise
    except Exception as error:  # the driver has no root of its errors, and rejects what is pending with bare exceptions
        raise BrokerUnavailable(f"{doing}: {type(error).__name__}: {str(error)[:200]}") from error
    finally:
        if task and task.cancelling() > cancellations:
            raise asyncio.CancelledError
