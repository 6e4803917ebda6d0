"""Other replicas, as far as a request that is passed on to them goes, and a replica that knows of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from hascheduler.api.services import ApiServices
from hascheduler.shards.peers import Hosted, Peers
from tests.unit.api.doubles import World
from tests.unit.shards.worlds import asking, in_front

SHARD = "0001"
JOB = "/v1/jobs/job:0001"
ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-own: yes\r\ncontent-length: 12\r\n\r\n{"from":"p"}'


@dataclass
class Peer:
    """Another replica: what it was sent, and what it answers; "" ends the connection instead."""

    answer: bytes = ANSWER
    waits: bool = False
    requests: list[bytes] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    was_left: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            self.requests.append(head + await reader.readexactly(length))
            self.was_asked.set()
            if self.waits:
                await reader.read()
                self.was_left.set()
            writer.write(self.answer)
            await writer.drain()
        finally:
            writer.close()

    @property
    def headers(self) -> dict[str, str]:
        lines = self.requests[-1].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def body(self) -> bytes:
        return self.requests[-1].partition(b"\r\n\r\n")[2]


@asynccontextmanager
async def serving(*peers: Peer, tls: ssl.SSLContext | None = None) -> AsyncIterator[list[str]]:
    servers = [await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=tls) for peer in peers]
    for peer, server in zip(peers, servers, strict=True):
        peer.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield [peer.address for peer in peers]
    finally:
        for server in servers:
            server.close()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The routes, as far as these tests go: whose services they are given."""
    services: ApiServices = scope["state"]["services"]
    body = (await receive()).get("body", b"").decode()
    await JSONResponse({"retention": str(services.work_terms.scheduler), "body": body})(scope, receive, send)


@asynccontextmanager
async def replica(
    world: World,
    addresses: Sequence[str],
    *,
    services: ApiServices | None = None,
    tls: ssl.SSLContext | None = None,
    tls_name: str = "",
) -> AsyncIterator[httpx2.AsyncClient]:
    """A replica that hosts the shard with ``services``, or knows of replicas at these addresses that do."""

    async def known(shard: str) -> Sequence[str]:
        return addresses if shard == SHARD else ()

    peers = Peers(known, tls=tls, tls_name=tls_name, headers_of=lambda scope: [(b"x-of", scope["client"][0].encode())])
    place = Hosted(SHARD, lambda: services, echo, peers)
    try:
        async with asking(in_front(world, place.ask)) as client:
            yield client
    finally:
        await peers.close()
