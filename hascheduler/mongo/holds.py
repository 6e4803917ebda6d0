"""Holds of partitions, and the end of transactions that a mover left open because it was killed or has stalled.

MongoDB keeps such a transaction for a minute or more (`transactionLifetimeLimitSeconds`), and nothing else can write
the documents it has written, such as the hold of the partition. Aborting one is always safe: a mover that goes on finds
it gone and begins again, and jobs that were submitted together, the only other transaction here, are inserted again. A
user of MongoDB may list and end its own sessions without a privilege.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import structlog
from pymongo.errors import DuplicateKeyError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_hold, encode_hold, readable_holds
from hascheduler.model.partition import Hold
from hascheduler.mongo.connection import CLIENT_OPTIONS, MAJORITY, Client, Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.ports import Clock
from hascheduler.telemetry.log_lines import Reminders


class MongoHoldStore:
    """`hascheduler.ports.leadership.HoldStore`."""

    def __init__(self, database: Database) -> None:
        self._holds = database[Collection.HOLDS.value].with_options(write_concern=MAJORITY)

    async def get(self, key: str) -> Hold | None:
        # A majority read, as the database is opened: it must not be rolled back.
        with faults("read a hold"):
            found = await self._holds.find_one({"_id": key})
        return None if found is None else decode_hold(key, found)

    async def all(self) -> Mapping[str, Hold]:
        with faults("read the holds"):
            return readable_holds(await self._holds.find().to_list(None))

    async def put(self, hold: Hold) -> bool:
        older = {"_id": hold.key, "$or": [{"rev": {"$lt": hold.rev}}, {"rev": {"$not": {"$type": "number"}}}]}
        with faults("write a hold"):
            for _ in range(2):  # the first may collide with an older one that was just being inserted
                with suppress(DuplicateKeyError):
                    await self._holds.replace_one(older, encode_hold(hold), upsert=True)
                    return True
        return False


log = structlog.get_logger(__name__)

_POLL_EVERY_S = 0.5
_IDLE_MICROS = 1_000_000
"""A running mover goes on within milliseconds."""


class OrphanedTransactions:
    """A loop that aborts abandoned transactions, twice a second while ``is_moving``.

    Each MongoDB has a loop of its own, as one may stall.
    """

    def __init__(self, databases: Sequence[Database], is_moving: Callable[[], bool], clock: Clock) -> None:
        self._clients: Sequence[Client] = list(dict.fromkeys(database.client for database in databases))
        self._is_moving = is_moving
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for client in self._clients:
                tasks.create_task(self._run(client))

    async def _run(self, client: Client) -> None:
        reminders = Reminders()
        while True:
            await asyncio.sleep(_POLL_EVERY_S)
            if not self._is_moving():
                continue
            try:
                if ended := await _abort_orphaned(client):
                    log.info("orphaned_transactions_aborted", transactions=ended)
                reminders.over()
            except StoreUnavailable as error:
                if reminders.is_due(str(error), self._clock.mono_ms()):
                    log.warning("orphaned_transactions_unknown", error=str(error))


async def _abort_orphaned(client: Client) -> int:
    """Abort idle transactions of hascheduler, and return how many there were."""
    idle = {"type": "idleSession", "transaction.timeInactiveMicros": {"$gte": _IDLE_MICROS}}
    sessions = [
        {"$currentOp": {"allUsers": False, "idleSessions": True}},
        {"$match": {"appName": CLIENT_OPTIONS["appname"], **idle}},
        {"$project": {"lsid.id": True}},
    ]
    with faults("abort orphaned transactions"):
        found = await (await awaited(client.admin.aggregate(sessions))).to_list(None)
        if found:
            await client.admin.command("killSessions", [{"id": each["lsid"]["id"]} for each in found])
    return len(found)
