"""Where the driver's errors stop, and where every exchange with the broker gets its time limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hascheduler.errors import BrokerUnavailable

EXCHANGE_LIMIT_S = 5.0


@asynccontextmanager
async def faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> AsyncIterator[None]:
    """An exchange with the broker, ``doing`` something, that ends within ``limit_s`` or is `BrokerUnavailable`.

    A cancellation passes only if it is meant for this task: the driver also cancels those who wait on a channel that
    is closed under them. One that the driver has lost is raised again: it waits through ``asyncio.wait_for``, which in
    Python 3.11 drops a cancellation that meets a refusal of the broker.
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
