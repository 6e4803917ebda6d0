"""What people define, written in the home and copied into all shards; and what several shards can't promise."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.definition import ConflictScope, Definition
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.sharding.copies import CopiesAtOnce

Resource = TypeVar("Resource")


class ShardedResourceStore(Generic[Resource]):
    """`hascheduler.ports.ResourceStore` of the home. ``require_keepable`` refuses what can't be kept over all shards,
    before anything is written."""

    def __init__(
        self,
        home: ResourceStore[Resource],
        collection: Collection,
        name_of: Callable[[Resource], str],
        copies: CopiesAtOnce,
        require_keepable: Callable[[Resource], None] = lambda _: None,
    ) -> None:
        self._home = home
        self._collection = collection
        self._name_of = name_of
        self._copies = copies
        self._require_keepable = require_keepable

    async def create(self, noun: Resource) -> StoredDocument | None:
        self._require_keepable(noun)
        document = await self._home.create(noun)
        if document is not None:
            await self._copies.written(self._collection, self._name_of(noun))
        return document

    async def put(self, noun: Resource) -> tuple[StoredDocument, bool]:
        self._require_keepable(noun)
        answer = await self._home.put(noun)
        await self._copies.written(self._collection, self._name_of(noun))
        return answer

    async def replace(self, noun: Resource, rev: int) -> StoredDocument | None:
        self._require_keepable(noun)
        document = await self._home.replace(noun, rev)
        if document is not None:
            await self._copies.written(self._collection, self._name_of(noun))
        return document

    async def get(self, name: str) -> StoredDocument | None:
        return await self._home.get(name)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        return await self._home.list(after, limit)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        deleted = await self._home.delete(name, rev)
        if deleted:
            await self._copies.written(self._collection, name)
        return deleted


def keepable_definition(shards: int) -> Callable[[Definition], None]:
    """Refuses the limits of a definition that ``shards`` shards can't keep. Each keeps one of a rate's count at least:
    else jobs of a shard would wait until another one gives its only unit up, which fills a bucket no sooner than the
    rate allows. A shared conflict group would need one order of all that runs."""

    def require(definition: Definition) -> None:
        rate = definition.rate_limit
        if rate is not None and rate.count < shards:
            raise InvalidInput(
                ("rate_limit", "count"),
                f"{rate.count} can't be divided between {shards} shards",
                f"{shards} or more: each keeps one at least",
            )
        if definition.conflict_group is not None and definition.conflict_scope is ConflictScope.SHARED:
            raise InvalidInput(
                ("conflict_scope",),
                f"jobs of different tenants may be in different ones of {shards} shards, which do not exclude each"
                " other",
                "tenant",
            )

    return require
