"""Prove that a process is dead, by both ends of one TCP connection.

Standbys watch the leader this way, and all replicas the processors (`hascheduler.daemon.loop.processor_probe`).

**The server**, in every replica and processor: a port that greets with its id and then holds the connection. If the
process dies, by whatever means, the kernel closes the connection. Nothing else is ever sent. A process with several
registrations greets with the ids of all. A leader whose renewals of its lease go unanswered does not greet: it closes
a new connection, so that standbys that see no sign of it need not wait for its lease, and that proves no
death. At `CONNECTIONS_MAX` connections, the address that holds the most loses its oldest: taking them all keeps no
standby from its proof. A lost connection alone proves nothing to its peer, which connects again.

**The probe**, in every standby: it keeps a connection to the endpoint in the lease. The only proof is this: the process
had greeted as the holder, the connection closed, and the same endpoint now *refuses* a connection or answers as another
process. A timeout, an unreachable host or a connection that just stays silent proves nothing, and the standby waits for
the lease. Without a greeting before, a refusal proves nothing either: perhaps only the leader's own host can reach the
endpoint.

**The question**, only to a leader about which the stream has been silent for a while: one more connection, which must
be greeted within a moment (`greets_in_time`). A stalled process sends no greeting, though its kernel may go on
accepting connections; nor does a leader that is cut off from the store of leases.

An early challenge is safe in any case, because the journal fences the old leader; proof only makes it quick. Nor can a
processor that was taken for dead finish its attempt: the attempt's number fences it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from hascheduler.errors import InvalidInput
from hascheduler.model.leadership import LeaseRecord

log = structlog.get_logger(__name__)

GREETING = "hascheduler {id}\n"
CONNECTIONS_MAX = 64


class Silencing(Protocol):
    """The part of `LivenessServer` that a replica uses."""

    def silence_while(self, silenced: Callable[[], bool]) -> None: ...


class LivenessServer:
    """Owner of the port and its connections; `bind` comes before `run`, and sets ``port`` to the one in use."""

    def __init__(self, host: str, port: int, *ids: str) -> None:
        self._host = host
        self.port = port
        self.greet_as(*ids)
        self._server: asyncio.Server | None = None
        self._silences: list[Callable[[], bool]] = []
        self._connections: dict[asyncio.StreamWriter, str] = {}
        """Oldest first, with the addresses at their other ends."""

    def greet_as(self, *ids: str) -> None:
        """Greet new connections with these ids.

        A peer that knows the process by another id learns nothing from its earlier connections; a new one proves that
        this other id is gone.
        """
        self._greeting = GREETING.format(id=" ".join(ids)).encode()

    def silence_while(self, silenced: Callable[[], bool]) -> None:
        """Greet no connection while ``silenced`` returns True, in addition to earlier conditions."""
        self._silences.append(silenced)

    async def bind(self) -> None:
        try:
            self._server = await asyncio.start_server(self._greet, self._host, self.port, limit=1_024)
        except OSError as error:
            where = f"{self._host}:{self.port}"
            raise InvalidInput(("HASCHEDULER_LIVENESS_PORT",), f"{where}: {error.strerror}", "a free port") from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        assert self._server is not None, "the endpoint is known once bound"
        try:
            await self._server.serve_forever()
        finally:
            self._server.close()
            for connection in list(self._connections):
                connection.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if any(silenced() for silenced in self._silences):
            writer.close()
            return
        if len(self._connections) >= CONNECTIONS_MAX:
            self._make_room()
        peer = writer.get_extra_info("peername")
        self._connections[writer] = str(peer[0]) if peer else ""
        try:
            writer.write(self._greeting)
            await writer.drain()
            while await reader.read(256):
                pass
        except OSError:
            pass
        finally:
            self._connections.pop(writer, None)
            writer.close()

    def _make_room(self) -> None:
        counts = Counter(self._connections.values())
        oldest = max(
            self._connections, key=lambda connection: counts[self._connections[connection]]
        )  # the first of those with the most
        del self._connections[oldest]
        oldest.transport.abort()


_CONNECT_TIMEOUT_S = 1.0
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.01, 0.5
"""A dying process may accept one last connection after it has closed the others: short at first."""

WaitForDeath = Callable[[str, str], Awaitable[None]]
"""(holder, endpoint): return once there is proof that the holder's process, at that endpoint, is dead."""


GreetsInTime = Callable[[str, str, float], Awaitable[bool]]
"""(holder, endpoint, limit in seconds): return True if the process at that endpoint greets as the holder by then."""


async def greets_in_time(holder: str, endpoint: str, limit_s: float) -> bool:
    """Ask as `GreetsInTime`, by one connection."""
    host, _, port = endpoint.rpartition(":")
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(host, int(port), limit=1_024)
            return _names(await reader.readline(), holder)
    except (OSError, TimeoutError, ValueError, OverflowError):  # the last two: an invalid endpoint
        return False
    finally:
        if writer is not None:
            writer.transport.abort()


def _names(greeting: bytes, holder: str) -> bool:
    """Return True if the greeting is complete and of a process with that id."""
    whole = greeting.startswith(b"hascheduler ") and greeting.endswith(b"\n")
    return whole and f" {holder} ".encode() in greeting.replace(b"\n", b" ")


class LeaderProbe:
    """Owner of the one watch. Calls ``died`` with the holder's id, at most once per holder."""

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
            # Either ends first: the watch with its finding, or the reason for it with a change.
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
    """Wait as `WaitForDeath`, by keeping a connection to the process."""
    host, _, port = endpoint.rpartition(":")
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
            pass  # the last two: an invalid endpoint
        else:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    greeting = await reader.readline()
                if _names(greeting, holder):
                    greeted, pause_s = True, _PAUSE_MIN_S
                    while await reader.read(256):
                        pass
                    # The connection closed: connect again at once.
                    continue
                if greeted and greeting.endswith(b"\n"):  # the holder's own greeting, cut short, would prove nothing
                    return
            except (OSError, TimeoutError, ValueError):
                if greeted:
                    continue
            finally:
                writer.close()
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
