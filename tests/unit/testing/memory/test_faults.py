"""The faults that tests can request of the memory database, and what callers then get."""

import pytest

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.stream import MemoryChangeSource
from tests.contract.backends import Backend, memory_backend
from tests.contract.following import PATIENCE_MS, changes_through, opened
from tests.contract.job_states import SUCCEEDED, bring_to, stored
from tests.factories import NOW, make_definition, make_entry, make_job, make_lease, make_processor, make_replica


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


async def test_a_call_that_fails_before_it_is_carried_out_wrote_nothing(
    connection: MemoryConnection, backend: Backend
) -> None:
    connection.fail_next()
    with pytest.raises(StoreUnavailable):
        await backend.jobs.submit(make_job())
    assert await backend.jobs.get("a") is None


async def test_a_call_whose_answer_is_lost_was_carried_out(connection: MemoryConnection, backend: Backend) -> None:
    connection.fail_next(carried_out=True)
    with pytest.raises(StoreUnavailable):
        await backend.journal.insert(make_entry(1))
    # As the port says: the repeat is refused, and the stored entry is one's own.
    assert await backend.journal.insert(make_entry(1)) is False
    assert await backend.journal.get("default", 1) == make_entry(1)


async def test_as_many_calls_fail_as_requested(connection: MemoryConnection, backend: Backend) -> None:
    connection.fail_next(3)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await backend.leases.get("default")
    assert await backend.leases.get("default") is None


async def test_faults_can_be_limited_to_one_kind_of_call(connection: MemoryConnection, backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    connection.fail_next(of="work.finish", carried_out=True)
    connection.fail_next(of="leases")
    assert (await stored(backend))["state"] == JobState.RUNNING
    with pytest.raises(StoreUnavailable):
        await backend.work.finish("a", 1, "p1", SUCCEEDED, NOW)
    assert (await stored(backend))["state"] == JobState.SUCCEEDED
    with pytest.raises(StoreUnavailable):
        await backend.leases.create(make_lease())


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


async def test_a_cut_connection_passes_no_exchange_while_others_go_on(
    connection: MemoryConnection, backend: Backend, other: Backend
) -> None:
    connection.cut()
    with pytest.raises(StoreUnavailable):
        await backend.definitions.create(make_definition())
    await other.definitions.create(make_definition())
    connection.mend()
    assert await backend.definitions.get("log") is not None


async def test_a_broken_stream_is_resumed_and_nothing_is_lost(connection: MemoryConnection, backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
        connection.cut()
        connection.mend()
        await backend.definitions.create(make_definition("1"))
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await stream.next_batch(PATIENCE_MS)
    async with opened(backend.source, resume) as stream:
        assert [change.id for change in await changes_through(stream, "1")] == ["1"]


async def test_a_stream_that_fell_behind_a_forgotten_history_is_lost(
    connection: MemoryConnection, backend: Backend
) -> None:
    async with opened(backend.source) as behind:
        await backend.definitions.create(make_definition("1"))
        connection.database.history.forget()
        with pytest.raises(HistoryLost):
            await behind.next_batch(PATIENCE_MS)


async def test_a_stream_that_is_up_to_date_outlives_a_forgotten_history(
    connection: MemoryConnection, backend: Backend
) -> None:
    async with opened(backend.source) as stream:
        await backend.definitions.create(make_definition("1"))
        await changes_through(stream, "1")
        connection.database.history.forget()
        await backend.definitions.create(make_definition("2"))
        assert [change.id for change in await changes_through(stream, "2")] == ["2"]


async def test_the_history_is_bounded() -> None:
    connection = MemoryConnection(MemoryDatabase(events_max=10))
    backend = memory_backend(connection)
    async with opened(backend.source) as stream:
        for number in range(11):
            await backend.jobs.submit(make_job(f"{number:02}"))
        with pytest.raises(HistoryLost):
            await stream.next_batch(PATIENCE_MS)


async def test_a_source_may_deliver_in_small_batches(connection: MemoryConnection, backend: Backend) -> None:
    async with opened(MemoryChangeSource(connection, batch_max=2)) as stream:
        for number in range(5):
            await backend.jobs.submit(make_job(str(number)))
        sizes = [len((await stream.next_batch(0)).changes) for _ in range(4)]
        assert sizes == [2, 2, 1, 0]
        assert [len(changes) async for changes in stream.snapshot()] == [2, 2, 1]


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
