"""A mongod of a test's own, with the options that it asks for."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hascheduler.embedded.children import free_port, start_child
from hascheduler.embedded.servers import find_mongod, greets


@asynccontextmanager
async def mongod(folder: Path, *options: str) -> AsyncIterator[int]:
    """Yield the port of a server that listens; its data and its log are in ``folder``."""
    port = free_port()
    arguments = [
        *(find_mongod(), "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1"),
        *("--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", *options),
    ]
    child = await start_child("mongod", arguments, folder / "mongod.log", environment=os.environ)
    try:
        await child.until(lambda: greets(port), 60)
        yield port
    finally:
        await child.stop()
