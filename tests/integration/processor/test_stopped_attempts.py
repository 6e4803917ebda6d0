"""Attempts that must stop, at a processor on a real MongoDB: a thread that does not heed, and a process."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.processor import Handlers, JobContext, Processor, ProcessorConfig
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.schema.retry import RetryPolicy
from tests.integration.processor.test_mongo_deliveries import promise
from tests.integration.rabbitmq.conftest import running
from tests.unit.processor.process_handlers import handlers as of_processes

LIMIT_S = 30
SOON_MS = 300


@pytest.fixture
async def database(mongodb_uri: str, ready_database: str) -> AsyncIterator[Database]:
    client = connect(mongodb_uri)
    found = open_database(client, ready_database)
    for name, timeout_ms in (("deaf", SOON_MS), ("hold", 2_000)):
        rules = Definition(name=name, timeout_ms=timeout_ms, retry=RetryPolicy(attempts_max=3))
        await found[Collection.DEFINITIONS.value].insert_one({"_id": name, **document_of(rules)})
    yield found
    await client.close()


@asynccontextmanager
async def at_work(database: Database, handlers: Handlers) -> AsyncIterator[Processor]:
    config = ProcessorConfig("p", "p", "default", 1, 100, 10_000, 1_000)
    work, deliveries = MongoWorkStore(database, 600_000), MongoDeliveries(database, "p")
    processor = Processor(handlers, work, deliveries, SystemClock(), config)
    async with running(processor.run):
        yield processor


async def seen(database: Database, job_id: str, **wanted: Any) -> Mapping[str, Any]:
    async with asyncio.timeout(LIMIT_S):
        while True:
            job = await database[Collection.JOBS.value].find_one({"_id": job_id, **wanted})
            if job is not None:
                return job
            await asyncio.sleep(0.02)


async def test_a_thread_that_outlives_its_timeout_is_overdue_in_the_database_until_it_has_ended(
    database: Database,
) -> None:
    handlers, over = Handlers(), threading.Event()

    @handlers.handler("deaf")
    def deaf(job: JobContext) -> str:
        over.wait(LIMIT_S)
        return "late"

    try:
        async with at_work(database, handlers):
            await promise(database, "first", "p", definition="deaf")
            overdue = await seen(database, "first", overdue_attempt=1)
            job = decode_job("first", overdue)
            assert (job.state, job.is_overdue, overdue["attempts"]) == ("running", True, [])
            assert (job.overdue_since_ms or 0) >= (job.started_at_ms or 0) + SOON_MS
            await promise(database, "second", "p", definition="deaf")
            over.set()
            await seen(database, "second", state="succeeded")
            failed = await seen(database, "first", state="pending")
            [record] = failed["attempts"]
            assert (record["outcome"], record["error"], failed["failures"]) == ("failed", "timed out after 300ms", 1)
            assert not decode_job("first", failed).is_overdue
    finally:
        over.set()


async def test_a_process_is_killed_at_its_timeout_and_its_attempt_has_failed(
    database: Database, tmp_path: Path
) -> None:
    place = tmp_path / "pids"
    async with at_work(database, of_processes):
        await promise(database, "held", "p", definition="hold", payload={"file": str(place), "deaf": True})
        failed = await seen(database, "held", state="pending", failures=1)
    assert [record["error"] for record in failed["attempts"]] == ["timed out after 2s"]
    if place.exists():  # a busy machine may take longer than the timeout to begin
        with pytest.raises(ProcessLookupError):
            os.kill(int(place.read_text(encoding="utf-8").split()[0]), 0)
