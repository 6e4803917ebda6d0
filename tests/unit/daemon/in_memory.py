"""A replica on stores in memory, in real time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.daemon.config import ReplicaPorts
from hascheduler.daemon.leadership.liveness import LivenessServer
from hascheduler.daemon.replica import Replica
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection
from hascheduler.testing.memory.leadership import (
    MemoryAccountStore,
    MemoryJournal,
    MemoryLeaseStore,
    MemoryReplicaBoard,
)
from hascheduler.testing.memory.messages import MemoryBroker, MemoryTransport
from hascheduler.testing.memory.stream import MemoryChangeSource
from tests.unit.daemon.doubles import CONFIG, running


@asynccontextmanager
async def replica_in_memory(
    name: str, connection: MemoryConnection, **ports: Any
) -> AsyncIterator[tuple[Replica, asyncio.Task[None]]]:
    """The replica and its loops; leaving the context is its death: nothing is handed over."""
    clock, liveness = SystemClock(), LivenessServer("127.0.0.1", 0, name)
    await liveness.bind()
    config = replace(
        CONFIG,
        replica_id=name,
        name=name,
        started_at_ms=clock.wall_ms(),
        liveness_endpoint=f"127.0.0.1:{liveness.port}",
        lease_duration_ms=60_000,
        renew_deadline_ms=40_000,
        retry_period_ms=10_000,  # a held stream is not stale for three of these
        heartbeat_timeout_ms=60_000,
    )
    given = {
        "source": MemoryChangeSource(connection),
        "leases": MemoryLeaseStore(connection),
        "journal": MemoryJournal(connection),
        "claims": MemoryClaimStore(connection, retention_ms=600_000),
        "accounts": MemoryAccountStore(connection),
        "board": MemoryReplicaBoard(connection),
        "transport": MemoryTransport(MemoryBroker()),
        "liveness": liveness,
        "clock": clock,
        **ports,
    }
    replica = Replica(config, ReplicaPorts(**given))
    async with running(liveness.run()):
        task = asyncio.create_task(replica.run())
        try:
            yield replica, task
        finally:
            task.cancel()
            await asyncio.wait({task})
