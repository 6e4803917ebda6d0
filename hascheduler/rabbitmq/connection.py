"""Keep one connection alive, and name and declare what is on the broker.

The driver has a robust connection of its own. This loop is ours because we decide what happens after a reconnect:
declare, consume again, forget what was delivered before. It never ends by itself; after a session that did not last the
next try waits longer, with jitter, up to `BACKOFF_MAX_S`.
"""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

import aio_pika
import structlog
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractQueue
from aiormq import spec
from aiormq.exceptions import AuthenticationError, ConnectionClosed, ProbableAuthenticationError
from tenacity import AsyncRetrying, retry_if_result, wait_random_exponential
from yarl import URL

from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.rabbitmq.faults import EXCHANGE_LIMIT_S, faults
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

# A lost connection is daily life here and logged below, in one line; the driver logs errors with tracebacks.
logging.getLogger("aiormq").setLevel(logging.CRITICAL)

# The driver would call a refusal of the virtual host an invalid frame, and drop the broker's words.
spec.Connection.Open.valid_responses = ["Connection.OpenOk", "Connection.Close"]

HEARTBEAT_S = 5
BACKOFF_MAX_S = 3.0
_LASTED_S = 5.0
_CLOSE_LIMIT_S = 2.0
_URL_VARIABLE = ("HASCHEDULER_AMQP_URL",)
_ACCESS_REFUSED, _NOT_ALLOWED = 403, 530
_NOT_FOUND = "not found"
_TEMPORARY = re.compile(
    r"\b(limit|down|starting|stopping|maintenance|unavailable|time(d |-)?out|too many)\b", re.IGNORECASE
)
"""Words of refusals that pass without a change of the settings."""


class Session:
    """One connection's life. ``lost`` is set, once, when the connection or a watched channel is closed."""

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
    """A connection to the broker, listed there as ``name``.

    ``tls`` is how an ``amqps`` connection is made if the defaults do not suffice. An invalid URL raises `InvalidInput`.
    """

    def __init__(self, url: str, name: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = _checked(url)
        self._name = name
        self._tls = tls
        self._reminders = Reminders()

    async def run(self, use: Callable[[Session], Awaitable[None]]) -> None:
        """Call ``use`` with each connection until cancelled; ``use`` should return once the session is lost."""
        while True:
            await AsyncRetrying(
                retry=retry_if_result(lambda lasted: not lasted),
                wait=wait_random_exponential(multiplier=0.1, max=BACKOFF_MAX_S),
            )(self._once, use)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Open one connection for the length of the block."""
        connection: AbstractConnection | None = None

        def made(*arguments: Any, **options: Any) -> AbstractConnection:
            # Close one that failed to open, too: the driver would do so only when it is collected as garbage.
            nonlocal connection
            connection = aio_pika.Connection(*arguments, **options)
            return connection

        try:
            async with faults("connect to the broker"):
                connected = await aio_pika.connect(
                    self._url,
                    heartbeat=HEARTBEAT_S,
                    client_properties={"connection_name": self._name},
                    ssl_context=self._tls,
                    connection_class=made,
                )
            yield Session(connected)
        finally:
            if connection is not None:
                await _close(connection)

    async def _once(self, use: Callable[[Session], Awaitable[None]]) -> bool:
        """Use one connection, and return True if the session lasted."""
        began_at = asyncio.get_running_loop().time()
        try:
            async with self.session() as session:
                self._reminders.over()
                log.info("broker_connected", connection=self._name)
                await use(session)
            log.warning("broker_lost", connection=self._name)
        except BrokerUnavailable as error:
            # An outage is logged once a minute, not with every try.
            reason = str(mistake_of(self._url, error) or error)
            if self._reminders.is_due(reason, int(asyncio.get_running_loop().time() * 1_000)):
                log.warning("broker_unavailable", connection=self._name, error=reason)
        leave_if_cancelled()
        return asyncio.get_running_loop().time() - began_at >= _LASTED_S


async def _close(connection: AbstractConnection) -> None:
    """Close the connection, however it ends; a broker that does not answer closes it after its heartbeat."""
    try:
        with suppress(BrokerUnavailable):
            async with faults("close the connection", _CLOSE_LIMIT_S):
                await connection.close()
    finally:
        # The first call took the transport, so this one only marks the connection closed. Otherwise the driver would
        # try again when it is collected as garbage, perhaps outside of a loop.
        await connection.close()


async def require_access(url: str, tls: ssl.SSLContext | None = None, *, must_answer: bool = False) -> None:
    """Raise `InvalidInput` if the broker refuses the user or the virtual host, and waiting does not help.

    A broker that does not answer may be about to start, and passes unless it ``must_answer``.
    """
    link = BrokerConnection(url, "hascheduler startup check", tls)
    try:
        async with link.session():
            pass
    except BrokerUnavailable as error:
        mistake = mistake_of(_checked(url), error)
        if mistake is not None and (_is_permanent(error.__cause__) or must_answer):
            raise mistake from None


def mistake_of(url: URL, error: BrokerUnavailable) -> InvalidInput | None:
    """Return what is wrong with the URL, by the driver's error: address, problem, what is right. No password."""
    where, reason = f"{url.host}:{url.port or (5671 if url.scheme == 'amqps' else 5672)}", error.__cause__
    vhost = unquote(url.path.removeprefix("/")) or "/"
    code, words = _reply(reason)
    reply = f": {words}" + (f" ({code})" if code else "") if words else ""
    match reason:
        case AuthenticationError() | ConnectionClosed() | ProbableAuthenticationError() if not _is_permanent(reason):
            problem, expected = f"{where} refuses the connection{reply}", "a broker with room for another connection"
        case ConnectionClosed() if words.endswith(_NOT_FOUND):
            problem = f"{where} has no virtual host {vhost!r} for user {url.user!r}{reply}"
            expected = "an existing one as the path of the URL (%2F means /)"
        case ConnectionClosed() if code == _NOT_ALLOWED:
            problem = f"{where} denies user {url.user!r} the virtual host {vhost!r}{reply}"
            expected = "a user with permissions on it"
        case AuthenticationError() | ConnectionClosed() | ProbableAuthenticationError():
            problem = f"{where} refuses user {url.user!r}{reply}"
            expected = "an existing user and its password"
        case _ if isinstance(getattr(reason, "__cause__", None), socket.gaierror):
            problem = f"the host {url.host!r} can't be resolved"
            expected = "a host name that this machine can resolve"
        case _ if isinstance(getattr(reason, "__cause__", None), ConnectionRefusedError):
            problem, expected = f"nothing listens at {where}", "the address of a running broker"
        case TimeoutError():
            problem, expected = f"{where} does not answer like a broker", "the address of a running broker"
        case _:
            return None
    return InvalidInput(_URL_VARIABLE, problem, expected)


def _reply(reason: object) -> tuple[int, str]:
    """Return the code and the words with which the broker closed the connection, in one line; 0 and "" if none."""
    match reason:
        case ProbableAuthenticationError(args=(str() as words,)):
            code = _ACCESS_REFUSED
        case ConnectionClosed(args=(int() as code, str() as words)):
            pass
        case ConnectionClosed(args=(str() as words,)):  # of one that was open
            code = 0
        case _:
            return 0, ""
    return code, " ".join(words.split())


def _is_permanent(reason: object) -> bool:
    """Return True if waiting does not help against the broker's refusal; ignore the names in its words."""
    code, words = _reply(reason)
    is_temporary = not words.endswith(_NOT_FOUND) and _TEMPORARY.search(re.sub(r"'[^']*'", "", words))
    return isinstance(reason, AuthenticationError) or (code in (_ACCESS_REFUSED, _NOT_ALLOWED) and not is_temporary)


def _checked(url: str) -> URL:
    """Return the URL; the error never repeats it, as it holds a password."""
    refused = InvalidInput(_URL_VARIABLE, "not an AMQP URL", "amqp://user:password@host:5672/vhost")
    try:
        parsed = URL(url)
    except ValueError:
        raise refused from None
    if parsed.scheme not in ("amqp", "amqps") or not parsed.host:
        raise refused
    return parsed


DISPATCH_EXCHANGE = "hascheduler.dispatch"
PARKED_QUEUE = "hascheduler.parked"
PARKED_MAX = 10_000
QUEUE_EXPIRES_MS = 60_000
ROUTING_KEY_BYTES_MAX = 255


def queue_name(processor_id: str) -> str:
    return f"hascheduler.processor.{processor_id}"


async def declare_dispatch(channel: AbstractChannel) -> AbstractExchange:
    return await channel.declare_exchange(DISPATCH_EXCHANGE, ExchangeType.DIRECT, durable=True)


async def declare_events(channel: AbstractChannel, name: str) -> AbstractExchange:
    """Declare the exchange of events under its name in the settings; listeners make their own queues."""
    return await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)


def bundle_key(processor_id: str) -> str:
    """Return the routing key of bundles. Processors of a release that does not know them have no such binding."""
    return f"bundle:{processor_id}"


async def declare_processor_queue(channel: AbstractChannel, processor_id: str) -> AbstractQueue:
    """Declare and bind the queue of one processor; the broker deletes it after a minute without a consumer."""
    await declare_dispatch(channel)
    queue = await channel.declare_queue(
        queue_name(processor_id), durable=True, arguments={"x-expires": QUEUE_EXPIRES_MS}
    )
    # Bundles first: a queue that takes single messages and no bundles is of a release that does not know them.
    if len(bundle_key(processor_id).encode()) <= ROUTING_KEY_BYTES_MAX:
        await queue.bind(DISPATCH_EXCHANGE, routing_key=bundle_key(processor_id))
    await queue.bind(DISPATCH_EXCHANGE, routing_key=processor_id)
    return queue


async def declare_parked(channel: AbstractChannel) -> AbstractQueue:
    """Declare the queue for unreadable messages; when it is full, the oldest are dropped."""
    return await channel.declare_queue(PARKED_QUEUE, durable=True, arguments={"x-max-length": PARKED_MAX})
