"""The line itself: what goes through it, and what does not, when it is troubled."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import bson
import pytest

from tests.chaos.proxy import Line, open_database_line, open_line

_SILENT_S = 0.2


@dataclass
class Ends:
    """A client's end of a connection through ``line``, and what the server behind it has heard."""

    line: Line
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard: bytearray
    news: asyncio.Event

    async def say(self, text: bytes) -> None:
        self.writer.write(text)
        await self.writer.drain()

    async def server_heard(self, text: bytes) -> None:
        while bytes(self.heard) != text:
            self.news.clear()
            await self.news.wait()

    async def hears_nothing(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENT_S):
                await self.reader.read(1)
                return False
        return True


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    """A server that answers each byte with the same."""
    heard, news = bytearray(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(100):
                heard.extend(data)
                news.set()
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    line = await open_line("127.0.0.1", server.sockets[0].getsockname()[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
    yield Ends(line, reader, writer, heard, news)
    writer.close()
    await line.close()
    server.close()


async def test_a_delayed_line_keeps_the_order(ends: Ends) -> None:
    ends.line.delay_s = 0.05
    await ends.say(b"slow ")
    ends.line.delay_s = 0.0
    await ends.say(b"fast")
    assert await ends.reader.readexactly(9) == b"slow fast"


async def test_a_held_line_is_silent_and_goes_on_when_it_is_healed(ends: Ends) -> None:
    ends.line.hold()
    await ends.say(b"held")
    assert await ends.hears_nothing()
    assert not ends.heard
    ends.line.heal()
    assert await ends.reader.readexactly(4) == b"held"


@pytest.mark.parametrize(("up", "arrives"), [(True, b""), (False, b"out")])
async def test_one_direction_can_be_held_by_itself(ends: Ends, up: bool, arrives: bytes) -> None:
    ends.line.hold(up=up, down=not up)
    await ends.say(b"out")
    await ends.server_heard(arrives)
    assert await ends.hears_nothing()


async def test_a_reset_ends_what_is_open_and_takes_what_is_new(ends: Ends) -> None:
    await ends.say(b"x")
    await ends.reader.readexactly(1)
    ends.line.reset()
    with pytest.raises(ConnectionResetError):
        await ends.reader.read(1)
    reader, writer = await asyncio.open_connection("127.0.0.1", ends.line.port)
    writer.write(b"again")
    assert await reader.readexactly(5) == b"again"
    writer.close()


async def test_a_cut_line_refuses_until_it_is_mended(ends: Ends) -> None:
    await ends.line.cut()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", ends.line.port)
    await ends.line.repair()
    reader, writer = await asyncio.open_connection("127.0.0.1", ends.line.port)
    writer.write(b"again")
    assert await reader.readexactly(5) == b"again"
    writer.close()


async def test_of_a_half_open_line_the_client_is_told_nothing(ends: Ends) -> None:
    await ends.say(b"x")
    await ends.reader.readexactly(1)
    ends.line.half_open()
    await ends.say(b"anybody there?")
    assert await ends.hears_nothing()
    assert bytes(ends.heard) == b"x"


def command(database: str, number: int) -> bytes:
    """A message of MongoDB's protocol, with the command as the only section."""
    body = bson.encode({"find": "jobs", "filter": {"number": number}, "$db": database})
    return struct.pack("<iiiiI", 21 + len(body), number, 0, 2013, 0) + b"\0" + body


async def test_of_a_database_that_hangs_alone_commands_wait_until_it_answers_again(ends: Ends) -> None:
    line = await open_database_line(*ends.line.target)
    line.hang("busy")
    talks = [await asyncio.open_connection("127.0.0.1", line.port) for _ in range(2)]
    asked = [command("busy", 1), command("busy-0001", 2)]
    for (_, writer), text in zip(talks, asked, strict=True):
        writer.write(text[:7])
        await writer.drain()
        writer.write(text[7:])
    [held, other] = [reader for reader, _ in talks]
    assert await other.readexactly(len(asked[1])) == asked[1]
    assert bytes(ends.heard) == asked[1]
    line.heal()
    assert await held.readexactly(len(asked[0])) == asked[0]
    for _, writer in talks:
        writer.close()
    await line.close()
