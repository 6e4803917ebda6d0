"""Where this process proves that it lives: a TCP port that greets with the candidate id and then holds the line.

When the process dies, by whatever means, the kernel closes the line. Nothing else is ever sent.

Where there are as many lines as there may be, the address that holds the most loses its oldest: nobody who takes them
all keeps a standby from its proof. A standby that loses a line has no proof by that, and comes again.
"""

import asyncio
from collections import Counter

from hascheduler.errors import InvalidInput

GREETING = "hascheduler {id}\n"
CONNECTIONS_MAX = 64


class Liveness:
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
