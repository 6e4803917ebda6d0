"""What must hold of any `ChangeSource`; the planted bugs must fail these."""

import asyncio

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.ports import ChangeSource, JobStore, ResourceStore
from hascheduler.schema.definition import Definition
from tests.contract.following import follow_into, opened, put
from tests.factories import make_definition, make_job

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
