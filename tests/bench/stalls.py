"""Requests that ask for as much as they may: how long one piece of the loop's work keeps it from turning.

Each row is what one caller asks for, in a replica alone with its MongoDB whose loop is timed
(`tests.bench.timed_pieces`). Judged are the CPU of the longest piece, which a busy machine does not change much, and
how long another party's submit took meanwhile. A row that does not hold is run again: what disturbs it only adds.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from pymongo import AsyncMongoClient

from hascheduler.embedded.servers import start_mongod
from hascheduler.errors import WorldError
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.payload import PLACEHOLDERS_MAX
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Interval, Once, Trigger
from tests.bench.results import Figures
from tests.bench.stacks import now_ms
from tests.bench.stored import start_lone_replica
from tests.bench.timed_pieces import PIECES

_PATIENCE_S = 600
PIECE_MS_MAX = 20
SUBMIT_MS_MAX = 1_000
_TRIES = 3
_DATABASE = "bench-stalls"
_LARGE = "x" * 195_000
_OLD = "$$" * 100_000
"""As a release before the bound took it."""
_FIRES = 32
_DUE_IN_MS = 4_000
_TIMES = 1_000
_SUBMIT_EVERY_S = 0.05
_NOOP = {"definition": "noop", "tenant": "other"}
_SLOTS = 8
"""For the other party's jobs; nobody runs those of the rows."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A replica, and what its database holds."""

    http: httpx2.AsyncClient
    schedules: Any
    jobs: Any

    async def send(self, method: str, path: str, body: object = None) -> Any:
        answer = await self.http.request(method, path, json=body)
        if answer.is_error:
            raise WorldError(f"{method} {path}: {answer.status_code} {answer.text[:512]}")
        return answer.json()

    async def seen(self) -> None:
        """Wait until the replica has seen the rows' jobs. Until then they count as work for its processors, and it
        refuses more."""
        pending = await self.jobs.count_documents({"definition": "stalls", "state": "pending"})
        async with asyncio.timeout(_PATIENCE_S):
            while (await self.send("GET", "/v1/cluster"))["counts"]["pending"] < pending:  # noqa: ASYNC110
                await asyncio.sleep(_SUBMIT_EVERY_S)

    async def store(self, name: str, trigger: Trigger, payload: object, now: WallMs) -> None:
        template = JobTemplate("stalls", None, "default", "default", "default", 5, "queued")
        new = NewSchedule(name, trigger, template, payload, {}, now, render=True)
        await self.schedules.insert_one(new_schedule_document(new))


def _new(pieces: Path) -> Path:
    pieces.parent.mkdir(parents=True, exist_ok=True)
    pieces.unlink(missing_ok=True)
    return pieces.absolute()


async def measure_stalls(folder: Path) -> dict[str, Figures]:
    """The figures of each row; `WorldError` if one does not hold."""
    found: dict[str, Figures] = {}
    pieces = _new(folder / "pieces")
    program = (sys.executable, "-m", "tests.bench.timed_pieces")
    async with (
        start_mongod() as mongod,
        AsyncMongoClient[dict[str, Any]](mongod.uri) as client,
        start_lone_replica(mongod.uri, _DATABASE, folder, {PIECES: str(pieces)}, program=program) as replica,
        replica.processor(("tests.bench.handlers",), _SLOTS),
        httpx2.AsyncClient(base_url=replica.url, timeout=_PATIENCE_S) as http,
    ):
        await replica.leads()
        asked = _Asked(http, client[_DATABASE]["schedules"], client[_DATABASE]["jobs"])
        # What is made once is no row's.
        await asked.send("POST", "/v1/jobs", _NOOP)
        for row, ask in _ROWS.items():
            for number in range(_TRIES):
                found[row] = await _measured(partial(ask, asked, number), asked, pieces)
                if _holds(found[row]):
                    break
    failed = {row: figures for row, figures in found.items() if not _holds(figures)}
    if failed:
        limits = f"at most {PIECE_MS_MAX} ms of CPU a piece, {SUBMIT_MS_MAX} ms for another's submit"
        raise WorldError(f"the loop stood still: {json.dumps(failed)}; {limits}")
    return found


def _holds(figures: Figures) -> bool:
    return bool(figures["piece_cpu_ms"] <= PIECE_MS_MAX and figures["submit_ms"] <= SUBMIT_MS_MAX)


async def _measured(ask: Callable[[], Awaitable[None]], asked: _Asked, pieces: Path) -> Figures:
    await asked.seen()
    begin = len(_read(pieces))
    longest_s = 0.0

    async def submit() -> None:
        nonlocal longest_s
        async with httpx2.AsyncClient(base_url=asked.http.base_url, timeout=_PATIENCE_S) as http:
            while True:
                began_s = time.monotonic()
                while (answer := await http.post("/v1/jobs", json=_NOOP)).status_code != httpx2.codes.CREATED:
                    if answer.status_code != httpx2.codes.SERVICE_UNAVAILABLE:
                        raise WorldError(f"a submit: {answer.status_code} {answer.text[:512]}")
                    await asyncio.sleep(_SUBMIT_EVERY_S)
                longest_s = max(longest_s, time.monotonic() - began_s)
                await asyncio.sleep(_SUBMIT_EVERY_S)

    async with asyncio.TaskGroup() as tasks:
        submitting = tasks.create_task(submit())
        await ask()
        submitting.cancel()
    noted = [line.partition(" ") for line in _read(pieces)[begin:].decode().splitlines()]
    longest_ms = max((float(ms) for ms, _, _ in noted), default=0.0)
    return {"piece_cpu_ms": longest_ms, "submit_ms": round(1_000 * longest_s)}


def _read(pieces: Path) -> bytes:
    return pieces.read_bytes()


async def _backfill(asked: _Asked, number: int) -> None:
    """As large as it may be."""
    placeholders = "${local_date}$$" * (PLACEHOLDERS_MAX // 2)
    job = {"definition": "stalls", "payload": placeholders + _LARGE, "render": True}
    trigger = {"type": "once", "at": "2098-01-01T00:00:00Z"}
    await asked.send("POST", "/v1/schedules", {"name": f"new-{number}", "trigger": trigger, "job": job})
    await asked.send("PATCH", f"/v1/schedules/new-{number}", {"trigger": {"type": "interval", "every": "1d"}})
    await _backfilled(asked, f"new-{number}", 86_400_000)


async def _old_backfill(asked: _Asked, number: int) -> None:
    await asked.store(f"old-{number}", Trigger(Interval(86_400_000, WallMs(0))), _OLD, WallMs(now_ms()))
    await _backfilled(asked, f"old-{number}", 86_400_000)


async def _backfilled(asked: _Asked, name: str, every_ms: int) -> None:
    to = datetime.now(UTC)
    span = {"from": (to - timedelta(milliseconds=_TIMES * every_ms)).isoformat(), "to": to.isoformat()}
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            path = f"/v1/schedules/{name}/backfill"
            answer = await asked.http.post(path, json={**span, "overlap": "allow"})
            if answer.status_code == httpx2.codes.OK:
                break
            if answer.status_code != httpx2.codes.SERVICE_UNAVAILABLE:
                raise WorldError(f"{path}: {answer.status_code} {answer.text[:512]}")
            # It took longer than a request may; repeated, it goes on where it was.
    if answer.json()["count"] < _TIMES:
        raise WorldError(f"{path}: {answer.text[:512]}")


async def _fires(asked: _Asked, number: int) -> None:
    now = WallMs(now_ms())
    names = [f"fires-{number}-{schedule}" for schedule in range(_FIRES)]
    for name in names:
        await asked.store(name, Trigger(Once(WallMs(now + _DUE_IN_MS))), _OLD, now)
    async with asyncio.timeout(_PATIENCE_S):
        for name in names:
            while not (await asked.send("GET", f"/v1/jobs?schedule={name}"))["items"]:  # noqa: ASYNC110  # no one tells
                await asyncio.sleep(_SUBMIT_EVERY_S)


async def _preview(asked: _Asked, number: int) -> None:
    await asked.send("PUT", "/v1/calendars/x", {"weekdays": ["mon-fri"]})
    trigger = {"type": "cron", "expression": "* * * * *", "calendars": {"only": ["x"], "except": ["x"]}}
    for _ in range(10):
        await asked.send("POST", "/v1/schedules/preview?count=1000", {"trigger": trigger})
    for name in (f"never-{number}-{schedule}" for schedule in range(50)):
        await asked.send("POST", "/v1/schedules", {"name": name, "trigger": trigger, "job": {"definition": "stalls"}})
    for _ in range(10):
        await asked.send("GET", "/v1/schedules?text=never&limit=200")


async def _atomic_batch(asked: _Asked, number: int) -> None:
    for chained in (False, True):
        jobs = [
            {"definition": "stalls", "ref": f"r{job}", "depends_on": [f"ref:r{job - 1}"] if chained and job else []}
            for job in range(1_000)
        ]
        await asked.send("POST", "/v1/jobs:batch", {"atomic": True, "jobs": jobs})
        await asked.seen()


_ROWS: Mapping[str, Callable[[_Asked, int], Awaitable[None]]] = {
    "a backfill of large payloads": _backfill,
    "a backfill of a template from before the bound": _old_backfill,
    "schedules from before the bound, due at once": _fires,
    "calendars that exclude each other": _preview,
    "an atomic batch": _atomic_batch,
}
