"""An absent server and a malformed URI become this project's errors."""

import gc
import socket

import pymongo
import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Settlement
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.leases import MongoLeaseStore
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.schema.schedule import Basis
from tests.contract.backends import RETENTION_MS

BASIS = Basis(cursor_ms=WallMs(500), since_ms=WallMs(500))


# The driver leaves its socket to the collector when it is interrupted while it connects.
leaves_sockets = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@leaves_sockets
async def test_an_absent_server_is_unavailable_or_unknown_and_the_uri_stays_secret() -> None:
    with socket.socket() as unused, pymongo.timeout(0.3):
        unused.bind(("127.0.0.1", 0))
        client = connect(f"mongodb://user:hunter2@127.0.0.1:{unused.getsockname()[1]}/")
        database = open_database(client, "none")
        for call in (MongoLeaseStore(database).get("default"), MongoChangeSource(database).open(None)):
            with pytest.raises(StoreUnavailable) as caught:
                await call
            assert "hunter2" not in str(caught.value)
        decisions: list[Decision] = [Fire("tick", WallMs(1), BASIS), Dispatch("a", 1, "p")]
        answers = await MongoClaimStore(database, RETENTION_MS).apply(decisions, WallMs(2), majority=True)
        assert answers == [Settlement.UNKNOWN, Settlement.UNKNOWN]
        await client.close()
    gc.collect()


@pytest.mark.parametrize("uri", ["amqp://u:hunter2@h", "mongodb://u:hun@ter2@h:1", "mongodb://h:hunter2", ""])
def test_a_malformed_uri_is_not_repeated(uri: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        connect(uri)
    assert "ter2" not in str(caught.value)
