"""The leader's accounts survive a time without any replica."""

from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, TermBegan
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.collection import Collection
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryAccountStore
from tests.unit.daemon.doubles import HandClock
from tests.unit.dispatch.nouns import make_job, make_processor, wall


def bookkeeper(core: Dispatcher, connection: MemoryConnection, term: int | None) -> CostCheckpoint:
    return CostCheckpoint(core, MemoryAccountStore(connection), HandClock(), name="default", term=lambda: term)


async def test_the_accounts_of_a_leader_are_those_that_the_next_start_begins_with() -> None:
    connection = MemoryConnection(MemoryDatabase())
    core = Dispatcher()
    core.step(wall(0), [TermBegan(1), ProcessorSeen(make_processor("p")), JobSeen(make_job("a", fairness_key="k"))])
    assert core.accumulated_cost_ms("default", "k") == 1_000
    await bookkeeper(core, connection, term=1).save()

    restarted = Dispatcher()
    accounts = await bookkeeper(restarted, connection, term=None).load()
    restarted.step(wall(0), [AccountsRestored(accounts)])
    assert restarted.accumulated_cost_ms("default", "k") == 1_000
    assert restarted.accumulated_cost_ms("default") == 1_000


async def test_a_follower_saves_nothing_and_a_broken_record_counts_as_none() -> None:
    connection = MemoryConnection(MemoryDatabase())
    keeper = bookkeeper(Dispatcher(), connection, term=None)
    await keeper.save()
    assert connection.database.find(Collection.ACCOUNTS, "default") is None
    connection.database.insert(Collection.ACCOUNTS, {"_id": "default", "accumulated": 7})
    assert await keeper.load() == AccountsSnapshot()
