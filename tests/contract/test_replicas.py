"""`ReplicaBoard`: the heartbeats of replicas."""

import time
from datetime import datetime

from hascheduler.model.collection import Collection
from hascheduler.schema.noun import read_document
from hascheduler.schema.replica import ReplicaStatus
from tests.contract.backends import Backend, on
from tests.factories import make_replica

# Not mongomock: it lacks $replaceWith, which an account is made of.
pytestmark = on("memory", "pymongo", "motor")


async def test_a_heartbeat_replaces_the_one_before(backend: Backend) -> None:
    await backend.board.beat(make_replica("r1", stream_lag_ms=None, digest="$d"))
    await backend.board.beat(make_replica("r2"))
    await backend.board.beat(make_replica("r1", beat=2, ready=False))
    for status in (make_replica("r1", beat=2, ready=False), make_replica("r2")):
        document = await backend.behind.find(Collection.REPLICAS, status.id)
        assert document is not None
        assert read_document(ReplicaStatus, status.id, document) == status


async def test_a_heartbeat_sets_when_the_document_expires(backend: Backend) -> None:
    await backend.board.beat(make_replica("r1"))
    document = await backend.behind.find(Collection.REPLICAS, "r1")
    assert document is not None
    assert isinstance(document["expire_at"], datetime)


async def test_a_heartbeat_returns_the_databases_time_or_none(backend: Backend) -> None:
    before_ms = time.time_ns() // 1_000_000
    told_ms = await backend.board.beat(make_replica("r1"))
    after_ms = time.time_ns() // 1_000_000
    # The servers of a test are on this machine, so there is one clock.
    assert told_ms is None or before_ms <= told_ms <= after_ms


async def test_the_document_of_a_replica_is_removed(backend: Backend) -> None:
    await backend.board.beat(make_replica("r1"))
    await backend.board.remove("r1")
    await backend.board.remove("r1")
    assert await backend.behind.find(Collection.REPLICAS, "r1") is None
