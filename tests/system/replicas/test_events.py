"""What happens to jobs, followed over HTTP at one replica after another and on the broker, while leaders are killed."""

import asyncio
import contextlib
import json
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aio_pika

from hascheduler.client import AsyncScheduler, Unavailable
from hascheduler.client.results import JobEvent
from hascheduler.model.event import is_position
from tests.system.processes import Processes, eventually


@dataclass
class Heard:
    """Events by id, in the order in which they came; one that comes twice must be the same."""

    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    resets: int = 0
    last_id: str | None = None

    def hear(self, event: dict[str, Any]) -> None:
        assert self.events.setdefault(event["id"], event) == event

    def take(self, event: JobEvent) -> None:
        if event.id is not None:
            assert is_position(event.id)
            self.last_id = event.id
        if event.type == "reset":
            self.resets += 1
        elif event.fields:
            self.hear(dict(event.fields))

    def lives(self) -> dict[str, list[str]]:
        """The types of the events of each job, in the order of their ids."""
        found: dict[str, list[str]] = defaultdict(list)
        for id in sorted(self.events):
            found[self.events[id]["job"]].append(self.events[id]["type"])
        return found

    def ended(self) -> set[str]:
        return {job for job, types in self.lives().items() if types[-1] == "succeeded"}


async def listen_to_any(processes: Processes, heard: Heard) -> None:
    """Goes from replica to replica, as a client behind a balancer does."""
    while True:
        for replica in list(processes.replicas.values()):
            async with AsyncScheduler(replica.url, patience=0) as scheduler:
                with contextlib.suppress(Unavailable):
                    async for event in scheduler.events.stream(after=heard.last_id):
                        heard.take(event)
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def hearing(processes: Processes, heard: Heard) -> AsyncIterator[None]:
    task = asyncio.create_task(listen_to_any(processes, heard))

    async def begun() -> bool:
        if task.done():
            task.result()
        return heard.last_id is not None

    try:
        await eventually(begun, "the stream has begun")
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def test_nothing_is_missed_when_leaders_are_killed(processes: Processes, amqp_url: str) -> None:
    exchange = f"test.events.{secrets.token_hex(4)}"
    processes.environment["HASCHEDULER_EVENTS_EXCHANGE"] = exchange
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    over_http, over_broker = Heard(), Heard()
    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        await channel.declare_exchange(exchange, "topic", durable=True)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, routing_key="job.#")

        async def arrive(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            event = json.loads(message.body)
            assert message.message_id == event["id"]
            over_broker.hear(event)

        await queue.consume(arrive, no_ack=True)
        async with hearing(processes, over_http):
            await processes.schedule("tick", "100ms")
            term = 0
            for _ in range(2):
                leader, term = await processes.leader(not_in_term=term)

                # From here on: a leader that starts now tells of nothing from before.
                async def enough(count: int = len(over_http.ended()) + 10) -> bool:
                    return len(over_http.ended()) >= count

                await eventually(enough, "jobs end")
                await leader.kill()
                await processes.leader(not_in_term=term)
                await processes.replica(leader.name)
            await processes.settled()
            done = {job async for job in _ended(processes)}

            async def all_heard() -> bool:
                return over_http.ended() >= done and over_broker.ended() >= done

            await eventually(all_heard, "every job's end was told twice over")
        await channel.exchange_delete(exchange)
    for heard in (over_http, over_broker):
        assert all(types[0] == "submitted" and types[-1] == "succeeded" for types in heard.lives().values())
    assert over_http.events == over_broker.events
    assert over_http.resets == 0


async def _ended(processes: Processes) -> AsyncIterator[str]:
    async for job in processes.database.jobs.find({"state": "succeeded"}, {"_id": True}):
        yield job["_id"]
