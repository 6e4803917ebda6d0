"""Reads a change stream up to a known change; it waits for that change, never for a span of time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.ports import Batch, ChangeSource, ChangeStream, ResourceStore
from hascheduler.schema.definition import Definition
from tests.factories import make_definition

PATIENCE_MS = 10_000


@asynccontextmanager
async def opened(source: ChangeSource, resume: Any | None = None) -> AsyncIterator[ChangeStream]:
    stream = await source.open(resume)
    try:
        yield stream
    finally:
        await stream.close()


async def put(store: ResourceStore[Any], noun: Any) -> None:
    """Create it, or replace what is there."""
    if await store.create(noun) is None:
        stored = await store.get(noun.name)
        assert stored is not None
        await store.replace(noun, stored["rev"])


@asynccontextmanager
async def opened_at_the_end(
    source: ChangeSource, definitions: ResourceStore[Definition]
) -> AsyncIterator[ChangeStream]:
    """A stream whose next change is the next write.

    One that was just opened may begin with the last change before it, as it begins *at* a moment.
    """
    async with opened(source) as stream:
        await put(definitions, make_definition("the beginning"))
        await changes_through(stream, "the beginning")
        yield stream


async def changes_until(stream: ChangeStream, last_id: object) -> tuple[list[Change], Batch]:
    """All changes up to the first of document ``last_id``, and the last batch; nothing may come after it."""
    changes: list[Change] = []
    async with asyncio.timeout(2 * PATIENCE_MS / 1_000):
        while True:
            batch = await stream.next_batch(PATIENCE_MS)
            changes += batch.changes
            if any(change.id == last_id for change in batch.changes):
                assert changes[-1].id == last_id
                return changes, batch


async def changes_through(stream: ChangeStream, last_id: object) -> list[Change]:
    """All changes up to the first of document ``last_id``."""
    changes, _ = await changes_until(stream, last_id)
    return changes


async def read_snapshot(stream: ChangeStream) -> list[Change]:
    return [change async for part in stream.snapshot() for change in part]


def whats(changes: list[Change]) -> list[tuple[Collection, object, bool]]:
    """Collection, id and whether it was deleted: whether the rest comes as a PUT or a PATCH is up to the backend."""
    return [(change.collection, change.id, change.operation is Operation.DELETE) for change in changes]


async def follow_into(mirror: Mirror, source: ChangeSource, stream: ChangeStream, last_id: str) -> None:
    """Fold the stream into ``mirror`` until it holds the definition ``last_id``, as a replica does."""
    async with asyncio.timeout(2 * PATIENCE_MS / 1_000):
        while last_id not in mirror.nouns(Collection.DEFINITIONS):
            mirror.fold((await stream.next_batch(PATIENCE_MS)).changes)
            asked = mirror.fold([]).wanted
            for collection in {collection for collection, _ in asked}:
                ids = [id for of, id in asked if of is collection]
                fetched = await source.fetch(collection, ids)
                mirror.fold_fetched([(collection, id) for id in ids], fetched)
