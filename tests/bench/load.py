"""Jobs at a given rate over HTTP, from a process of its own, so that what the load costs is measured apart.

``python -m tests.bench.load PLAN``, with a `Load` in JSON, prints a `Sent` in JSON when it is through. The load is
open: a request is due at its time, however slow the answers, and its time counts from then. Replicas are asked in turn.

With ``ids_to`` the ids of the jobs that were promised to be done are written to that file, each with the instant, in
ms, at which its request was sent first. Who *insists* has an idempotency key on each request, and repeats it at the
next replica until it is accepted, where it is refused after its Retry-After. Who *heeds* repeats a request that is
refused once, when its Retry-After is over; else a request that fails has failed.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BufferedWriter
from pathlib import Path
from typing import Any

import orjson
import uvloop

from hascheduler.simulate.report import percentile
from tests.bench.http_client import HttpClient, request

_CONNECTIONS = 64
_TRIES = 300
_PAUSE_S = 0.1
_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Load:
    """``per_second`` jobs for ``seconds``, ``batch`` of them in a request."""

    urls: tuple[str, ...]
    per_second: int
    seconds: float
    batch: int = 1
    job: dict[str, Any] = field(default_factory=lambda: {"definition": "noop"})
    ids_to: str | None = None
    insists: bool = False
    heeds: bool = False

    @property
    def requests(self) -> int:
        return round(self.per_second * self.seconds / self.batch)


@dataclass(frozen=True, slots=True)
class Sent:
    """``late_max_ms``: by how much the generator itself was late; where that is much, it was the bottleneck. ``cores``:
    how many of them it used.

    ``refused`` counts the jobs of requests that got Retry-After at first, ``came_back`` those that heeded it, and
    ``readmitted`` those of them that were accepted then.
    """

    acknowledged: int
    failed: int
    ack_p50_ms: int
    ack_p99_ms: int
    late_max_ms: int
    cores: float = 0.0
    refused: int = 0
    came_back: int = 0
    readmitted: int = 0
    retry_after_max_s: int = 0


def read_sent(path: Path) -> dict[str, int]:
    """By the id of each job, when it was sent."""
    return {id: int(sent_ms) for id, _, sent_ms in (line.partition(" ") for line in path.read_text().splitlines())}


class Loading:
    """A load under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def sent(self) -> Sent:
        """Once it is through."""
        output, _ = await self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"the load ended with status {self._process.returncode}")
        return Sent(**orjson.loads(output))


@asynccontextmanager
async def loading(load: Load) -> AsyncIterator[Loading]:
    """It has begun; it is ended on the way out if it is not through."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.load", orjson.dumps(load).decode(), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Loading(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class _Generator:
    def __init__(self, load: Load, http: HttpClient, ids: BufferedWriter | None) -> None:
        self._load = load
        self._http = http
        self._ids = ids
        self._key = f"load-{time.time_ns()}"
        self._path = path_of(load.batch)
        self._body = body_of(orjson.dumps(load.job), load.batch)
        self._took_ms: list[int] = []
        self._late_max_s = 0.0
        self._failed = 0
        self._retry_after_s: list[int] = []
        self._came_back = 0
        self._readmitted = 0

    async def run(self) -> Sent:
        loop, load = asyncio.get_running_loop(), self._load
        began, began_cpu_s = loop.time(), time.process_time()
        begin = began + 0.2
        async with asyncio.TaskGroup() as sending:
            for number in range(load.requests):
                due = begin + number * load.batch / load.per_second
                await asyncio.sleep(due - loop.time())
                self._late_max_s = max(self._late_max_s, loop.time() - due)
                sending.create_task(self._one(number, due))
        return Sent(
            (len(self._took_ms) + self._readmitted) * load.batch,
            self._failed * load.batch,
            percentile(self._took_ms, 50),
            percentile(self._took_ms, 99),
            round(1_000 * self._late_max_s),
            round((time.process_time() - began_cpu_s) / (loop.time() - began), 3),
            len(self._retry_after_s) * load.batch,
            self._came_back * load.batch,
            self._readmitted * load.batch,
            max(self._retry_after_s, default=0),
        )

    async def _one(self, number: int, due: float) -> None:
        sent_ms, loop = time.time_ns() // 1_000_000, asyncio.get_running_loop()
        for turn in range(_TRIES if self._load.insists else 2 if self._load.heeds else 1):
            url = self._load.urls[(number + turn) % len(self._load.urls)]
            answer = await self._asked(f"{url}{self._path}", number)
            if isinstance(answer, bytes):
                if self._load.heeds and turn:
                    self._readmitted += 1
                else:
                    self._took_ms.append(round(1_000 * (loop.time() - due)))
                if self._ids is not None:
                    self._ids.write(_lines(answer, sent_ms))
                return
            if self._load.insists:
                await asyncio.sleep(_PAUSE_S if answer is None else answer)
            elif answer is None:
                break
            elif not turn:
                self._retry_after_s.append(answer)
                if self._load.heeds:
                    await asyncio.sleep(answer)
                    self._came_back += 1
        self._failed += 1

    async def _asked(self, url: str, number: int) -> bytes | int | None:
        """The seconds of Retry-After where it was refused; None where it was not all accepted for another reason."""
        headers = (("idempotency-key", f"{self._key}-{number}"),) if self._load.insists else ()
        try:
            answer = await self._http.send(*request(url, self._body, headers))
        except (TimeoutError, OSError):
            return None
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return answer.retry_after_s
        if self._load.batch > 1 and any(each["job"] is None for each in orjson.loads(answer.body)["results"]):
            return None
        return answer.body


def path_of(batch: int) -> str:
    """Where requests for so many jobs each go."""
    return "/v1/jobs" if batch == 1 else "/v1/jobs:batch"


def body_of(job: bytes, batch: int) -> bytes:
    """The same ``job`` so many times, for `path_of`."""
    return job if batch == 1 else b'{"jobs":[' + b",".join([job] * batch) + b"]}"


def _lines(answer: bytes, sent_ms: int) -> bytes:
    read = orjson.loads(answer)
    ids = [each["job"] for each in read["results"]] if "results" in read else [read["id"]]
    return "".join(f"{id} {sent_ms}\n" for id in ids).encode()


async def _send(load: Load, ids: BufferedWriter | None) -> Sent:
    async with HttpClient(_CONNECTIONS, _TIMEOUT_S) as http:
        return await _Generator(load, http, ids).run()


def _main() -> None:
    given = orjson.loads(sys.argv[1])
    load = Load(**{**given, "urls": tuple(given["urls"])})
    with ExitStack() as opened:
        ids = None if load.ids_to is None else opened.enter_context(Path(load.ids_to).open("wb"))
        sent = uvloop.run(_send(load, ids))
    sys.stdout.buffer.write(orjson.dumps(sent))


if __name__ == "__main__":
    _main()
