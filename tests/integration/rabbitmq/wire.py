"""A TCP proxy in front of the broker, so that a test can cut its connections, or let them fall silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from yarl import URL


class Wire:
    """``cut`` closes what is connected now; while ``silent``, nothing passes any more."""

    def __init__(self, broker_url: str) -> None:
        self._broker = URL(broker_url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self.url = ""

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    @property
    def silent(self) -> bool:
        return not self._passing.is_set()

    @silent.setter
    def silent(self, silent: bool) -> None:
        self._passing.clear() if silent else self._passing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(self._broker.host, self._broker.port)
        ends = {writer, upstream_writer}
        self._writers |= ends
        try:
            await asyncio.wait(
                {
                    asyncio.create_task(self._pass_on(reader, upstream_writer)),
                    asyncio.create_task(self._pass_on(upstream_reader, writer)),
                },
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                await self._passing.wait()
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def wire_to(broker_url: str) -> AsyncIterator[Wire]:
    wire = Wire(broker_url)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.url = str(URL(broker_url).with_port(server.sockets[0].getsockname()[1]))
    try:
        yield wire
    finally:
        server.close()
        wire.silent = False
        wire.cut()
        await asyncio.sleep(0)
