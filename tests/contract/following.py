"""Reads a change stream up to a known change, and writes what there is to follow; it never waits for a span of time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold
from hascheduler.model.schema_version import SchemaVersion, encode_schema_version
from hascheduler.ports import Batch, ChangeSource, ChangeStream, JobStore, ResourceStore
from hascheduler.schema.definition import Definition
from tests.contract.backends import Backend
from tests.contract.checks import applied
from tests.contract.job_states import bring_to
from tests.factories import (
    make_calendar,
    make_definition,
    make_entry,
    make_fire,
    make_job,
    make_lane,
    make_lease,
    make_pause,
    make_processor,
    make_replica,
    make_schedule,
    make_tenant,
    make_token,
)

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


async def mark(backend: Backend, name: str = "the end") -> None:
    await put(backend.definitions, make_definition(name))


async def write_everything(backend: Backend) -> None:
    """Something in every collection, and a job in each state."""
    await backend.leases.create(make_lease())
    await backend.leases.update(make_lease(), make_lease(renewals=1))
    await backend.journal.insert(make_entry(1))
    await backend.board.beat(make_replica())
    await backend.work.register(make_processor())
    await backend.work.beat("p1", 2, draining=False, parked=0)
    await put(backend.definitions, make_definition("log"))
    await backend.lanes.create(make_lane())
    await backend.calendars.create(make_calendar())
    await backend.tenants.create(make_tenant())
    await backend.pauses.create(make_pause())
    await backend.tokens.create(make_token())
    await backend.holds.put(Hold("cap/all", 2, is_held=True))
    await backend.schedules.create(make_schedule())
    await backend.schedules.edit("tick", 1, {"payload": "new"})
    await applied(backend.claims, make_fire(1))
    await backend.behind.insert(Collection.META, encode_schema_version(SchemaVersion(1)))
    for state in JobState:
        await bring_to(backend, state, state.value)


_WRITES_MAX = 5_000


async def a_start_is_gap_free(source: ChangeSource, jobs: JobStore, definitions: ResourceStore[Definition]) -> None:
    """Jobs are written all the while a stream is opened and its snapshot read; a mirror gets to see every one."""
    written: list[str] = []
    has_begun, has_read = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        while not has_read.is_set() and len(written) < _WRITES_MAX:
            id = f"job-{len(written):05}"
            await jobs.submit(make_job(id))
            written.append(id)
            has_begun.set()
        await put(definitions, make_definition("the end"))

    mirror = Mirror()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        await has_begun.wait()
        async with opened(source) as stream:
            async for changes in stream.snapshot():
                mirror.fold(changes)
            has_read.set()
            await follow_into(mirror, source, stream, "the end")
    assert sorted(mirror.nouns(Collection.JOBS)) == written
