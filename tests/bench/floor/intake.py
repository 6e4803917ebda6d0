"""How jobs come in at the floor: an application that takes them and does nothing else, under the server of the API."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import uvicorn
from bson import ObjectId

from hascheduler.mongo.request_batcher import RequestBatcher
from tests.bench.floor.exchanges import PATIENCE_S, Database
from tests.bench.floor.forms import Written


class Intake:
    """The ASGI application that takes a job, or a batch of them; ``inserted`` has their ids once they are stored."""

    def __init__(
        self, database: Database, written: Written, inserted: Callable[[Sequence[str]], None] = lambda _ids: None
    ) -> None:
        self._jobs = database["jobs"]
        self._job = written.job
        self._inserted = inserted
        self._inserts = RequestBatcher(self._insert, "insert")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        count = len(orjson.loads(await read_body(receive)).get("jobs", "1"))
        ids = [str(ObjectId()) for _ in range(count)]
        await self._inserts.send(ids)
        self._inserted(ids)
        await respond(send, orjson.dumps({"results": [{"job": id} for id in ids]}))

    async def _insert(self, requests: Sequence[list[str]]) -> Sequence[None]:
        documents = [{**self._job, "_id": id} for ids in requests for id in ids]
        if len(documents) == 1:
            await self._jobs.insert_one(documents[0])
        else:
            await self._jobs.insert_many(documents, ordered=False)
        return [None] * len(requests)


async def read_body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def respond(send: Any, answer: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[str]:
    """The address at which it is served."""
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            port=0,
            http="httptools",
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
    )
    running = asyncio.create_task(server.serve(), name="uvicorn")
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not server.started:  # noqa: ASYNC110  # it has no event for that
                await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await running
