"""The least time and memory in which a process can know all that waits in the database, as a replica does at its start.

Each form is a process of its own, from its start: the *least* has the libraries of a replica, and reads the fields that
a mirror needs as raw bytes that nobody decodes or keeps; *as stored* it has the program too, and the driver decodes
them; *mirrored* they are folded into a mirror and a core, which keep them. There is no server, no router between the
two, no election and no lease, and nobody asks whether it is ready.
"""

import asyncio
import sys
import time
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.servers import start_mongod
from hascheduler.errors import WorldError
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from tests.bench.cast import own_mb, resident_mb
from tests.bench.figures import Figures
from tests.bench.floor.at_rest import LIBRARY_MODULES, PROGRAM_MODULES
from tests.bench.floor.forms import Form
from tests.bench.lone_replica import READY_LIMIT_S
from tests.bench.pending import write_pending
from tests.bench.schedules import write_schedules

FORMS = (Form.LEAST, Form.AS_STORED, Form.MIRRORED)
_WRITERS = {"schedules": ("schedules", write_schedules), "pending": ("jobs", write_pending)}


def measure_snapshots(count: int) -> dict[str, Figures]:
    """With so many schedules, and with so many pending jobs: in each form."""
    return run_in_foreground(_measure(count))


async def _measure(count: int) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    async with start_mongod() as mongod, AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
        for noun, (collection, write) in _WRITERS.items():
            database = f"floor-{noun}"
            await ensure_collections_and_indexes(client[database])
            await write(client, database, count)
            for form in FORMS:
                found[form.case(f"{count:,} {noun}")] = await _start(mongod.uri, database, collection, form)
            await client.drop_database(database)
    return found


async def _start(uri: str, database: str, collection: str, form: Form) -> Figures:
    modules = LIBRARY_MODULES if form is Form.LEAST else PROGRAM_MODULES
    command = (
        sys.executable,
        "-m",
        "tests.bench.floor.snapshot_reader",
        uri,
        database,
        collection,
        form,
        ",".join(modules),
    )
    began_at = time.monotonic()
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(READY_LIMIT_S):
            if not await child.stdout.readline():
                raise WorldError(f"the process that reads {collection} {form} has ended")
        ready_s, process = round(time.monotonic() - began_at, 2), psutil.Process(child.pid)
        return {"ready_s": ready_s, "resident_mb": resident_mb(process), "memory_mb": own_mb(process)}
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
