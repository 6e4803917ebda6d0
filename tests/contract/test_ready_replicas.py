"""Which replicas a shard's database knows as ready, for a process that does not host the shard."""

from collections.abc import Sequence

import pytest

from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.replicas import MongoReplicaBoard, ready_replicas
from tests.factories import make_replica


@pytest.mark.real
async def test_they_are_those_that_said_so_last(pymongo_client: Client, ready_databases: Sequence[str]) -> None:
    database = open_database(pymongo_client, ready_databases[0])
    board = MongoReplicaBoard(database)
    for status in (make_replica("r1"), make_replica("r2", ready=False), make_replica("r3"), make_replica("r4")):
        await board.beat(status)
    await board.beat(make_replica("r3", beat=2, ready=False))
    await board.remove("r4")
    assert await ready_replicas(database) == {"r1"}
