"""What one request costs everybody else: the longest that it keeps the loop, and the memory that it adds.

A request goes straight into the application, in a loop and a thread of its own. The loop's longest callback is taken
by the thread's CPU time, in units of a plain request measured beside it, so that neither a busy or slow machine nor
tracing decides; collections of garbage are the process's own.
"""

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import orjson

from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import NewJob
from hascheduler.model.token import Role, digest_of
from hascheduler.ports import Submission, SubmitAnswer
from tests.factories import make_token
from tests.unit.api.doubles import World
from tests.unit.api.requests import scope_of

STALL_FACTOR_MAX = 13
"""How much longer than `_PLAIN` a request may keep the loop: 50 ms on a machine where that takes 4 ms."""
CHUNK_BYTES = 64 * 1024
SECRET = "hsk_" + "w" * 43


@dataclass(frozen=True, slots=True)
class Cost:
    status: int
    body: bytes
    longest_ms: float
    added_bytes: int
    received: int
    """How often the application asked for a piece of the body."""

    @property
    def problem(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a client sends it."""

    method: str
    path: str
    body: bytes = b""
    role: Role = Role.ADMIN
    declared: bool = True
    query: bytes = b""


class Unstoring:
    """Takes all jobs and keeps none: what memory stores copy is no matter of the request's."""

    async def submit(self, job: NewJob) -> Submission:
        return Submission(SubmitAnswer.NEW, new_job_document(job))

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        await asyncio.sleep(0)
        return [Submission(SubmitAnswer.NEW, new_job_document(job)) for job in jobs]

    async def known(self, ids: Sequence[str]) -> Sequence[Any]:
        return []

    async def batch(self, batch: str, limit: int) -> Sequence[Any]:
        return []


def cost_of(app: Edge, asked: Asked, world: World | None = None, *, memory: bool = False) -> Cost:
    """Of one request; either its time or its memory is measured, as measuring the one falsifies the other."""
    costs: list[Cost] = []
    thread = threading.Thread(target=lambda: costs.append(_measured(app, asked, world or World(), memory)))
    thread.start()
    thread.join()
    [cost] = costs
    return cost


_PLAIN = Asked(
    "POST", "/v1/jobs", orjson.dumps({"definition": "log", "payload": {str(n): [n, n, n] for n in range(2_000)}})
)


def stall_ms_max(app: Edge) -> float:
    """Return how long a request may keep the loop, as fast as this machine is now."""
    return STALL_FACTOR_MAX * min(cost_of(app, _PLAIN).longest_ms for _ in range(3))


def least_cost_of(app: Edge, asked: Asked, make: Callable[[], World] = World) -> Cost:
    """Return the lowest cost of up to three requests: what the machine adds, it does not add each time."""
    best = cost_of(app, asked, make())
    for _ in range(2):
        if best.longest_ms <= stall_ms_max(app):
            break
        best = min(best, cost_of(app, asked, make()), key=lambda cost: cost.longest_ms)
    return best


def _measured(app: Edge, asked: Asked, world: World, memory: bool) -> Cost:
    jobs: Any = Unstoring() if asked.path.startswith("/v1/jobs") else world.jobs
    app.services = replace(world.services(), auth=AuthConfig(required=True), jobs=jobs)
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner, _quiet_garbage():
        runner.run(_admit(world, asked.role))
        runner.run(_asked(app, replace(asked, method="GET", path="/v1/whoami", body=b"")))  # whatever is made once
        app.services.audit_writer._waiting.clear()
        before = 0
        if memory:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
        with _longest_callback() as longest:
            status, body, received = runner.run(_asked(app, asked))
        added = 0
        if memory:
            added = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
    return Cost(status, body, longest[0] * 1_000, added, received)


async def _admit(world: World, role: Role) -> None:
    await world.tokens.create(make_token("watched", digest=digest_of(SECRET), name="watched", role=role, tenant="*"))


async def _asked(app: Edge, asked: Asked) -> tuple[int, bytes, int]:
    headers = [(b"authorization", f"Bearer {SECRET}".encode()), (b"content-type", b"application/json")]
    headers.append(
        (b"content-length", str(len(asked.body)).encode()) if asked.declared else (b"transfer-encoding", b"chunked")
    )
    scope = scope_of(asked.method, asked.path, headers, query_string=asked.query)
    received, at = 0, 0
    status, body = 0, bytearray()

    async def receive() -> dict[str, Any]:
        nonlocal received, at
        received += 1
        if at > len(asked.body):
            await asyncio.Event().wait()
        piece = asked.body[at : at + CHUNK_BYTES]
        at += CHUNK_BYTES
        more = at < len(asked.body)
        if not more:
            at = len(asked.body) + 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(message: Any) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            body += message.get("body", b"")

    await app(scope, receive, send)
    return status, bytes(body), received


@contextmanager
def _longest_callback() -> Iterator[list[float]]:
    """The loop's, in this thread alone: seconds of CPU."""
    longest = [0.0]
    thread = threading.get_ident()
    run = asyncio.Handle._run

    def watched(handle: asyncio.Handle) -> None:
        begin = time.thread_time()
        run(handle)
        if threading.get_ident() == thread:
            longest[0] = max(longest[0], time.thread_time() - begin)

    asyncio.Handle._run = watched  # type: ignore[method-assign, assignment]
    try:
        yield longest
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


@contextmanager
def _quiet_garbage() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
