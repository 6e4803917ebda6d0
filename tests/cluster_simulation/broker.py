"""A broker that does what brokers do: it goes away and comes back without its messages, doubles them, is late."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from hascheduler.model.message import Message, encode_message
from hascheduler.ports import Confirm, Delivery
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries
from tests.cluster_simulation.loop import THE_WORLD
from tests.cluster_simulation.network import Network


class SimBroker:
    """Owner of the queues. ``is_lossy``: messages vanish, come twice, come late; their confirms vanish."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.queues = MemoryBroker()
        self.is_up = True
        self.is_blocked = False
        self.is_lossy = False

    def wipe(self) -> None:
        """Its disk is gone: every queue, with what is in it."""
        for name in list(self.queues._queues):
            self.queues.delete_queue(name)

    def publish(self, processor_id: str, message: Message) -> Confirm:
        chance = self.network.chance
        if not self.is_lossy or chance.random() > 0.1:
            return self.queues.publish(processor_id, message)
        fate = chance.choice(("lost", "twice", "late", "unconfirmed"))
        if fate == "unconfirmed":
            self.queues.publish(processor_id, message)
            return Confirm.UNKNOWN
        if fate == "twice":
            self.queues.publish(processor_id, message)
        if fate in ("twice", "late"):
            self.network.loop.call_in(THE_WORLD, chance.uniform(0.01, 20), self._deliver_late, processor_id, message)
        return Confirm.CONFIRMED

    def _deliver_late(self, processor_id: str, message: Message) -> None:
        if processor_id in self.queues._queues:
            self.queues.put(processor_id, encode_message(message))


class SimTransport:
    """`hascheduler.ports.Transport`."""

    def __init__(self, broker: SimBroker, name: str) -> None:
        self._broker = broker
        self._name = name

    async def run(self, turned: Callable[[], None] = lambda: None) -> None:
        while True:
            await asyncio.sleep(0.1)  # a client notices the loss of its connection late
            turned()

    @property
    def accepting(self) -> bool:
        is_here = self._broker.network.both_ways(self._name, "broker")
        return is_here and self._broker.is_up and not self._broker.is_blocked

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        network = self._broker.network
        await asyncio.sleep(network.chance.uniform(0.0005, 0.003))
        if not self.accepting:
            await asyncio.sleep(network.chance.choice((0.01, 5.0)))
            return [Confirm.UNKNOWN] * len(messages)
        confirms = [self._broker.publish(processor_id, message) for processor_id, message in messages]
        await asyncio.sleep(network.chance.uniform(0.0005, 0.003))
        is_still_there: bool = self.accepting
        return confirms if is_still_there else [Confirm.UNKNOWN] * len(messages)


class SimDeliveries:
    """`hascheduler.ports.Deliveries`: connected again after every outage."""

    def __init__(self, broker: SimBroker, processor_id: str, name: str, slots: int) -> None:
        self._broker = broker
        self._name = name
        self._inner = MemoryDeliveries(broker.queues, processor_id, slots)

    async def run(self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None] = lambda: None) -> None:
        while True:
            consuming = asyncio.create_task(self._inner.run(sink, turned))
            try:
                while self._is_connected:  # noqa: ASYNC110  # a client notices the loss of its connection late, too
                    await asyncio.sleep(0.1)
            finally:
                consuming.cancel()
                with suppress(asyncio.CancelledError):
                    await consuming
            while not self._is_connected:  # noqa: ASYNC110  # tries again now and then
                await asyncio.sleep(0.2)

    @property
    def consuming(self) -> bool:
        return self._inner.consuming

    async def delete(self) -> None:
        await self._inner.delete()

    @property
    def _is_connected(self) -> bool:
        return self._broker.is_up and self._broker.network.both_ways(self._name, "broker")
