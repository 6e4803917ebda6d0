"""What comes in through the feeder, the inbox and the waiters, and what the publisher sends out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.loop import feeder as feeder_module
from hascheduler.daemon.loop import inbox as inboxes
from hascheduler.daemon.loop.batch_delay import PER_CHANGE_MS, BatchDelay
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.inbox import INPUTS_MAX, Inbox
from hascheduler.daemon.loop.stepper import DecisionLag
from hascheduler.daemon.outbound.publisher import MessageSpans, Publisher
from hascheduler.daemon.outbound.waiters import WAITERS_MAX, Waiters
from hascheduler.dispatch.decisions import CancelNotice, Publish, Send
from hascheduler.dispatch.inputs import TransportSeen, TrustLost
from hascheduler.errors import Overloaded, StoreUnavailable
from hascheduler.mirror.changes import Change, JobGone, JobSeen, Operation
from hascheduler.mirror.mirror import Folded
from hascheduler.model.collection import Collection
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.model.values.instants import MonoMs
from hascheduler.mongo.transport import MongoTransport
from hascheduler.ports import Batch, Confirm, Delivery, JobTraces, TracedJob
from hascheduler.telemetry.tracing import Tracer
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries, MemoryTransport
from tests.unit.daemon.doubles import comes, running
from tests.unit.dispatch.nouns import running as running_job
from tests.unit.telemetry.spans import CALLER, Recorded, id_of, parent_of, span_id, trace_of


async def test_processors_that_poll_are_sent_nothing() -> None:
    broker = MemoryBroker()
    for id in ("p1", "http:p.1"):
        broker.queue(id)
    publisher = Publisher(MemoryTransport(broker), Inbox())
    async with running(publisher.run()):
        for id in ("http:p.1", "p1"):
            publisher.offer([Publish("a", 1, id), CancelNotice("b", 1, id)])
        assert await publisher.drained(5)
    assert (broker.waiting("p1"), broker.waiting("http:p.1")) == (2, 0)


async def test_with_a_fallback_the_core_may_dispatch_while_the_broker_is_away() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    broker.queue("p1")
    broker.accepting = False
    publisher = Publisher(MemoryTransport(broker), inbox, fallback=MongoTransport())
    async with running(publisher.run()):
        publisher.offer([Publish("a", 1, "p1")])
        assert await publisher.drained(5)
        assert inbox.take() == [TransportSeen(True)]
        # It is the broker that metrics and alerts are about.
        assert not publisher.transport.accepting
        broker.accepting = True
        assert publisher.transport.accepting
        publisher.offer([Publish("b", 1, "p1")])
        assert await publisher.drained(5)
    assert broker.waiting("p1") == 1


class Known:
    """`JobTraces` of a table; counts how often it is asked."""

    def __init__(self, **jobs: TracedJob) -> None:
        self.jobs = jobs
        self.asked: list[Sequence[str]] = []

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        self.asked.append(job_ids)
        return {id: self.jobs[id] for id in job_ids if id in self.jobs}


class Away:
    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        raise StoreUnavailable("read the traces of jobs: no answer in time")


class Unconfirmed(MemoryTransport):
    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        return [Confirm.UNKNOWN for _ in await super().publish(messages)]


async def published(
    sends: Sequence[Send], tracer: Tracer, traces: JobTraces | None, made: type[MemoryTransport] = MemoryTransport
) -> list[Delivery]:
    """What the processor ``p1`` gets, in the order in which it was published."""
    broker = MemoryBroker()
    broker.queue("p1")
    publisher = Publisher(made(broker), Inbox(), MessageSpans(tracer, traces))
    arrived: list[Delivery] = []

    async def take(delivery: Delivery) -> None:
        arrived.append(delivery)
        await delivery.ack()

    async with running(publisher.run(lambda: 7), MemoryDeliveries(broker, "p1", 8).run(take)):
        publisher.offer(sends)
        assert await publisher.drained(20)
        async with asyncio.timeout(20):
            while len(arrived) < len(sends):  # noqa: ASYNC110  # the broker knows nothing of those who wait
                await asyncio.sleep(0)
    return arrived


async def test_the_message_of_an_attempt_carries_a_span_within_the_trace_of_its_job() -> None:
    recorded = Recorded()
    traces = Known(a=TracedJob("log", "tick", CALLER))
    [delivery] = await published([Publish("a", 2, "p1")], recorded.tracer, traces)
    recorded_span = recorded.one("dispatch log")
    assert (trace_of(recorded_span), parent_of(recorded_span)) == (CALLER.trace_id, span_id(CALLER))
    assert delivery.trace is not None
    assert (delivery.trace.trace_id, span_id(delivery.trace)) == (trace_of(recorded_span), id_of(recorded_span))
    assert dict(recorded_span.attributes or {}) == {
        "hascheduler.job.id": "a",
        "hascheduler.job.attempt": 2,
        "hascheduler.job.definition": "log",
        "hascheduler.job.schedule": "tick",
        "hascheduler.processor": "p1",
        "hascheduler.term": 7,
    }
    assert recorded_span.status.is_unset


async def test_an_unconfirmed_message_has_failed_and_goes_out_again_as_the_same() -> None:
    recorded = Recorded()
    traces = Known(a=TracedJob("log", None, CALLER))
    await published([Publish("a", 1, "p1")], recorded.tracer, traces, Unconfirmed)
    recorded_span = recorded.one("dispatch log")
    assert (recorded_span.attributes or {})["error.type"] == "unconfirmed"


@pytest.mark.parametrize("traces", [Away(), None])
async def test_a_message_goes_out_where_the_trace_of_its_job_is_unknown(traces: JobTraces | None) -> None:
    recorded = Recorded()
    [delivery] = await published([Publish("a", 1, "p1")], recorded.tracer, traces)
    message = decode_message(delivery.body)
    assert (message.kind, message.job_id, message.attempt) == (MessageKind.RUN, "a", 1)
    assert delivery.trace is None
    assert recorded.names == []


LONG_S = 3_600


class BusyStream:
    """There is always something to tell; the first ``full`` times as much as a batch holds."""

    def __init__(self, full: int = 0) -> None:
        self.full = full
        self.reads = 0
        self.was_read = asyncio.Event()

    async def open(self, _: Any) -> "BusyStream":
        return self

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        yield []

    async def next_batch(self, _: int) -> Batch:
        self.reads += 1
        self.was_read.set()
        changes = [Change(Collection.META, Operation.DELETE, f"{self.reads}", {})]
        return Batch(changes, self.reads, str(self.reads), is_full=self.reads <= self.full)

    async def fetch(self, _: Collection, __: Sequence[str]) -> Sequence[Change]:
        return []

    async def close(self) -> None:
        pass


class NoHeartbeat:
    def barrier(self) -> int:
        return 1

    def echoed(self, _: int) -> bool:
        return True


class Sink:
    def __init__(self, *, latency_sensitive: bool, complete: Callable[[], object] = lambda: None) -> None:
        self._latency_sensitive = latency_sensitive
        self._complete = complete

    async def take(self, folded: Folded) -> None:
        pass

    async def restarted(self) -> None:
        pass

    def completed(self) -> None:
        self._complete()

    def latency_sensitive(self) -> bool:
        return self._latency_sensitive


def feeder_of(stream: Any) -> Feeder:
    heartbeat: Any = NoHeartbeat()
    return Feeder(stream, heartbeat, SystemClock(), BatchDelay(PER_CHANGE_MS, max_ms=20))


async def test_a_follower_that_is_behind_rests_once_it_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_FOLLOWER_DELAY_S", LONG_S)
    stream = BusyStream(full=5)
    async with running(feeder_of(stream).run(Sink(latency_sensitive=False))):
        while stream.reads < 6:
            await comes(stream.was_read)
        await asyncio.sleep(0.1)
        assert stream.reads == 6


@pytest.mark.parametrize(("waited_for", "expects_lease"), [(True, False), (False, True), (False, False)])
async def test_a_follower_rests_until_it_is_waited_for_or_about_to_lead(
    monkeypatch: pytest.MonkeyPatch, *, waited_for: bool, expects_lease: bool
) -> None:
    monkeypatch.setattr(feeder_module, "_FOLLOWER_DELAY_S", LONG_S)
    stream = BusyStream()
    feeder = feeder_of(stream)
    feeder.expects_lease = expects_lease
    async with running(feeder.run(Sink(latency_sensitive=waited_for))):
        await comes(stream.was_read)
        if waited_for or expects_lease:
            await comes(stream.was_read)
            return
        await asyncio.sleep(0.1)
        assert stream.reads == 1
        feeder.hurry()
        await comes(stream.was_read)
        await asyncio.sleep(0.1)
        assert stream.reads == 2


def test_a_lag_is_the_mean_of_about_a_second() -> None:
    lag = DecisionLag()
    for at_ms in range(0, 3_000, 10):
        lag.observe(400, MonoMs(at_ms))
    assert lag.mean_ms(MonoMs(3_000)) == 400
    lag.observe(0, MonoMs(3_000))
    assert 390 < (lag.mean_ms(MonoMs(3_000)) or 0) < 400
    for at_ms in range(3_000, 8_000, 10):
        lag.observe(20, MonoMs(at_ms))
    assert 20 <= (lag.mean_ms(MonoMs(8_000)) or 0) < 25


STARTED = JobSeen(running_job("a", "p"))
"""An input that can wait."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that can wait do so for longer than a test takes."""
    monkeypatch.setattr(inboxes, "_WAITING_MAX_S", 3_600)


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_facts_wait_while_it_is_full_and_news_of_ones_own_does_not() -> None:
    inbox = Inbox()
    await inbox.put([JobGone(str(i)) for i in range(INPUTS_MAX)])
    late = asyncio.create_task(inbox.put([JobGone("late")]))
    await asyncio.wait({late}, timeout=0.01)
    assert not late.done()
    inbox.put_now(TrustLost())
    assert len(inbox.take()) == INPUTS_MAX + 1
    await late
    assert inbox.take() == [JobGone("late")]


@pytest.mark.usefixtures("patient")
async def test_many_inputs_do_not_wait_for_each_other() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait(3_600))
    for _ in range(inboxes._GATHERED_MAX):
        await _turns()
        assert not waiting.done()
        await inbox.put([STARTED])
    await waiting
    assert len(inbox.take()) == inboxes._GATHERED_MAX


async def test_a_waiter_wakes_for_its_name_alone_and_once_for_all_that_happened() -> None:
    waiters = Waiters()
    with waiters.waiting("a") as one, waiters.waiting("a") as other, waiters.waiting("b") as stranger:
        waiting = asyncio.create_task(stranger.wait())
        waiters.notify("a")
        waiters.notify("a")
        assert await one.wait()
        assert await other.wait()
        again = asyncio.create_task(one.wait())
        await asyncio.sleep(0)
        assert not again.done()
        assert not waiting.done()
        waiters.notify_all()
        assert await again
        assert await waiting
    assert not waiters.by_name
    waiters.notify("a")


async def test_there_is_room_for_so_many_and_again_when_one_is_gone() -> None:
    waiters = Waiters()
    hung = [waiters.waiting(str(number % 3)) for number in range(WAITERS_MAX)]
    for bell in hung:
        bell.__enter__()
    with pytest.raises(Overloaded), waiters.waiting("a"):
        pass
    hung.pop().__exit__(None, None, None)
    with waiters.waiting("a"):
        assert len(waiters.by_name) == 4


async def test_when_the_replica_ends_no_request_waits_and_none_begins_to() -> None:
    waiters = Waiters()
    with waiters.waiting("a") as bell:
        waiting = asyncio.create_task(bell.wait())
        await asyncio.sleep(0)
        waiters.close()
        assert not await waiting
    with pytest.raises(Overloaded, match="shutting down"), waiters.waiting("a"):
        pass
