"""One database that tests use in turn, empty and with all collections and indexes.

Creating them takes a third of a second, and more than a thousand tests need them. So what a test leaves is deleted,
and the next test gets the same database. If a test changed more than documents, or left very many, the next one gets
a new database.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pymongo.errors import AutoReconnect
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from hascheduler.mongo.connection import Client, Database, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes

_DELETED_MAX = 5_000
"""Beyond, another database is sooner made than these are deleted."""


@dataclass
class KeptDatabase:
    """Owner of the current database, if there is one, and of a record of its collections and indexes."""

    client: Client
    _database: Database | None = None
    _made_of: Mapping[str, Any] = field(default_factory=dict)

    async def emptied(self) -> str:
        """Return the name of the database, emptied or new."""
        async for attempt in _until_found_again():
            with attempt:
                await self.client.admin.command("ping")
        if self._database is not None and not await self._empty(self._database):
            await self.drop()
        if self._database is None:
            self._database = open_database(self.client, f"test-{secrets.token_hex(6)}")
            await ensure_collections_and_indexes(self._database)
            self._made_of = await _made_of(self._database)
        return self._database.name

    async def drop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            async for attempt in _until_found_again():
                with attempt:
                    await self.client.drop_database(database.name)

    async def _empty(self, database: Database) -> bool:
        """Delete all documents; return False if that does not restore the database."""
        if await _made_of(database) != self._made_of:
            return False
        counts = await asyncio.gather(*(database[name].estimated_document_count() for name in self._made_of))
        if sum(counts) > _DELETED_MAX:
            return False
        left = [name for name, count in zip(self._made_of, counts, strict=True) if count]
        await asyncio.gather(*(database[name].delete_many({}) for name in left))
        # Streams begin with the last write that there was: not with these deletions.
        await self.client.admin.command({"appendOplogNote": 1, "data": {"emptied": database.name}})
        return True


def _until_found_again() -> AsyncRetrying:
    """Retry while the client takes the server for lost, which happens after a test that blocked the loop for long."""
    return AsyncRetrying(
        retry=retry_if_exception_type(AutoReconnect), stop=stop_after_attempt(10), wait=wait_fixed(0.2), reraise=True
    )


async def _made_of(database: Database) -> Mapping[str, Any]:
    """Return the identity and the indexes of each collection, by name; a recreated collection has another identity."""
    found = {each["name"]: each["info"]["uuid"] for each in await (await database.list_collections()).to_list()}
    indexes = await asyncio.gather(*(database[name].index_information() for name in found))
    return {name: (found[name], index) for name, index in zip(found, indexes, strict=True)}
