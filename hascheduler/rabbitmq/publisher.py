"""Send messages, pipelined, each with its own confirm: bundles for a processor, and events on an exchange."""

import asyncio
import ssl
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
import structlog
from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractExchange
from aio_pika.exceptions import PublishError

from hascheduler.errors import BrokerUnavailable
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.model.event import Event, encode_event
from hascheduler.model.message import BUNDLE_MAX, Message, MessageKind, encode_bundle, encode_message, message_headers
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.connection import (
    ROUTING_KEY_BYTES_MAX,
    BrokerConnection,
    Session,
    bundle_key,
    declare_dispatch,
    declare_events,
)
from hascheduler.rabbitmq.faults import faults

log = structlog.get_logger(__name__)

PIPELINED_MAX = 256
PUBLISH_LIMIT_S = 5.0
_POLL_S = 0.2
_IDLE_POLL_S = 1.0
"""How often to check if the broker blocks the connection, while messages go out and while none do."""
_BLOCKED_AFTER_S = 0.02

_PROPERTIES: Mapping[str, Any] = {"content_type": "application/json", "delivery_mode": DeliveryMode.NOT_PERSISTENT}
SINGLY_MAX = 1_000
"""How many processors that do not take bundles are remembered."""


class Unroutable(Exception):
    """The broker has no queue for that message."""


class RabbitTransport:
    """`hascheduler.ports.Transport`. Owns the publishing connection's exchange, and knows if the broker blocks it."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._link = BrokerConnection(url, "hascheduler publisher", tls)
        self._exchange: AbstractExchange | None = None
        self._blocked = False
        self._has_published = False
        self._turned: Callable[[], None] = lambda: None
        self._room = asyncio.Semaphore(PIPELINED_MAX)
        self._in_flight: set[str] = set()
        self._bundles = 0
        self._singly: OrderedDict[str, None] = OrderedDict()

    async def run(self, turned: Callable[[], None] = lambda: None) -> None:
        self._turned = turned
        await self._link.run(self._use)

    @property
    def accepting(self) -> bool:
        return self._exchange is not None and not self._blocked

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        confirms = [Confirm.UNKNOWN] * len(messages)
        parcels = iter(_parcels(messages, self._singly))

        async def publish_next() -> None:
            for places in parcels:
                await self._publish_parcel(messages, places, confirms)

        try:
            async with asyncio.timeout(PUBLISH_LIMIT_S), asyncio.TaskGroup() as tasks:
                for _ in range(min(PIPELINED_MAX, len(messages))):
                    tasks.create_task(publish_next())
        except TimeoutError:
            log.warning("publish_timed_out", messages=confirms.count(Confirm.UNKNOWN))
        return confirms

    async def _publish_parcel(
        self, messages: Sequence[tuple[str, Message]], places: Sequence[int], confirms: list[Confirm]
    ) -> None:
        processor_id, _ = messages[places[0]]
        if len(places) > 1:
            self._bundles += 1
            body = encode_bundle([messages[place][1] for place in places])
            bundle = AmqpMessage(body, message_id=f"bundle/{self._bundles}", **_PROPERTIES)
            # Unroutable: the processor is gone or not there yet, or its release does not know bundles.
            with suppress(Unroutable):
                confirm = await self._publish(bundle_key(processor_id), bundle)
                for place in places:
                    confirms[place] = confirm
                return
        for place in places:
            _, message = messages[place]
            id, headers = message.message_id, message_headers(message)
            single = AmqpMessage(encode_message(message), headers={**headers}, message_id=id, **_PROPERTIES)
            with suppress(Unroutable):
                confirms[place] = await self._publish(processor_id, single)
        if len(places) > 1 and any(confirms[place] is Confirm.CONFIRMED for place in places):
            self._singly[processor_id] = None
            while len(self._singly) > SINGLY_MAX:
                self._singly.popitem(last=False)

    async def _publish(self, routing_key: str, message: AmqpMessage) -> Confirm:
        """Publish one message; raise `Unroutable` if no queue is bound by that key."""
        self._has_published = True
        exchange = self._exchange
        id = message.message_id or ""
        # The driver tells returned messages apart by their id, so one id can't be on its way twice.
        if exchange is None or self._blocked or id in self._in_flight:
            return Confirm.UNKNOWN
        self._in_flight.add(id)
        try:
            async with self._room, faults("publish", PUBLISH_LIMIT_S):
                await exchange.publish(message, routing_key=routing_key, mandatory=True)
        except BrokerUnavailable as error:
            log.debug("publish_unknown", message=id, error=str(error))
            if isinstance(error.__cause__, PublishError):
                raise Unroutable from error
            return Confirm.UNKNOWN
        finally:
            self._in_flight.discard(id)
        return Confirm.CONFIRMED

    async def _use(self, session: Session) -> None:
        async with faults("open the publishing channel"):
            channel = await session.channel(confirms=True)
            exchange = await declare_dispatch(channel)
        self._blocked = False
        self._exchange = exchange
        self._turned()
        try:
            while not session.lost.is_set():
                self._note_blocked(await is_blocked(session))
                leave_if_cancelled()
                poll_s = _POLL_S if self._has_published or self._blocked else _IDLE_POLL_S
                self._has_published = False
                await in_time(session.lost.wait(), poll_s)
        finally:
            self._exchange = None
            self._turned()

    def _note_blocked(self, blocked: bool) -> None:
        if blocked is not self._blocked:
            log.warning("broker_blocked", blocked=blocked)
            self._blocked = blocked
            self._turned()


def _parcels(messages: Sequence[tuple[str, Message]], singly: Collection[str]) -> list[list[int]]:
    """Return the places of messages that go out together, in the order of their first. A cancel waits for no others."""
    runs: dict[str, list[int]] = defaultdict(list)
    parcels: list[list[int]] = []
    for place, (processor_id, message) in enumerate(messages):
        takes_bundles = processor_id not in singly and len(bundle_key(processor_id).encode()) <= ROUTING_KEY_BYTES_MAX
        if message.kind is not MessageKind.RUN or not takes_bundles:
            parcels.append([place])
            continue
        if len(runs[processor_id]) in (0, BUNDLE_MAX):
            runs[processor_id] = []
            parcels.append(runs[processor_id])
        runs[processor_id].append(place)
    return parcels


async def is_blocked(session: Session) -> bool:
    """Return True if the broker blocks the connection; the driver shows it only by not being ready."""
    transport = session.connection.transport
    if transport is None:
        return False
    try:
        async with asyncio.timeout(_BLOCKED_AFTER_S):
            await transport.ready()
    except TimeoutError:
        return True
    return False


EVENTS_PIPELINED_MAX = 128


class RabbitEventExchange:
    """`hascheduler.ports.EventExchange` on a connection of its own, which a broker may block without harm to others.

    The routing key is ``job.<type>.<definition>``, and ``schedule.missed.<definition>`` of what schedules missed. The
    name of a definition may hold dots and comes last, as it is, so that each pattern means what it says:
    ``job.succeeded.#``, ``job.*.git.fetch``, ``job.*.git.#``. The message id is the event's, the body its JSON.
    Messages are not persistent: what a restarted broker has lost can be read from the API again. An event that no queue
    wants is confirmed all the same.
    """

    def __init__(self, url: str, name: str, tls: ssl.SSLContext | None = None) -> None:
        self._link = BrokerConnection(url, "hascheduler events", tls)
        self._name = name
        self._session: Session | None = None
        self._exchange: AbstractExchange | None = None

    async def run(self) -> None:
        await self._link.run(self._use)

    async def publish(self, events: Sequence[Event]) -> bool:
        session, exchange = self._session, self._exchange
        if session is None or exchange is None:
            return False
        try:
            async with faults("publish events", PUBLISH_LIMIT_S):
                if session.connection.transport is not None:
                    # While the broker blocks the connection, what is written to it would pile up here.
                    await session.connection.transport.ready()
                for start in range(0, len(events), EVENTS_PIPELINED_MAX):
                    some = [_publish(exchange, event) for event in events[start : start + EVENTS_PIPELINED_MAX]]
                    # With all their ends: the driver cancels those whose channel is closed under them.
                    for end in await asyncio.gather(*some, return_exceptions=True):
                        if end is not None:
                            raise BrokerUnavailable(f"publish events: {type(end).__name__}")
        except BrokerUnavailable as error:
            log.debug("events_unconfirmed", events=len(events), error=str(error))
            return False
        return True

    async def _use(self, session: Session) -> None:
        try:
            async with faults("open the channel of events"):
                channel = await session.channel(confirms=True)
                self._exchange = await declare_events(channel, self._name)
            self._session = session
            await session.lost.wait()
        finally:
            self._session = self._exchange = None


async def _publish(exchange: AbstractExchange, event: Event) -> None:
    message = AmqpMessage(orjson.dumps(encode_event(event)), message_id=event.id, **_PROPERTIES)
    await exchange.publish(message, routing_key=routing_key(event), mandatory=False)


def routing_key(event: Event) -> str:
    """Return the key, cut off if a name written by hand is longer than the protocol can carry."""
    kind = f"job.{event.type}" if event.job is not None else event.type.value
    key = f"{kind}.{event.definition or ''}"
    return key.encode()[:ROUTING_KEY_BYTES_MAX].decode(errors="ignore")
