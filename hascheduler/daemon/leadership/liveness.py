"""Where this process proves that it lives: a TCP port that greets with the candidate id and then holds the line.

When the process dies, by whatever means, the kernel closes the line. Nothing else is ever sent.

Where there are as many lines as there may be, the address that holds the most loses its oldest: nobody who takes them
all keeps a standby from its proof. A standby that loses a line has no proof by that, and comes again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import structlog

from hascheduler.errors import InvalidInput
from hascheduler.model.lease import LeaseRecord

GREETING = "hascheduler {id}\n"
CONNECTIONS_MAX = 64


class LivenessServer:
    def __init__(self, host: str, port: int, candidate_id: str) -> None:
        self._host = host
        self._port = port
        self._greeting = GREETING.format(id=candidate_id).encode()
        self._server: asyncio.Server | None = None
        self._lines: dict[asyncio.StreamWriter, str] = {}
        """Oldest first, with the addresses at their other ends."""

    @property
    def port(self) -> int:
        """The port in use, after `bind`."""
        return self._port

    async def bind(self) -> None:
        try:
            self._server = await asyncio.start_server(self._greet, self._host, self._port, limit=1_024)
        except OSError as error:
            where = f"{self._host}:{self._port}"
            raise InvalidInput(("HASCHEDULER_LIVENESS_PORT",), f"{where}: {error.strerror}", "a free port") from None
        self._port = self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        assert self._server is not None, "bind comes first"
        try:
            await self._server.serve_forever()
        finally:
            self._server.close()
            for line in list(self._lines):
                line.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._lines) >= CONNECTIONS_MAX:
            self._make_room()
        peer = writer.get_extra_info("peername")
        self._lines[writer] = str(peer[0]) if peer else ""
        try:
            writer.write(self._greeting)
            await writer.drain()
            while await reader.read(256):
                pass
        except OSError:
            pass
        finally:
            self._lines.pop(writer, None)
            writer.close()

    def _make_room(self) -> None:
        counts = Counter(self._lines.values())
        oldest = max(self._lines, key=lambda line: counts[self._lines[line]])  # the first of those with the most
        del self._lines[oldest]
        oldest.transport.abort()


log = structlog.get_logger(__name__)

_CONNECT_TIMEOUT_S = 1.0
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.01, 0.5
"""A process that dies may take a connection for the last time after it has closed its lines: short at first."""

WaitForDeath = Callable[[str, str], Awaitable[None]]
"""Returns when there is proof that the process of that holder, at that endpoint, is dead."""


class LeaderProbe:
    """Owner of the one watch. ``died`` is called with the holder's id, at most once per holder."""

    def __init__(self, candidate_id: str, died: Callable[[str], None], wait_for_death: WaitForDeath) -> None:
        self._candidate_id = candidate_id
        self._died = died
        self._wait_for_death = wait_for_death
        self._lease: LeaseRecord | None = None
        self._changed = asyncio.Event()

    def watch(self, lease: LeaseRecord | None) -> None:
        """Watch that lease's holder from now on."""
        known, self._lease = self._lease, lease
        if (known.holder if known else "") != (lease.holder if lease else ""):
            self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            lease = self._lease
            if lease is None or lease.holder in ("", self._candidate_id) or not lease.endpoint:
                await self._changed.wait()
                continue
            # Whichever ends first: the watch with its finding, or the reason for it.
            watch = asyncio.ensure_future(self._wait_for_death(lease.holder, lease.endpoint))
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({watch, changed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                watch.cancel()
                await asyncio.gather(changed, watch, return_exceptions=True)
            if not watch.cancelled() and watch.exception() is None:
                log.info("leader_process_died", holder=lease.holder, endpoint=lease.endpoint)
                self._died(lease.holder)
                await self._changed.wait()


async def wait_for_death_by_connection(holder: str, endpoint: str) -> None:
    """`WaitForDeath`, by a connection that is kept."""
    host, _, port = endpoint.rpartition(":")
    expected = GREETING.format(id=holder).encode()
    greeted = False
    pause_s = _PAUSE_MIN_S
    while True:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(host, int(port), limit=1_024)
        except ConnectionRefusedError:
            if greeted:
                return
        except (OSError, TimeoutError, ValueError, OverflowError):
            pass  # the last two: an endpoint that is none
        else:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    greeting = await reader.readline()
                if greeting == expected:
                    greeted, pause_s = True, _PAUSE_MIN_S
                    while await reader.read(256):
                        pass
                    # The line closed: look again at once.
                    continue
                if greeted and greeting.endswith(b"\n"):  # the holder's own, cut short, would prove nothing
                    return
            except (OSError, TimeoutError, ValueError):
                if greeted:
                    continue
            finally:
                writer.close()
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
