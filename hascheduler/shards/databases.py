"""The databases of all shards of one process, with one client for each MongoDB.

The home has to answer before anything begins. A shard in another MongoDB may answer later: until then this process does
nothing there, and all other shards go on. No process uses the database of a shard before it has compared its identity
with the one that the home knows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from secrets import token_hex

import structlog

from hascheduler.errors import DatabaseUnfit, InvalidInput, StoreUnavailable, Unreachable
from hascheduler.lifecycle import database_ready
from hascheduler.mongo.connection import Client, Database, connect, open_database, tls_options
from hascheduler.mongo.identities import require_known_database, require_own_database
from hascheduler.mongo.schema.indexes import reach
from hascheduler.mongo.schema.migrate import prepare
from hascheduler.mongo.unreachable import explained
from hascheduler.settings import Settings

log = structlog.get_logger(__name__)


class ShardDatabases(AbstractAsyncContextManager["ShardDatabases"]):
    """Owner of the clients. ``all`` are the databases of the shards, the home's first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._uris = settings.shard_uris
        self._clients: Mapping[str, Client] = {
            uri: connect(
                uri,
                tls_ca_file=settings.mongodb_tls_ca_file,
                tls_cert_file=settings.mongodb_tls_cert_file,
                setting="HASCHEDULER_MONGODB_URI" if uri == self._uris[0] else "HASCHEDULER_SHARD_MONGODB_URIS",
            )
            for uri in dict.fromkeys(self._uris)
        }
        self.all: Sequence[Database] = [
            open_database(self._clients[uri], name)
            for uri, name in zip(self._uris, settings.shard_databases, strict=True)
        ]
        self._late: dict[int, Callable[[], Awaitable[None]]] = {}

    @property
    def home(self) -> Database:
        return self.all[0]

    def is_at_home(self, index: int) -> bool:
        """Return True if that shard is in the same MongoDB as the home."""
        return self.all[index].client is self.home.client

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.gather(*(client.close() for client in self._clients.values()))

    async def home_ready(self, doing: Callable[[Database], Awaitable[None]] = reach) -> bool:
        """Run ``doing`` on the home's database, with retries; return False if a signal came first."""
        return await self._ready(0, partial(doing, self.home))

    async def prepare_all(self) -> bool:
        """Prepare the databases as a replica does at its start; return False if a signal came first.

        Leave a shard in another MongoDB that does not answer for later (`catch_up`). Raise `InvalidInput` if a database
        is not the shard's, or if waiting will not help.
        """
        return await self.home_ready(prepare) and await self._others_ready(self._prepare)

    async def compare_all(self) -> bool:
        """Compare identities as `prepare_all` does, but write nothing: for a processor."""
        return await self._others_ready(self._compare)

    async def all_compared(self, *, new: bool) -> bool:
        """Compare identities as `compare_all` does, for a command that uses the databases at once: all must answer.

        With ``new``, accept a shard whose database the home does not know yet.
        """
        return await self._others_ready(partial(self._compare, new=new), later=False)

    async def demand(self, doing: Callable[[], Awaitable[None]]) -> None:
        """Run ``doing`` once on the home's database; if it is unreachable, raise the mistake that explains it."""
        try:
            await self._explained(0, doing)
        except Unreachable as error:
            raise error.mistake from None

    async def catch_up(self, index: int) -> None:
        """Do what was left for later, if anything; raise `StoreUnavailable` while that fails."""
        if index in self._late:
            try:
                await self._late[index]()
            except (InvalidInput, DatabaseUnfit) as error:
                raise StoreUnavailable(str(error)) from error
            self._late.pop(index, None)

    async def _others_ready(self, doing: Callable[[int], Awaitable[None]], *, later: bool = True) -> bool:
        for index in range(1, len(self.all)):
            do = partial(doing, index)
            if not later or self.is_at_home(index):
                if not await self._ready(index, do):
                    return False
                continue
            try:
                await self._explained(index, do)
            except StoreUnavailable as error:
                if isinstance(error, Unreachable) and error.stays:
                    raise error.mistake from error
                self._late[index] = do
                log.warning("shard_unreachable", shard=self._settings.shard_names[index], error=str(error))
        return True

    async def _ready(self, index: int, doing: Callable[[], Awaitable[None]]) -> bool:
        return await database_ready(partial(self._explained, index, doing), self._settings.startup_patience_ms)

    async def _explained(self, index: int, doing: Callable[[], Awaitable[None]]) -> None:
        """Run ``doing`` on the database of that shard; its `StoreUnavailable` has the cause, if there is one."""
        tls = tls_options(self._settings.mongodb_tls_ca_file, self._settings.mongodb_tls_cert_file)
        try:
            await explained(doing, self._uris[index], tls)
        except Unreachable as error:
            if self.is_at_home(index):
                raise
            problem = f"shard {self._settings.shard_names[index]}: {error.mistake.problem}"
            mistake = InvalidInput(("HASCHEDULER_SHARD_MONGODB_URIS",), problem, error.mistake.expected)
            raise Unreachable(mistake, stays=error.stays) from error

    async def _prepare(self, index: int) -> None:
        database, shard = self.all[index], self._settings.shard_names[index]
        await require_own_database(self.home, database, shard, token_hex(16))
        await prepare(database)

    async def _compare(self, index: int, *, new: bool = False) -> None:
        await require_known_database(self.home, self.all[index], self._settings.shard_names[index], new=new)
