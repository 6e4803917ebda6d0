"""What is published, and what is not."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import MessageSpans, Publisher
from hascheduler.dispatch.decisions import CancelNotice, Publish, Send
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.errors import StoreUnavailable
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.mongo.transport import MongoTransport
from hascheduler.ports import Confirm, Delivery, JobTraces, TracedJob
from hascheduler.telemetry.tracing import Tracer
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries, MemoryTransport
from tests.unit.daemon.doubles import running
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
        assert not publisher.accepting
        broker.accepting = True
        assert publisher.accepting
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
