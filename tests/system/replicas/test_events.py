"""What happens to jobs, received from the broker while leaders are killed; chaos rows judge the stream over HTTP."""

import json
import secrets
from collections import defaultdict
from typing import Any

import aio_pika

from tests.system.processes import Processes, eventually


async def test_no_event_is_missed_on_the_broker_when_leaders_are_killed(processes: Processes, amqp_url: str) -> None:
    exchange = f"test.events.{secrets.token_hex(4)}"
    processes.environment["HASCHEDULER_EVENTS_EXCHANGE"] = exchange
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    events: dict[str, dict[str, Any]] = {}

    def lives() -> dict[str, list[str]]:
        """The types of the events of each job, in the order of their ids."""
        found: dict[str, list[str]] = defaultdict(list)
        for id in sorted(events):
            found[events[id]["job"]].append(events[id]["type"])
        return found

    def ended() -> set[str]:
        return {job for job, types in lives().items() if types[-1] == "succeeded"}

    async def receive(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        event = json.loads(message.body)
        assert message.message_id == event["id"]
        assert events.setdefault(event["id"], event) == event, "one id, two events"

    async with await aio_pika.connect(amqp_url) as connection:
        channel = await connection.channel()
        await channel.declare_exchange(exchange, "topic", durable=True)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, routing_key="job.#")
        await queue.consume(receive, no_ack=True)
        await processes.schedule("tick", "100ms")
        term = 0
        for _ in range(2):
            leader, term = await processes.leader(not_in_term=term)

            # From here on: a leader that starts now publishes nothing from before.
            async def enough(count: int = len(ended()) + 10) -> bool:
                return len(ended()) >= count

            await eventually(enough, "jobs end")
            await leader.kill()
            await processes.leader(not_in_term=term)
            await processes.replica(leader.name)
        await processes.settled()
        done = {job["_id"] async for job in processes.database.jobs.find({"state": "succeeded"}, {"_id": True})}

        async def all_received() -> bool:
            return ended() >= done

        await eventually(all_received, "the end of every job was published")
        await channel.exchange_delete(exchange)
    assert all(types == ["submitted", "dispatched", "started", "succeeded"] for types in lives().values()), lives()
