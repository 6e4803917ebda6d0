"""One connection, kept alive: connect, use it until it is lost, again.

The driver has a robust connection of its own. This loop is ours because what must happen after a reconnect is ours:
declare, consume again, forget what was delivered before. It never ends by itself; a session that did not last makes
the next try wait longer, with jitter, up to `BACKOFF_MAX_S`.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractConnection
from tenacity import AsyncRetrying, retry_if_result, wait_random_exponential
from yarl import URL

from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.rabbitmq.faults import EXCHANGE_LIMIT_S, faults

log = structlog.get_logger(__name__)

# A lost connection is daily life here and logged below, in one line; the driver logs errors with tracebacks.
logging.getLogger("aiormq").setLevel(logging.CRITICAL)

HEARTBEAT_S = 5
BACKOFF_MAX_S = 3.0
_LASTED_S = 5.0
_CLOSE_LIMIT_S = 2.0


class Session:
    """One connection's life. ``lost`` is set, once, when the connection or a watched channel is no more."""

    def __init__(self, connection: AbstractConnection) -> None:
        self.connection = connection
        self.lost = asyncio.Event()
        connection.close_callbacks.add(self._on_close)

    async def channel(self, *, confirms: bool) -> AbstractChannel:
        channel = self.connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
        await channel.initialize(timeout=EXCHANGE_LIMIT_S)
        channel.close_callbacks.add(self._on_close)
        return channel

    def _on_close(self, *_: Any) -> None:
        self.lost.set()


class BrokerConnection:
    """``name`` is how the connection is listed on the broker, ``tls`` how an ``amqps`` one is made, where the defaults
    do not do. A URL that is none is an `InvalidInput`."""

    def __init__(self, url: str, name: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = _checked(url)
        self._name = name
        self._tls = tls
        self._logged = ""

    async def run(self, use: Callable[[Session], Awaitable[None]]) -> None:
        """``use`` each connection until it returns (it should, once the session is lost); until cancelled."""
        while True:
            await AsyncRetrying(
                retry=retry_if_result(lambda lasted: not lasted),
                wait=wait_random_exponential(multiplier=0.1, max=BACKOFF_MAX_S),
            )(self._once, use)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """One connection for the length of the block."""
        connection: AbstractConnection | None = None
        try:
            async with faults("connect to the broker"):
                connection = await aio_pika.connect(
                    self._url,
                    heartbeat=HEARTBEAT_S,
                    client_properties={"connection_name": self._name},
                    ssl_context=self._tls,
                )
            yield Session(connection)
        finally:
            if connection is not None:
                # However it ends, it is of no further use; a broker that does not answer closes it after its heartbeat.
                with suppress(BrokerUnavailable):
                    async with faults("close the connection", _CLOSE_LIMIT_S):
                        await connection.close()

    async def _once(self, use: Callable[[Session], Awaitable[None]]) -> bool:
        """Whether the session lasted."""
        began_at = asyncio.get_running_loop().time()
        try:
            async with self.session() as session:
                self._logged = ""
                log.info("broker_connected", connection=self._name)
                await use(session)
            log.warning("broker_lost", connection=self._name)
        except BrokerUnavailable as error:
            # An outage is logged once, not with every try.
            tell = log.debug if str(error) == self._logged else log.warning
            tell("broker_unavailable", connection=self._name, error=str(error))
            self._logged = str(error)
        return asyncio.get_running_loop().time() - began_at >= _LASTED_S


def _checked(url: str) -> URL:
    """``url`` is never repeated in the refusal: it holds a password."""
    refused = InvalidInput(("amqp_url",), "not an AMQP URL", "amqp://user:password@host:5672/vhost")
    try:
        parsed = URL(url)
    except ValueError:
        raise refused from None
    if parsed.scheme not in ("amqp", "amqps") or not parsed.host:
        raise refused
    return parsed
