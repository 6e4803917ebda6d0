"""Examine a RabbitMQ before a deployment uses it, or when it behaves oddly.

It does what replicas and processors do, and so tries the very rights that they need: it declares the exchange of
dispatches, publishes, and makes, uses and deletes a processor's queue.
"""

import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

from aio_pika import Message
from aio_pika.exceptions import DeliveryError
from yarl import URL

from hascheduler.check.servers import Requirement, RequirementState
from hascheduler.errors import BrokerUnavailable
from hascheduler.rabbitmq import connection
from hascheduler.rabbitmq.faults import faults
from hascheduler.rabbitmq.publisher import is_blocked

_TESTED_SINCE = (3, 10)
_MET, _MISSING = RequirementState.MET, RequirementState.MISSING


async def examine_broker(url: str, tls: ssl.SSLContext | None, server: str) -> AsyncIterator[Requirement]:
    """Yield what the RabbitMQ at ``url`` has of what is needed; only the first if it can't be reached."""
    link = connection.BrokerConnection(url, "hascheduler doctor", tls)
    try:
        async with link.session() as session:
            yield Requirement(server, "connection", _MET, "answers, and accepts this user on this virtual host")
            yield _version(session, server)
            yield await _blocked(session, server)
            yield await _rights(session, server)
            yield _policies(URL(url), server)
    except BrokerUnavailable as error:
        mistake = connection.mistake_of(URL(url), error)
        text = str(error) if mistake is None else f"{mistake.problem}; expected {mistake.expected}"
        yield Requirement(server, "connection", _MISSING, text)


def _version(session: connection.Session, server: str) -> Requirement:
    transport = session.connection.transport
    properties = {} if transport is None else transport.connection.server_properties
    reported = properties.get("version", b"not reported")
    text = reported.decode() if isinstance(reported, bytes) else str(reported)
    parts = text.split(".")[:2]
    if not all(part.isdecimal() for part in parts):
        return Requirement(server, "version", RequirementState.UNKNOWN, text)
    if tuple(map(int, parts)) < _TESTED_SINCE:
        oldest = ".".join(map(str, _TESTED_SINCE))
        remedy = f"RabbitMQ {oldest} or later: older ones are not tested"
        return Requirement(server, "version", RequirementState.WARNING, text, remedy)
    return Requirement(server, "version", _MET, text)


async def _blocked(session: connection.Session, server: str) -> Requirement:
    if await is_blocked(session):
        remedy = "free memory or disk on the broker: an alarm stops all publishing (rabbitmq-diagnostics alarms)"
        return Requirement(server, "alarms", _MISSING, "it blocks publishers", remedy)
    return Requirement(server, "alarms", _MET, "it accepts messages")


async def _rights(session: connection.Session, server: str) -> Requirement:
    name = f"doctor-{secrets.token_hex(4)}"
    lacks = {}
    for who, try_rights in {"replicas": _as_replica, "processors": _as_processor}.items():
        try:
            async with faults(f"act as {who}"):
                await try_rights(session, name)
        except BrokerUnavailable as error:
            lacks[who] = str(error)
    if not lacks:
        return Requirement(server, "rights", _MET, "enough for replicas and processors")
    remedy = "the permissions of k8s/make-secrets, or configure, write and read on hascheduler.* and amq.default"
    if len(lacks) == 1:
        [(who, reason)] = lacks.items()
        text = f"not enough for {who}: {reason}"
        return Requirement(server, "rights", RequirementState.WARNING, text, f"another user for {who}, or {remedy}")
    return Requirement(server, "rights", _MISSING, lacks["replicas"], remedy)


async def _as_replica(session: connection.Session, name: str) -> None:
    exchange = await connection.declare_dispatch(await session.channel(confirms=True))
    with suppress(DeliveryError):  # no processor has that name
        await exchange.publish(Message(b"doctor"), routing_key=name, mandatory=True)


async def _as_processor(session: connection.Session, name: str) -> None:
    channel = await session.channel(confirms=True)
    queue = await connection.declare_processor_queue(channel, name)
    try:
        await channel.default_exchange.publish(Message(b"doctor"), routing_key=queue.name, mandatory=True)
        if await queue.get(no_ack=True, fail=False) is None:
            raise BrokerUnavailable("a message that the broker confirmed did not arrive: look at its policies")
    finally:
        await queue.delete(if_unused=False, if_empty=False)


def _policies(url: URL, server: str) -> Requirement:
    vhost = url.path.removeprefix("/") or "/"
    remedy = (
        f"rabbitmqctl list_policies -p '{vhost}': none should set message-ttl, max-length or expires on hascheduler.*"
    )
    return Requirement(server, "policies", RequirementState.UNKNOWN, "AMQP does not show them", remedy)
