"""Where this process proves that it lives: a TCP port that greets with the candidate id and then holds the line.

When the process dies, by whatever means, the kernel closes the line. Nothing else is ever sent.
"""

import asyncio

from hascheduler.errors import InvalidInput

GREETING = "hascheduler {id}\n"
CONNECTIONS_MAX = 64


class Liveness:
    def __init__(self, host: str, port: int, candidate_id: str) -> None:
        self._host = host
        self._port = port
        self._greeting = GREETING.format(id=candidate_id).encode()
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.StreamWriter] = set()

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
            writer.close()
            return
        self._lines.add(writer)
        try:
            writer.write(self._greeting)
            await writer.drain()
            while await reader.read(256):
                pass
        except OSError:
            pass
        finally:
            self._lines.discard(writer)
            writer.close()
