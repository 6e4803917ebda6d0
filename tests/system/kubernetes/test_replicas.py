"""Real replicas whose lease is at an API server: whatever happens to them or to it, nothing is missed or doubled."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hascheduler.embedded.children import Daemon
from hascheduler.kubernetes.leases import record_in
from hascheduler.model.leadership import LeaseRecord
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import NAMESPACE, ServiceAccount
from tests.system.processes import Processes, environment_of, eventually

EVERY_MS = 200
SCHEDULES = {f"tick-{number}": EVERY_MS for number in range(3)}
NAME = "hascheduler-default"
REPLICAS = ("one", "two")
LONG = {"HASCHEDULER_LEASE_DURATION": "10m", "HASCHEDULER_RENEW_DEADLINE": "9m"}
"""Nobody outwaits it: who takes over has seen the lease released."""

pytestmark = [pytest.mark.timeout(300)]


class LeasedProcesses(Processes):
    """Who leads is asked where it is kept."""

    cluster: ApiServerDouble

    def lease(self) -> LeaseRecord | None:
        if NAME not in self.cluster.leases.names(NAMESPACE):
            return None
        return record_in(self.cluster.leases.get(NAMESPACE, NAME), "default")

    async def holder(self) -> tuple[str, int]:
        lease = self.lease()
        return ("", 0) if lease is None else (lease.holder, lease.term)

    async def begin(self, **environment: str) -> tuple[Daemon, int]:
        await self.together(*REPLICAS, **environment)
        await self.processor("worker")
        for name in SCHEDULES:
            await self.schedule(name, f"{EVERY_MS}ms")
        leader = await self.leader()
        await self.fired(5, *SCHEDULES)
        return leader

    async def check(self) -> None:
        await self.assert_all_fired_once(SCHEDULES, 10)
        assert await self.database.leases.count_documents({}) == 0, "nothing is kept in two places"


@pytest.fixture
async def processes(
    tmp_path: Path, mongodb_uri: str, database_name: str, cluster: ApiServerDouble, account: ServiceAccount
) -> AsyncIterator[LeasedProcesses]:
    folder = tmp_path / "processes"
    folder.mkdir()
    environment = environment_of(mongodb_uri, "amqp://nobody@127.0.0.1:1/", database_name)
    environment |= {"HASCHEDULER_TRANSPORT": "mongo", **account.environment(cluster)}
    async with LeasedProcesses(folder, environment, mongodb_uri, database_name) as running:
        running.cluster = cluster
        yield running


async def test_on_sigterm_the_lease_is_released_and_another_leads_at_once(processes: LeasedProcesses) -> None:
    leader, term = await processes.begin(**LONG)
    assert await leader.terminate() == 0
    successor, next_term = await processes.leader(not_in_term=term)
    assert (successor is not leader, next_term) == (True, term + 1)
    await processes.fired(5, *SCHEDULES)
    assert await successor.terminate() == 0
    lease = processes.lease()
    assert lease is not None
    assert (lease.holder, lease.endpoint, lease.term) == ("", "", next_term)
    await processes.replica(leader.name, **LONG)
    await processes.fired(3, *SCHEDULES)
    await processes.check()


async def test_without_the_api_server_no_replica_leads_and_with_it_one_does(processes: LeasedProcesses) -> None:
    leader, term = await processes.begin()
    await processes.cluster.close()

    async def steps_down() -> bool:
        cluster = (await processes.http.get(leader.url + "/v1/cluster")).json()
        # MongoDB works, so it goes on serving.
        return cluster["ready"] and not cluster["leading"]

    await eventually(steps_down, "the leader steps down at its renew deadline, and serves")
    # What was under way ends within a beat. Then something else must happen to show that nothing does.
    await _beats(processes, 2)
    written = len(await processes.journal_terms())
    await _beats(processes, 8)
    assert len(await processes.journal_terms()) == written
    await processes.cluster.open()
    await processes.leader(not_in_term=term)
    await processes.fired(5, *SCHEDULES)
    await processes.check()


async def _beats(processes: LeasedProcesses, count: int) -> None:
    """Until every replica has shown so many more signs of life."""

    async def beats() -> dict[str, int]:
        return {found["_id"]: found["beat"] async for found in processes.database.replicas.find()}

    before = await beats()

    async def enough() -> bool:
        now = await beats()
        return all(now.get(id, 0) >= beat + count for id, beat in before.items())

    await eventually(enough, f"{count} beats")
