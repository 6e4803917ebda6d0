"""Feed the mirror from the one change stream, and start over if the stream can't go on.

::

    open at T ─► snapshot read at or after T ─► fold events ─► own beat comes back ─► complete
        ▲                                          │
        │ history lost, collection dropped         │ connection lost: resume after the last token
        └──────────────────────────────────────────┘

The stream is opened before the snapshot is read, so there is no gap between the two. After a resync the mirror is a new
one; the core gets `Resynced` first, so it forgets and does not lead. The owner loop retries for ever, with backoff and
jitter: without a stream a replica has nothing else to do.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.dispatch.decisions import Fire
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.gc_tuning import without_collecting
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.mirror.changes import Quarantined
from hascheduler.mirror.mirror import Folded, Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import ChangeSource, ChangeStream, Clock
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.telemetry.log_lines import Reminders
from hascheduler.triggers import due_ms

log = structlog.get_logger(__name__)

_WAIT_MS = 1_000
_FOLLOWER_DELAY_S = 0.2
"""The pause after each batch if nothing waits for it, until hurried: one by one, events cost a round trip each."""
FETCH_MAX = 1_000


class FactSink(Protocol):
    """The consumer of the facts of the stream."""

    async def take(self, folded: Folded) -> None:
        """Take the result of the next fold; wait while there is no room for the facts."""
        ...

    async def restarted(self) -> None:
        """Note that the mirror is a new one; the facts of its snapshot follow."""
        ...

    def completed(self) -> None:
        """Note that the mirror is complete; from here on the stream brings news."""
        ...

    def latency_sensitive(self) -> bool:
        """Return True if anything here waits for the stream."""
        ...


class Feeder:
    """Owner of the mirror. Call `hurry` if something begins to wait for the stream.

    ``expects_lease`` is True while this replica is about to learn from the stream that it may lead.
    """

    def __init__(
        self, source: ChangeSource, heartbeat: ReplicaHeartbeat, clock: Clock, batch_delay: BatchDelay
    ) -> None:
        self._source = source
        self._heartbeat = heartbeat
        self._clock = clock
        self._reminders = Reminders()
        self._delay = batch_delay
        self._barrier: int | None = None
        self._resume: Any | None = None
        self.complete = False
        """The snapshot is in, and the stream has passed the moment it was read."""
        self._start_over = ""
        self._hurry = asyncio.Event()
        self.expects_lease = False
        self.mirror = Mirror()
        self.position = ""

    @property
    def seen_through_ms(self) -> MonoMs | None:
        """Return the moment before which the stream has brought everything written."""
        return self._heartbeat.seen_through_ms

    def due_ms(self, fire: Fire) -> int:
        """Return when that fire was due, by its schedule in the mirror."""
        schedule: ScheduleRef | None = self.mirror.nouns(Collection.SCHEDULES).get(fire.schedule)
        return fire.nominal_ms if schedule is None else due_ms(fire.schedule, schedule.trigger, fire.nominal_ms)

    def forget(self) -> None:
        """Drop the mirror, once `run` has ended."""
        self.mirror = Mirror()

    def hurry(self) -> None:
        """Read at once what is in the stream."""
        self._hurry.set()

    def start_over(self, reason: str) -> None:
        """Read everything again, as after lost history, in the next turn of `run`."""
        self._start_over = reason

    def want(self, job_ids: Iterable[str]) -> None:
        """Read those jobs again, in the next turn of `run`."""
        for job_id in job_ids:
            self.mirror.want(Collection.JOBS, job_id)

    def _log_loss(self, state: RetryCallState) -> None:
        if state.attempt_number == 1:
            self._reminders.over()
        reason = str(_error_of(state))
        if self._reminders.is_due(reason, self._clock.mono_ms()):
            log.warning("change_stream_lost", error=reason, tries=state.attempt_number)

    async def run(self, sink: FactSink) -> None:
        """Feed ``sink`` until cancelled: no outage ends it."""
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type((StoreUnavailable, HistoryLost)),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            before_sleep=self._log_loss,
        ):
            with attempt:
                try:
                    await self._open_and_follow(sink, attempt.retry_state)
                except HistoryLost:
                    self._resume = None
                    self.complete = False
                    self._start_over = ""
                    raise

    async def _open_and_follow(self, sink: FactSink, retry_state: Any) -> None:
        stream = await self._source.open(self._resume)
        try:
            await self._follow(stream, sink, retry_state)
        finally:
            await stream.close()
            leave_if_cancelled()

    async def _follow(self, stream: ChangeStream, sink: FactSink, retry_state: Any) -> None:
        if self._resume is None:
            await self._read_all(stream, sink)
        while True:
            if self._start_over:
                raise HistoryLost(self._start_over)
            batch = await stream.next_batch(_WAIT_MS)
            folded = self.mirror.fold(batch.changes)
            self._resume = batch.resume
            self.position = batch.position or self.position
            await self._pass_on(folded, sink)
            await self._fetch(folded.wanted, sink)
            if self._barrier is not None and self._heartbeat.echoed(self._barrier):
                self._barrier = None
                self.complete = True
                sink.completed()
                log.info("mirror_complete", digest=self.mirror.digest, position=self.position)
            if batch.changes:
                self._delay.passed(len(batch.changes), self._clock.mono_ms())
                # A feeder that is behind rests once it has caught up: with a rest after each full batch it might not.
                if not batch.is_full:
                    await self._rest(latency_sensitive=self.expects_lease or sink.latency_sensitive())
            # The backoff starts over after every successful batch.
            retry_state.attempt_number = 1

    async def _rest(self, *, latency_sensitive: bool) -> None:
        """Wait while changes gather."""
        if latency_sensitive:
            await asyncio.sleep(self._delay.wait_s(self._clock.mono_ms()))
            return
        await in_time(self._hurry.wait(), _FOLLOWER_DELAY_S)
        self._hurry.clear()

    async def _read_all(self, stream: ChangeStream, sink: FactSink) -> None:
        self.complete = False
        self.mirror = Mirror()
        await sink.restarted()
        read = 0
        with without_collecting():
            async for changes in stream.snapshot():
                read += len(changes)
                await self._pass_on(self.mirror.fold(changes), sink)
                # A large snapshot must not block the lease loop.
                await asyncio.sleep(0)
        self._barrier = self._heartbeat.barrier()
        log.info("snapshot_read", documents=read)

    async def _fetch(self, wanted: Sequence[tuple[Collection, str]], sink: FactSink) -> None:
        try:
            for collection in dict.fromkeys(collection for collection, _ in wanted):
                ids = [id for of, id in wanted if of is collection]
                for start in range(0, len(ids), FETCH_MAX):
                    part = ids[start : start + FETCH_MAX]
                    changes = await self._source.fetch(collection, part)
                    await self._pass_on(self.mirror.fold_fetched([(collection, id) for id in part], changes), sink)
        except StoreUnavailable:
            # The stream resumes after the patches that wanted these documents, so nothing would want them again.
            for collection, id in wanted:
                self.mirror.want(collection, id)
            raise

    async def _pass_on(self, folded: Folded, sink: FactSink) -> None:
        for fact in folded.facts:
            if isinstance(fact, Quarantined):
                log.warning("document_quarantined", collection=fact.collection, id=fact.id, reason=fact.reason)
        if folded.facts or folded.events or folded.marks:
            await sink.take(folded)


def _error_of(state: Any) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
