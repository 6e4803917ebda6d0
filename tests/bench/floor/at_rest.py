"""The least that a replica can take with these libraries: of memory what is loaded, of CPU what its connections need.

*Loaded* is a process that has imported the libraries of a replica, and one that has imported its program too, models
and routes included; both have done nothing.

*At rest* is a process that does what the protocol asks of a replica while there is nothing to do, through the server
and the driver that it uses, and no more: a listening HTTP server, the driver's monitors, a change stream of the whole
database as raw bytes that nobody decodes, and once a second its heartbeat, a majority-acknowledged write. One that
follows lets the server gather events; the one that leads reads them as they come, as a job may be among them, and
renews its lease once a second. Two follow one, and two processors show life, as what one writes is an event for all.
There is no fold, no election, no metric and no log.

Run as a program, ``python -m tests.bench.floor.at_rest URI ROLE NAME``, this module is one of those five.
"""

import asyncio
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import psutil
import uvicorn
import uvloop
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.write_concern import WriteConcern

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.servers import start_mongod
from hascheduler.errors import WorldError
from tests.bench.cast import own_mb, resident_mb
from tests.bench.figures import Figures
from tests.bench.floor.exchanges import DATABASE
from tests.bench.floor.streams import FOLLOWER_RESTS_S, follow
from tests.bench.idle import usage_of

LIBRARIES, PROGRAM = "the libraries alone", "the program loaded"
FOLLOWING, LEADING = "at rest", "at rest, leading"
LIBRARY_MODULES = (
    "aio_pika", "croniter", "fastapi", "httptools", "orjson", "prometheus_client", "pydantic_settings", "pymongo",
    "structlog", "tenacity", "typer", "uvicorn", "uvloop",
)  # fmt: skip
PROGRAM_MODULES = (*LIBRARY_MODULES, "hascheduler.assembly", "hascheduler.assembly_api")
_PROCESSOR = "processor"
_CAST = (LEADING, FOLLOWING, FOLLOWING, _PROCESSOR, _PROCESSOR)
_HEARTBEAT_S = 1
"""Between two heartbeats of a process, and two renewals of a lease."""
_SETTLE_S = 5
_PATIENCE_S = 30


def measure_loaded() -> dict[str, Figures]:
    """Memory by what was imported."""
    return {LIBRARIES: _loaded(LIBRARY_MODULES), PROGRAM: _loaded(PROGRAM_MODULES)}


def measure_at_rest(seconds: int) -> dict[str, Figures]:
    """CPU and memory of one that leads, and of one that follows, on average over all."""
    return run_in_foreground(_measure(seconds))


def _loaded(modules: tuple[str, ...]) -> Figures:
    program = f"import {', '.join(modules)}; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise WorldError("a module of a replica can't be imported")
        loaded = psutil.Process(process.pid)
        found = {"resident_mb": resident_mb(loaded), "memory_mb": own_mb(loaded)}
        process.communicate(b"\n", timeout=_PATIENCE_S)
    return found


async def _measure(seconds: int) -> dict[str, Figures]:
    processes: list[asyncio.subprocess.Process] = []
    cast: dict[str, list[psutil.Process]] = {LEADING: [], FOLLOWING: []}
    async with start_mongod() as mongod:
        try:
            for number, role in enumerate(_CAST):
                command = (sys.executable, "-m", __spec__.name, mongod.uri, role, f"process-{number}")
                processes.append(await asyncio.create_subprocess_exec(*command))
                if role in cast:
                    cast[role].append(psutil.Process(processes[-1].pid))
            await asyncio.sleep(_SETTLE_S)
            return await usage_of(cast, seconds)
        except psutil.NoSuchProcess:
            raise WorldError("one of the processes at rest has ended") from None
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _rest(uri: str, role: str, name: str) -> None:
    async with AsyncMongoClient[dict[str, Any]](uri) as client, asyncio.TaskGroup() as loops:
        database = client.get_database(DATABASE, write_concern=WriteConcern(w="majority"))
        loops.create_task(_show_life(database["life"], name))
        if role == _PROCESSOR:
            return
        loops.create_task(follow(database, 0 if role == LEADING else FOLLOWER_RESTS_S))
        if role == LEADING:
            loops.create_task(_show_life(database["leases"], "default"))
        config = uvicorn.Config(_answer, port=0, http="httptools", lifespan="off", log_config=None, access_log=False)
        loops.create_task(uvicorn.Server(config).serve())


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _show_life(collection: AsyncCollection[dict[str, Any]], id: str) -> None:
    while True:
        async with asyncio.timeout(_PATIENCE_S):
            seen = {"seen_at_ms": time.time_ns() // 1_000_000}
            await collection.update_one({"_id": id}, {"$set": seen}, upsert=True)
        await asyncio.sleep(_HEARTBEAT_S)


if __name__ == "__main__":
    uvloop.run(_rest(*sys.argv[1:4]))
