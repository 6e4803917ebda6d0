"""One process that reads at its start what a replica reads, for the floors of `at_start`.

``python -m tests.bench.floor.snapshot_reader URI DATABASE COLLECTION FORM MODULES`` imports the modules, reads all
documents of the collection, says ``ready``, and stays until its input is closed. Imports are in the functions, as each
form loads what it needs and no more.
"""

import gc
import sys
from importlib import import_module
from typing import Any

_SLICE_MAX = 1_000
"""As many documents an exchange as a replica asks for."""


async def _read(uri: str, database: str, collection: str, form: str) -> Any:
    """What a replica would keep of it, in this form."""
    from pymongo import AsyncMongoClient

    async with AsyncMongoClient[dict[str, Any]](uri) as client:
        if form == "mirrored":
            return await _mirrored(client[database])
        return await _drained(client[database][collection], decoded=form == "as stored")


async def _drained(collection: Any, *, decoded: bool) -> None:
    """Nothing is kept of the fields that a mirror needs."""
    from hascheduler.model.collection import Collection
    from hascheduler.model.documents.lean_fields import LEAN_FIELDS

    fields = list(LEAN_FIELDS[Collection(collection.name)])
    if not decoded:
        async for _ in collection.find_raw_batches({}, fields, batch_size=_SLICE_MAX):
            pass
        return
    cursor = collection.find({}, fields, batch_size=_SLICE_MAX)
    while await cursor.to_list(_SLICE_MAX):
        pass


async def _mirrored(database: Any) -> Any:
    """A replica's snapshot in a mirror and a core, slice by slice, and nothing around them."""
    from hascheduler.clock import SystemClock
    from hascheduler.dispatch.dispatcher import Dispatcher
    from hascheduler.mirror.changes import JobSeen, ScheduleSeen
    from hascheduler.mirror.mirror import Mirror
    from hascheduler.mongo.stream.source import MongoChangeSource

    clock, mirror, core = SystemClock(), Mirror(), Dispatcher()
    stream = await MongoChangeSource(database).open(None)
    async for changes in stream.snapshot():
        facts = [fact for fact in mirror.fold(changes).facts if isinstance(fact, JobSeen | ScheduleSeen)]
        if facts:
            core.step(clock.wall_ms(), facts)
    await stream.close()
    return mirror, core


def main(uri: str, database: str, collection: str, form: str, modules: str) -> None:
    gc.disable()  # as a replica does while it reads
    for module in modules.split(","):
        import_module(module)
    import uvloop

    kept = uvloop.run(_read(uri, database, collection, form))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    del kept


if __name__ == "__main__":
    main(*sys.argv[1:6])
