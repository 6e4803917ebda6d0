"""A line between a process and a server, through which everything goes, and which can be troubled.

Held, it is silent: nothing comes, nothing is closed, new connections are taken and stay silent too. Each direction can
be held by itself. Cut, it resets what is open and refuses what is new. Half open, the server's side is closed and the
client is not told. Delayed, every byte comes later by that much, in order.

On a `DatabaseLine` to MongoDB one database can stop answering. A command for it waits on its connection, and is carried
out when the database hangs no more, however late that is; who has given up by then never hears of it.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_CHUNK = 65_536
_UNDER_WAY_MAX = 256
_RESET = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, *, reset: bool = False) -> None:
        for task in self.tasks:
            task.cancel()
        for writer in (self.client, self.server):
            if writer is not None:
                if reset and not writer.transport.is_closing():
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()


class Line:
    """Owner of its connections. `port` is where clients connect; made by `open_line`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.delay_s = 0.0
        self.port = 0
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._refuses = False
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._host = ""
        self.heal()

    async def open(self, host: str) -> None:
        self._host = host
        self._server = await asyncio.start_server(self._accept, host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        ending = [connection.over.wait() for connection in self._connections]
        self.reset()
        await asyncio.gather(*ending)

    # The troubles

    def hold(self, *, up: bool = True, down: bool = True) -> None:
        """Let nothing through to the server (``up``), or from it (``down``)."""
        if up:
            self._up.clear()
        if down:
            self._down.clear()

    def reset(self) -> None:
        """Reset what is open; new connections are served."""
        for connection in list(self._connections):
            connection.end(reset=True)

    def half_open(self) -> None:
        """Close the server's side of what is open; the client hears nothing of it."""
        for connection in self._connections:
            for task in connection.tasks:
                task.cancel()
            if connection.server is not None:
                connection.server.transport.abort()

    async def cut(self) -> None:
        """Reset what is open, refuse what is new, until `repair`."""
        await self.close()

    async def repair(self) -> None:
        self.heal()
        if self._server is None:
            await self.open(self._host)

    def heal(self) -> None:
        self.delay_s = 0.0
        self._up.set()
        self._down.set()

    # One connection

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer)
        self._connections.add(connection)
        try:
            await self._serve(connection, reader)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(connection)
            connection.end()
            # The loop closes the sockets in its next round.
            asyncio.get_running_loop().call_soon(connection.over.set)

    async def _serve(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        answers, server = await self.connect()
        connection.server = server
        for one in (connection.client, server):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.transport.set_write_buffer_limits(0)  # what was given is under way before the end is
        ends = []
        for source, sink, gate in ((reader, server, self._up), (answers, connection.client, self._down)):
            late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_UNDER_WAY_MAX)
            taken = self._asked if gate is self._up else _some
            ends.append(asyncio.create_task(self._take(source, taken, late)))
            ends.append(asyncio.create_task(self._give(late, sink, gate)))
        connection.tasks = ends
        # A side that says goodbye ends both, once what it had said has been passed on.
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if any(task.cancelled() for task in ends):
            # Half open: the client finds out by itself.
            while not reader.at_eof():
                await reader.read(_CHUNK)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the far end of a new connection; who connected is cut off if that raises an `OSError`."""
        return await asyncio.open_connection(*self.target)

    async def _asked(self, source: asyncio.StreamReader) -> bytes:
        """The next that goes up to the server at once; empty at the end."""
        return await _some(source)

    async def _let_through(self, data: bytes) -> None:
        """Return when this may go on, but for what holds its whole direction."""

    async def _take(
        self,
        source: asyncio.StreamReader,
        taken: Callable[[asyncio.StreamReader], Awaitable[bytes]],
        late: "asyncio.Queue[tuple[float, bytes]]",
    ) -> None:
        while True:
            try:
                data = await taken(source)
            except OSError:
                data = b""
            await late.put((asyncio.get_running_loop().time() + self.delay_s, data))
            if not data:
                await asyncio.Event().wait()

    async def _give(
        self, late: "asyncio.Queue[tuple[float, bytes]]", sink: asyncio.StreamWriter, gate: asyncio.Event
    ) -> None:
        while True:
            due, data = await late.get()
            wait_s = due - asyncio.get_running_loop().time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            await gate.wait()
            if gate is self._up:
                await self._let_through(data)
            if not data:
                return
            try:
                sink.write(data)
                await sink.drain()
            except OSError:
                return


async def _some(source: asyncio.StreamReader) -> bytes:
    return await source.read(_CHUNK)


async def open_line(host: str, port: int, *, at: str = "127.0.0.1") -> Line:
    line = Line((host, port))
    await line.open(at)
    return line


_LENGTH = struct.Struct("<i")


class DatabaseLine(Line):
    """Owner of which databases hang. Made by `open_database_line`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._hanging: tuple[bytes, ...] = ()
        self._all_answer = asyncio.Event()
        super().__init__(target)

    def hang(self, database: str) -> None:
        """Let no command for that database through, until `heal`."""
        self._hanging = (*self._hanging, _named(database))
        self._all_answer.clear()

    def heal(self) -> None:
        super().heal()
        self._hanging = ()
        self._all_answer.set()

    async def _asked(self, source: asyncio.StreamReader) -> bytes:
        """One message of MongoDB's protocol, which begins with its length."""
        try:
            length = await source.readexactly(_LENGTH.size)
            return length + await source.readexactly(_LENGTH.unpack(length)[0] - _LENGTH.size)
        except asyncio.IncompleteReadError:
            return b""

    async def _let_through(self, data: bytes) -> None:
        while any(database in data for database in self._hanging):
            await self._all_answer.wait()


def _named(database: str) -> bytes:
    """How each command tells its database: the string ``$db`` in BSON."""
    name = database.encode() + b"\0"
    return b"\x02$db\0" + _LENGTH.pack(len(name)) + name


async def open_database_line(host: str, port: int) -> DatabaseLine:
    line = DatabaseLine((host, port))
    await line.open("127.0.0.1")
    return line
