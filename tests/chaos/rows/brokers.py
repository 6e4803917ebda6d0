"""RabbitMQ ends, forgets, loses queues, blocks, or delivers what it should not."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel

from hascheduler.model.message import Message, MessageKind, encode_message
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE, bundle_key, queue_name
from tests.chaos.mutations import mutated_bytes
from tests.chaos.row import Row
from tests.chaos.rows.processors import FEW, FEW_MIN, all_end
from tests.chaos.servers import Broker
from tests.chaos.stage import Stage
from tests.chaos.users import LoadPlan

MUTATIONS = 200


@asynccontextmanager
async def _channel(stage: Stage) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(stage.broker.url)
    try:
        yield await connection.channel()
    finally:
        with suppress(Exception):
            await connection.close()


async def _processor_ids(stage: Stage) -> list[str]:
    return [each["_id"] async for each in stage.database["processors"].find({}, {"_id": True})]


async def _away(
    stage: Stage,
    take: Callable[[Broker], Awaitable[None]],
    bring_back: Callable[[Broker], Awaitable[None]] = Broker.start,
    *,
    full: int = 3,
    for_s: tuple[float, float],
) -> None:
    """RabbitMQ is away once or ``full`` times, by chance so long."""
    for _ in range(stage.times(smoke=1, full=full)):
        await take(stage.broker)
        await asyncio.sleep(stage.chance.uniform(*for_s))
        await bring_back(stage.broker)
        await stage.quiet(7, 9)


async def _kill_and_wipe(broker: Broker) -> None:
    await broker.kill()
    broker.wipe()


async def _freeze(broker: Broker) -> None:
    broker.signal(signal.SIGSTOP)


async def _thaw(broker: Broker) -> None:
    broker.signal(signal.SIGCONT)


_stop_and_start = partial(_away, take=Broker.stop, for_s=(3, 10))
_sigkill = partial(_away, take=Broker.kill, full=4, for_s=(0.5, 3))
_wiped = partial(_away, take=_kill_and_wipe, for_s=(0, 0))
_sigstop = partial(_away, take=_freeze, bring_back=_thaw, for_s=(6, 12))
_blocked = partial(_away, take=Broker.raise_alarm, bring_back=Broker.clear_alarm, full=2, for_s=(6, 15))


async def _queues_deleted(stage: Stage) -> None:
    for _ in range(stage.times(smoke=5, full=15)):
        async with _channel(stage) as channel:
            for id in await _processor_ids(stage):
                await channel.queue_delete(queue_name(id))
        await asyncio.sleep(3)
    await stage.quiet(3, 6)


async def _bindings_deleted(stage: Stage) -> None:
    """Of one processor; then of all, as they go with the exchange. No consumer hears of it."""
    async with _channel(stage) as channel:
        id = stage.chance.choice(await _processor_ids(stage))
        queue = await channel.get_queue(queue_name(id))
        for key in (id, bundle_key(id)):
            await queue.unbind(DISPATCH_EXCHANGE, routing_key=key)
        await stage.quiet(3, 10)
        await all_end(stage)
        await channel.exchange_delete(DISPATCH_EXCHANGE)
        await stage.quiet(3, 10)
        await all_end(stage)


async def _strange_messages(stage: Stage) -> None:
    """Messages of every job, also of ended ones, go to every processor twice, in any order; and unreadable ones."""
    for _ in range(stage.times(smoke=4, full=15)):
        await asyncio.sleep(2)
        jobs = await _jobs(stage)
        ids = await _processor_ids(stage)
        messages = [
            (stage.chance.choice(ids), encode_message(Message(MessageKind.RUN, job["_id"], number)))
            for job in jobs
            for number in {max(1, job["attempt"] - 1), max(1, job["attempt"]), job["attempt"] + 1}
        ]
        messages += [(job["processor"], _own(job)) for job in jobs if job["processor"] for _ in range(2)]
        # A week-old cancel of what has long ended.
        messages += [
            (stage.chance.choice(ids), encode_message(Message(MessageKind.CANCEL, job["_id"], max(1, job["attempt"]))))
            for job in jobs
            if job["state"] in ("succeeded", "failed")
        ]
        messages += [(id, mutated_bytes(_own(jobs[0]), stage.chance)) for id in ids for _ in range(MUTATIONS // 3)]
        stage.chance.shuffle(messages)
        async with _channel(stage) as channel:
            exchange = await channel.get_exchange(DISPATCH_EXCHANGE)
            for processor, body in messages:
                with suppress(aio_pika.exceptions.DeliveryError):
                    await exchange.publish(aio_pika.Message(body), routing_key=processor, mandatory=False)
    await stage.quiet(2, 5)


async def _jobs(stage: Stage) -> list[dict[str, Any]]:
    fields = {"attempt": True, "state": True, "processor": True}
    return await stage.database["jobs"].find({}, fields).sort("submitted_at_ms", -1).limit(400).to_list(None)


def _own(job: dict[str, Any]) -> bytes:
    return encode_message(Message(MessageKind.RUN, job["_id"], max(1, job["attempt"])))


async def _away_in_every_way(stage: Stage) -> None:
    for away in (_stop_and_start, _sigkill, _sigstop):
        await away(stage)


_DURING = LoadPlan(submits_per_s=15)

ROWS = (
    Row("broker-stop-start", "RabbitMQ is stopped in good order for a while", _stop_and_start),
    Row("broker-sigkill", "RabbitMQ is killed", _sigkill, smoke=True),
    Row("broker-wiped", "RabbitMQ is killed and forgets everything", _wiped),
    Row("broker-sigstop", "RabbitMQ stalls", _sigstop),
    Row("broker-blocked", "RabbitMQ raises its memory alarm and takes nothing", _blocked),
    Row(
        "broker-away-with-fallback",
        "RabbitMQ is away in three ways, and processors find jobs in MongoDB",
        _away_in_every_way,
        settings={"HASCHEDULER_TRANSPORT_FALLBACK": "mongo"},
    ),
    Row(
        "bindings-deleted",
        "the bindings of one processor's queue are deleted, and then the exchange with all of them",
        _bindings_deleted,
        load=FEW,
        obligations_min=FEW_MIN,
        recovery_max_s=60.0,
    ),
    Row("queues-deleted", "the processors' queues are deleted with their messages", _queues_deleted),
    Row(
        "strange-messages",
        "duplicates, old and future attempts, cancels of what has ended, all to anybody and out of order, and"
        f" {MUTATIONS} mutations that nobody can read, each time",
        _strange_messages,
        load=_DURING,
    ),
)
