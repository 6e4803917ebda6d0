"""An absent server and a malformed URI become this project's errors."""

import asyncio
import gc
import socket
from unittest import mock

import pymongo
import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError
from pymongo.lock import _async_cond_wait, _async_create_condition, _async_create_lock

import hascheduler.mongo.connection  # what every process connects with
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Settlement
from hascheduler.errors import InvalidInput, StoreOverloaded, StoreUnavailable
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


OVERLOADED = [
    OperationFailure("slow down", 462, {"errorLabels": ["SystemOverloadedError", "RetryableError"]}),
    OperationFailure("slow down", 462, {"codeName": "IngressRequestRateLimitExceeded"}),
    OperationFailure("too many", 500, {"codeName": "TooManyOpenTransactions"}),
    AutoReconnect("refused at the handshake", {"errorLabels": ["SystemOverloadedError", "RetryableError"]}),
]


@pytest.mark.parametrize("error", OVERLOADED, ids=["labelled", "coded", "transactions", "connection"])
async def test_a_refusal_for_load_is_an_answer_of_the_database(error: PyMongoError) -> None:
    leases = MongoLeaseStore(open_database(connect("mongodb://127.0.0.1:1/"), "none"))
    refusing = mock.AsyncMock(side_effect=error)
    with mock.patch.object(AsyncCollection, "find_one", refusing), pytest.raises(StoreOverloaded, match="overloaded"):
        await leases.get("default")


async def test_claims_that_are_refused_for_load_are_unknown_and_so_are_tried_again_with_backoff() -> None:
    claims = MongoClaimStore(open_database(connect("mongodb://127.0.0.1:1/"), "none"), RETENTION_MS)
    refusing = mock.AsyncMock(side_effect=OVERLOADED[0])
    with mock.patch.object(AsyncMongoClient, "_retry_internal", refusing):
        decisions: list[Decision] = [Fire("tick", WallMs(1), BASIS), Dispatch("a", 1, "p")]
        answers = await claims.apply(decisions, WallMs(2), majority=True)
    assert refusing.called
    assert answers == [Settlement.UNKNOWN, Settlement.UNKNOWN]


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("between", range(6))
async def test_a_wait_that_is_cancelled_twice_leaves_the_lock_free(between: int) -> None:
    lock = _async_create_lock()
    condition = _async_create_condition(lock)

    async def wait() -> None:
        async with condition:
            await _async_cond_wait(condition, 30)

    waiting = asyncio.create_task(wait())
    await turns(3)
    await lock.acquire()  # another exchange has it when the first cancellation comes
    waiting.cancel()
    await turns(between)
    waiting.cancel()
    lock.release()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(30):
        await lock.acquire()


async def test_a_wait_in_this_task_ends_in_time() -> None:
    with pytest.raises(TimeoutError):
        await hascheduler.mongo.connection.wait_in_this_task(asyncio.Event().wait(), 0.01)
    assert await hascheduler.mongo.connection.wait_in_this_task(asyncio.sleep(0, "done"), None) == "done"
