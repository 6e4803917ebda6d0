"""MongoDB as the transport: the job document itself is the message, so no broker has to run.

The replica sends nothing. Each processor watches the jobs that are dispatched to it, and sweeps for them when it
starts, after every break of its stream and every `SWEEP_S`; a job found twice is dropped as any duplicate message is.
Requests to cancel are not sent: with every heartbeat a processor asks for stop requests for its running jobs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from pymongo.errors import PyMongoError
from tenacity import AsyncRetrying, retry_if_result, wait_random_exponential

from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.message import Message, MessageKind, encode_message
from hascheduler.model.trace import trace_context
from hascheduler.mongo.connection import LOCAL_READ, Database, awaited
from hascheduler.mongo.faults import faults, local_faults
from hascheduler.ports import Confirm, Delivery, TracedJob
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

SWEEP_S = 5.0
_SERVER_WAIT_MS = 1_000
_SILENCE_LIMIT_S = _SERVER_WAIT_MS / 1_000 + 5.0
_CLOSE_LIMIT_S = 2.0
_LASTED_S = 5.0

Sink = Callable[[Delivery], Awaitable[None]]
Promise = tuple[Any, Any]
"""The id of a job and the number of the attempt, as stored."""


class MongoTransport:
    """`hascheduler.ports.Transport`: the claim has delivered the job already."""

    async def run(self, turned: Callable[[], None] = lambda: None) -> None:
        await asyncio.Event().wait()

    @property
    def accepting(self) -> bool:
        return True

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        return [Confirm.CONFIRMED] * len(messages)


class MongoDeliveries:
    """`hascheduler.ports.Deliveries` of the jobs that are dispatched to ``processor_id``."""

    def __init__(self, database: Database, processor_id: str) -> None:
        self._database = database
        self._jobs = database[Collection.JOBS.value]
        self._processor_id = processor_id
        self.consuming = False
        self._reminders = Reminders()

    async def run(self, sink: Sink, turned: Callable[[], None] = lambda: None) -> None:
        while True:
            # This loop owns the retries, so it retries for ever; a stream that lasted resets the backoff.
            await AsyncRetrying(
                retry=retry_if_result(lambda lasted: not lasted),
                wait=wait_random_exponential(multiplier=0.1, max=3),
            )(self._follow_until_broken, sink, turned)

    async def delete(self) -> None:
        """Do nothing: there is no queue, and the leader finds jobs dispatched to a processor that is gone."""

    async def _follow_until_broken(self, sink: Sink, turned: Callable[[], None]) -> bool:
        """Follow one stream until it breaks, and return True if it lasted."""
        began_at = asyncio.get_running_loop().time()
        try:
            async with self._stream() as stream:
                self.consuming = True
                turned()
                # Open first, then sweep: a job dispatched in between is in both.
                await self.sweep(sink)
                self._reminders.over()
                await self._follow(stream, sink)
        except WorldError as error:
            if self._reminders.is_due(str(error), int(asyncio.get_running_loop().time() * 1_000)):
                log.warning("delivery_stream_lost", error=str(error))
        finally:
            self.consuming = False
            turned()
        leave_if_cancelled()
        return asyncio.get_running_loop().time() - began_at >= _LASTED_S

    async def _follow(self, stream: Any, sink: Sink) -> None:
        loop = asyncio.get_running_loop()
        swept_at = loop.time()
        while True:
            async with local_faults("follow the promised jobs", _SILENCE_LIMIT_S):
                event = await stream.try_next()
            if event is not None:
                fields = event.get("fullDocument") or event["updateDescription"]["updatedFields"]
                await self._deliver(event["documentKey"]["_id"], fields, sink)
            elif not stream.alive:
                return
            if loop.time() - swept_at >= SWEEP_S:
                await self.sweep(sink)
                swept_at = loop.time()

    async def sweep(self, sink: Sink, among: Container[Promise] | None = None) -> set[Promise]:
        """Deliver jobs that are dispatched and not started, with ``among`` only those; return all that were found."""
        promised = {"processor": self._processor_id, "state": JobState.DISPATCHED.value}
        with faults("find promised jobs"):
            jobs = await self._jobs.find(promised, {"attempt": True}).to_list(None)
        found = {(job["_id"], job.get("attempt")): job for job in jobs}
        for promise, job in found.items():
            if among is None or promise in among:
                await self._deliver(job["_id"], job, sink)
        return set(found)

    async def _deliver(self, job_id: object, fields: Mapping[str, Any], sink: Sink) -> None:
        attempt = fields.get("attempt")
        if not isinstance(job_id, str) or not isinstance(attempt, int):
            log.warning("delivery_unreadable", job=str(job_id)[:200])
            return
        await sink(Delivery(encode_message(Message(MessageKind.RUN, job_id, attempt)), _nothing, _parked))

    @asynccontextmanager
    async def _stream(self) -> AsyncIterator[Any]:
        with faults("watch the promised jobs"):
            # Start at a known moment: Motor opens its streams only with their first read.
            since = (await self._database.command("ping"))["operationTime"]
            stream = await awaited(
                self._jobs.watch(self._pipeline(), max_await_time_ms=_SERVER_WAIT_MS, start_at_operation_time=since)
            )
        try:
            yield stream
        finally:
            # The server closes an abandoned stream after its own timeout.
            with suppress(PyMongoError, TimeoutError):
                async with asyncio.timeout(_CLOSE_LIMIT_S):
                    await stream.close()

    def _pipeline(self) -> list[dict[str, Any]]:
        """Return the pipeline that finds dispatches.

        A dispatch arrives as an update, or as a replace if the server prefers to log a small document whole.
        """
        update, whole = "updateDescription.updatedFields", "fullDocument"
        return [
            {
                "$match": {
                    "$or": [
                        {f"{place}.processor": self._processor_id, f"{place}.state": JobState.DISPATCHED.value}
                        for place in (update, whole)
                    ]
                }
            },
            {"$project": {"documentKey": True, f"{update}.attempt": True, f"{whole}.attempt": True}},
        ]


async def _nothing() -> None:
    """Do nothing: the job document is the message, and its next state removes it from the sweep."""


async def _parked(reason: str) -> None:
    log.error("delivery_refused", reason=reason)


READ_LIMIT_S = 0.5
"""Messages wait for this read; a message without its trace is better than a late one."""


class MongoJobTraces:
    """`hascheduler.ports.JobTraces`."""

    def __init__(self, database: Database) -> None:
        # A local read: it must see the latest claims, with or without a majority.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        fields = {"definition": True, "schedule": True, "trace": True}
        with faults("read the traces of jobs", READ_LIMIT_S):
            jobs = await self._jobs.find({"_id": {"$in": list(job_ids)}}, fields).to_list(None)
        return {
            job["_id"]: TracedJob(str(job.get("definition")), job.get("schedule"), trace_context(job.get("trace")))
            for job in jobs
        }
