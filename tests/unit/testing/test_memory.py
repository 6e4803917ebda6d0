"""The faults that tests can request of the memory database, and the guarantees of the broker in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Confirm, Deliveries, Delivery
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries, MemoryTransport, Parked
from tests.contract.backends import Backend, memory_backend
from tests.contract.following import PATIENCE_MS, changes_through, opened
from tests.contract.job_states import bring_to, stored
from tests.factories import NOW, make_definition, make_job, make_processor, make_replica

# The database


@pytest.fixture
def connection() -> MemoryConnection:
    return MemoryConnection(MemoryDatabase())


@pytest.fixture
def backend(connection: MemoryConnection) -> Backend:
    return memory_backend(connection)


@pytest.fixture
def other(connection: MemoryConnection) -> Backend:
    """The same database by another way."""
    return memory_backend(MemoryConnection(connection.database))


@pytest.mark.parametrize(("carried_out", "state"), [(False, JobState.PENDING), (True, JobState.DISPATCHED)])
async def test_decisions_without_an_answer_are_unknown(
    connection: MemoryConnection, backend: Backend, carried_out: bool, state: JobState
) -> None:
    await backend.jobs.submit(make_job())
    connection.fail_next(of="claims", carried_out=carried_out)
    decisions = [Dispatch("a", 1, "p1")]
    assert await backend.claims.apply(decisions, NOW, majority=True) == [Settlement.UNKNOWN]
    assert (await stored(backend))["state"] == state
    assert await backend.claims.apply(decisions, NOW, majority=True) == [Settlement.DONE]


async def test_a_broken_stream_is_resumed_and_nothing_is_lost(connection: MemoryConnection, backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
        connection.cut()
        connection.restore()
        await backend.definitions.create(make_definition("1"))
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await stream.next_batch(PATIENCE_MS)
    async with opened(backend.source, resume) as stream:
        assert [change.id for change in await changes_through(stream, "1")] == ["1"]


async def test_the_history_is_bounded() -> None:
    connection = MemoryConnection(MemoryDatabase(events_max=10))
    backend = memory_backend(connection)
    async with opened(backend.source) as stream:
        for number in range(11):
            await backend.jobs.submit(make_job(f"{number:02}"))
        with pytest.raises(HistoryLost):
            await stream.next_batch(PATIENCE_MS)


async def test_expired_documents_are_deleted_when_time_passes(connection: MemoryConnection, backend: Backend) -> None:
    database = connection.database
    database.pass_time_to(NOW)
    await backend.board.beat(make_replica("r1"))
    await backend.work.register(make_processor("p1"))
    await bring_to(backend, JobState.SUCCEEDED, "ended")
    await backend.jobs.submit(make_job("waits"))
    database.pass_time_to(WallMs(NOW + 59_999))
    assert database.find(Collection.REPLICAS, "r1") is not None
    async with opened(backend.source) as stream:
        await stream.next_batch(0)
        database.pass_time_to(WallMs(NOW + 60_000))
        assert [change.id for change in await changes_through(stream, "r1")] == ["r1"]
    database.pass_time_to(WallMs(NOW + 86_400_000))
    assert database.find(Collection.PROCESSORS, "p1") is None
    assert database.find(Collection.JOBS, "ended") is None
    assert database.find(Collection.JOBS, "waits") is not None


# The broker


CONFIRMED, UNKNOWN = Confirm.CONFIRMED, Confirm.UNKNOWN


def message(job_id: str) -> Message:
    return Message(MessageKind.RUN, job_id, 1)


@asynccontextmanager
async def consumed(deliveries: Deliveries) -> AsyncIterator[asyncio.Queue[Delivery]]:
    arrived: asyncio.Queue[Delivery] = asyncio.Queue(100)
    async with asyncio.TaskGroup() as tasks:
        consuming = tasks.create_task(deliveries.run(arrived.put))
        await asyncio.sleep(0)  # its queue is declared at its first step
        yield arrived
        consuming.cancel()


async def next_job(arrived: asyncio.Queue[Delivery], *, acknowledge: bool = True) -> str:
    async with asyncio.timeout(10):
        delivery = await arrived.get()
    if acknowledge:
        await delivery.ack()
    return decode_message(delivery.body).job_id


async def test_a_message_to_an_unknown_queue_is_not_confirmed() -> None:
    assert await MemoryTransport(MemoryBroker()).publish([("p1", message("a"))]) == [UNKNOWN]


async def test_unacknowledged_messages_are_delivered_again_first() -> None:
    broker = MemoryBroker()
    deliveries = MemoryDeliveries(broker, "p1", 8)
    async with consumed(deliveries) as arrived:
        await MemoryTransport(broker).publish([("p1", message(id)) for id in "abc"])
        jobs = [await next_job(arrived, acknowledge=id == "b") for id in "abc"]
        assert jobs == ["a", "b", "c"]
    await MemoryTransport(broker).publish([("p1", message("d"))])
    async with consumed(deliveries) as arrived:
        assert [await next_job(arrived) for _ in range(3)] == ["a", "c", "d"]
    assert broker.waiting("p1") == 0


async def test_no_more_is_delivered_than_may_be_unacknowledged() -> None:
    broker = MemoryBroker()
    async with consumed(MemoryDeliveries(broker, "p1", slots=1)) as arrived:
        await MemoryTransport(broker).publish([("p1", message(str(number))) for number in range(20)])
        held = [await arrived.get() for _ in range(18)]
        assert broker.waiting("p1") == 2
        await held[0].ack()
        assert await next_job(arrived) == "18"


async def test_a_parked_message_leaves_the_queue_with_its_reason() -> None:
    broker = MemoryBroker()
    async with consumed(MemoryDeliveries(broker, "p1", 8)) as arrived:
        broker.put("p1", b"nonsense")
        await (await arrived.get()).park("not JSON")
    assert list(broker.parked) == [Parked("p1", b"nonsense", "not JSON")]
    assert broker.waiting("p1") == 0
