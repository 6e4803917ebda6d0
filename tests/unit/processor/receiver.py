"""A real HTTP server for webhooks to talk to: it keeps what it was sent, and answers whatever it was told to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """``answers`` by path; any other path is answered with 200 and ``{}``."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.hung_up.set()
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Request(method, path, headers, body))
        await self.answers.get(path, answer(200, b"{}"))(writer)
        await writer.drain()
        if writer.transport.is_closing():
            return
        await reader.read()  # until the other side hangs up


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    async def write(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return write


async def silence(writer: asyncio.StreamWriter) -> None:
    """Takes the request and says nothing."""


async def a_trickle(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, for ever: never silent for long."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.transport.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def a_flood(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not writer.transport.is_closing():
        writer.write(b"x" * 65_536)
        await writer.drain()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
