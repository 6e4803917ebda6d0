"""A line to MongoDB on which one database can stop answering, while all others on the same server go on.

Commands go up one by one. One that is for a database that hangs waits on its connection, and is carried out when it
hangs no more, however late that is; who has given up by then never hears of it.
"""

import asyncio
import struct

from tests.chaos.proxy import Line

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
