"""A replica that demands tokens, one party that holds all it can, and others who want to get in meanwhile.

Parties are tokens and addresses: a client speaks from any address of the loopback net.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Limit
from hascheduler.api.http.server import ApiServer
from hascheduler.api.routing import route_rules
from tests.unit.api.doubles import World
from tests.unit.api.test_server import serving
from tests.unit.api.tokens import Guarded

LIMIT_S = 60
"""For whatever is waited for; it takes milliseconds."""
HERE, THERE = "127.0.0.1", "127.0.0.2"
JSON = {"Content-Type": "application/json"}


class Caller:
    """Speaks to one server, each time on a connection of its own; ``id`` is that of its token."""

    def __init__(self, port: int, token: str | None, id: str = "", address: str = HERE) -> None:
        self.id = id
        self._port = port
        self.token = token
        self._address = address
        self._held: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that is held until `leave`."""
        reader, writer = await asyncio.open_connection(HERE, self._port, local_addr=(self._address, 0))
        self._held.append(writer)
        return reader, writer

    async def begin(self, method: str, path: str, body: bytes = b"", **headers: str) -> asyncio.StreamReader:
        """A request on a connection of its own; what is sent of the body may be less than its length says."""
        reader, writer = await self.connect()
        lines = {"Host": "a", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.token is not None:
            lines["Authorization"] = f"Bearer {self.token}"
        if body:
            lines = {"Content-Length": str(len(body)), **JSON, **lines}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        return reader

    async def ask(self, method: str, path: str, content: object = None) -> tuple[int, Any]:
        sent = b"" if content is None else json.dumps(content).encode()
        status, text = await answer_of(await self.begin(method, path, sent, Connection="close"))
        return status, json.loads(text or b"null")

    async def leave(self) -> None:
        for writer in self._held:
            writer.transport.abort()
        for writer in self._held:
            with suppress(OSError):
                await writer.wait_closed()
        self._held.clear()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(LIMIT_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        return int(head.split(b" ", 2)[1]), await reader.readexactly(int(length.partition(b":")[2]))


class Crowd:
    """The replica with its tokens; `caller` makes one more of its clients."""

    def __init__(self, app: Edge, world: World, server: ApiServer, ended: AsyncExitStack) -> None:
        self.world = world
        self._guarded = Guarded(app, world)
        self._server = server
        self._ended = ended
        self._count = 0

    async def caller(self, role: str = "submitter", tenant: str = "*", address: str = HERE) -> Caller:
        self._count += 1
        return self._made(await self._guarded.token(role, tenant), f"token-{self._count}", address)

    def stranger(self, address: str = HERE) -> Caller:
        return self._made(None, "", address)

    def _made(self, token: str | None, id: str, address: str) -> Caller:
        caller = Caller(self._server.port, token, id, address)
        self._ended.push_async_callback(caller.leave)
        return caller

    async def others_get_in(self, address: str = HERE) -> None:
        """A submit, a registration, a fetch and a stream of events of others are answered."""
        submitter, worker = await self.caller("submitter", "acme", address), await self.caller("worker", "*", address)
        async with asyncio.timeout(LIMIT_S):
            assert (await submitter.ask("POST", "/v1/jobs", {"definition": "log"}))[0] == 201
            terms = {"name": "far", "definitions": ["log"], "slots": 1}
            status, answer = await worker.ask("POST", "/v1/work/processors", terms)
            assert status == 201, answer
            asked = {"processor": answer["processor"], "wait": "0s"}
            assert (await worker.ask("POST", "/v1/work/fetch", asked))[0] == 200
            stream = await (await self.caller("viewer", "acme", address)).begin("GET", "/v1/events")
            assert (await stream.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"), "no events"


@asynccontextmanager
async def crowded(app: Edge, world: World) -> AsyncIterator[Crowd]:
    async with serving(world, app, metrics=world.metrics) as server, AsyncExitStack() as ended:
        yield Crowd(app, world, server, ended)


async def until(holds: Callable[[], bool]) -> None:
    """Turns of the loop, until it is so."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110  # turns of the loop, not time
            await asyncio.sleep(0)


async def fills(limit: Limit, caller: Caller, hold: Callable[[], Any], tries: int) -> int:
    """Let ``caller`` hold one after the other, until no more of ``tries`` are taken; how much of the limit it has."""
    for _ in range(tries):
        before = limit.in_use
        reader = await hold()
        refused = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
        await until(lambda: limit.in_use > before or refused.done())  # noqa: B023  # called before the next
        if refused.done():
            assert refused.result().split(b" ", 2)[1] in (b"429", b"503", b"202"), refused.result()
            break
        refused.cancel()
        await asyncio.wait([refused])
    return limit.held(("token", caller.id))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends slowly is not cut: it is the share that has to hold."""
    monkeypatch.setattr(route_rules, "_BODY_PATIENCE_S", 10 * LIMIT_S)
