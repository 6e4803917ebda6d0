"""Replicas and processors as children: the one way in which the demo, the tests and the benches start them.

Who starts them owns what differs: their environment, their ports, and which of them is killed when.
"""

import asyncio
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from hascheduler.embedded.children import Child, start_child
from hascheduler.errors import StoreUnavailable

READY_S = 60.0
_LOOK_EVERY_S = 0.05


@dataclass
class Daemon(Child):
    """``url`` is where it answers probes; "" of one that answers none."""

    url: str = ""

    async def ready(self, limit_s: float = READY_S) -> None:
        """Wait until it answers that it is ready; `StoreUnavailable` with its last words if it ends or takes longer."""
        try:
            # It speaks plain HTTP; to load all authorities for each of many processes takes longer than most answers.
            none_trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            async with asyncio.timeout(limit_s), httpx.AsyncClient(verify=none_trusted) as http:
                while self.running:
                    try:
                        if (await http.get(f"{self.url}/readyz")).status_code == httpx.codes.OK:
                            return
                    except httpx.TransportError:
                        pass
                    await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError:
            pass
        raise StoreUnavailable(f"{self.name} is not ready; its log ends with:\n{self.last_lines()}")


async def start_daemon(
    name: str,
    arguments: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str],
    url: str = "",
    program: Sequence[str] = (sys.executable, "-m", "hascheduler"),
    output: Path | None = None,
    folder: Path | None = None,
) -> Daemon:
    """Start ``program`` with ``arguments``, in ``folder`` if one is given, as `start_child` does."""
    child = await start_child(name, [*program, *arguments], log, environment=environment, output=output, folder=folder)
    return Daemon(child.name, child.process, child.log, child.output, url)
