"""Other replicas, as far as a request that is forwarded to them goes, and a replica that knows of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx

from hascheduler.api.app import create_app
from hascheduler.api.routing.forwarder import Forwarder
from hascheduler.errors import NotFollowedHere
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.processor import ProcessorRef
from tests.factories import make_job
from tests.unit.api.doubles import World

SHARD = "0001"
ID = "job:0001"
WHY = f"/v1/jobs/{ID}/why"
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


@asynccontextmanager
async def asking(
    world: World, addresses: Sequence[str], tls: ssl.SSLContext | None = None, tls_name: str = ""
) -> AsyncIterator[httpx.AsyncClient]:
    """A replica that does not follow the shard, and knows of replicas at these addresses that do."""
    world.view.unseen = (SHARD,)
    world.database.insert(Collection.JOBS, new_job_document(make_job(ID)))

    def processor(id: str) -> ProcessorRef | None:
        raise NotFollowedHere(SHARD)

    world.view.processor = processor  # type: ignore[method-assign]
    forwarder = Forwarder(lambda shard: addresses if shard == SHARD else (), tls=tls, tls_name=tls_name)
    app = create_app(replace(world.services(), forwarder=forwarder), forwards=True)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
            yield client
    finally:
        await forwarder.close()
