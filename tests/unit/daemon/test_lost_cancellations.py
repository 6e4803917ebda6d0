"""A driver may lose a cancellation: each loop around one ends all the same, whatever the call then came to."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.leadership.lease_poller import LeasePoller
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.event_log import EventPublisher
from hascheduler.daemon.outbound.failure_reports import FailureReports
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import Publish
from hascheduler.errors import BrokerUnavailable, StoreUnavailable
from hascheduler.lifecycle import _prepared
from hascheduler.model.message import Message, MessageKind, encode_message
from hascheduler.ports import Confirm, Delivery, StopRequests
from hascheduler.processor.attempt_loops import repeat, stop_request_lookup
from hascheduler.processor.attempts import Acknowledgements, HeldAttempts, Phase
from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.heartbeat import Heartbeat, SelfFence
from hascheduler.processor.intake import Intake
from hascheduler.processor.outcomes import until_answered
from hascheduler.rabbitmq.connection import BrokerConnection, Session
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from tests.unit.daemon.happenings import log_of

LIMIT_S = 20
CONFIG = ProcessorConfig("p", "p", "default", 1, 10, 10_000, 0)


class Driver:
    """Each call hangs. The first that is cancelled loses that, and returns its answer or raises ``error``."""

    def __init__(self, error: Exception | None) -> None:
        self.called = asyncio.Event()
        self.calls_after = 0
        self._error = error
        self._is_lost = False

    async def call(self, answer: Any = None) -> Any:
        self.called.set()
        if self._is_lost:
            self.calls_after += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._is_lost:
                raise
            self._is_lost = True
        if self._error is not None:
            raise self._error
        return answer


class Port:
    """Any port: each of its methods is such a call."""

    accepting = consuming = True

    def __init__(self, driver: Driver, answer: Any = None) -> None:
        self._driver = driver
        self._answer = answer

    async def run(self, *_: object) -> None:
        await asyncio.Event().wait()

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*_: object, **__: object) -> Any:
            return await self._driver.call(self._answer)

        return call


def port(driver: Driver, answer: Any = None) -> Any:
    return Port(driver, answer)


async def publisher(driver: Driver) -> None:
    made = Publisher(port(driver, [Confirm.UNKNOWN]), Inbox())
    made.offer([Publish("a", 1, "p1")])
    await made.run()


async def event_publisher(driver: Driver) -> None:
    await EventPublisher(log_of(1), port(driver, answer=False), lambda: True).run()


async def failure_reports(driver: Driver) -> None:
    await FailureReports(
        jobs=port(driver, []),
        events=log_of(1),
        nouns=lambda _: {},
        pending=lambda _: 0,
        leading=lambda: True,
        clock=SystemClock(),
        metrics=ReplicaMetrics(),
        shards=1,
    ).run()


async def heartbeat(driver: Driver) -> None:
    clock = SystemClock()
    fence = SelfFence(clock, CONFIG.heartbeat_deadline_ms, lambda: None)
    work = port(driver)
    await Heartbeat(
        work=work,
        clock=clock,
        config=CONFIG,
        definitions=frozenset("d"),
        fence=fence,
        parked=lambda: 0,
        consuming=lambda: True,
    ).run()


async def stop_poller(driver: Driver) -> None:
    attempts = HeldAttempts(1)
    attempt = await attempts.hold(("a", 1))
    assert attempt is not None
    attempt.phase = Phase.RUNNING
    work = port(driver, StopRequests(frozenset(), frozenset()))
    await repeat(stop_request_lookup, "stop_request_lookup_failed", work, CONFIG, attempts)


async def finish(driver: Driver) -> None:
    async def ask() -> None:
        await driver.call()
        raise StoreUnavailable("down")

    await until_answered(ask, "finish")


class Endless(Port):
    """The same message again and again."""

    async def run(self, sink: Any, turned: Any = None) -> None:  # type: ignore[override]  # it gets them
        body = encode_message(Message(MessageKind.CANCEL, "a", 1))
        while True:
            await sink(Delivery(body, self._driver.call, lambda _: self._driver.call()))


async def intake(driver: Driver) -> None:
    await Intake(Endless(driver), HeldAttempts(1), port(driver), Acknowledgements()).run(lambda: None)


async def connection(driver: Driver) -> None:
    async def connect(*_: object, **__: object) -> None:
        await driver.call()
        raise ConnectionRefusedError

    async def use(_: Session) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aio_pika.connect", connect)
        await BrokerConnection("amqp://127.0.0.1:1/", "test").run(use)


async def connection_in_use(driver: Driver) -> None:
    link = BrokerConnection("amqp://127.0.0.1:1/", "test")

    async def once(*_: object) -> None:
        await driver.call()
        raise BrokerUnavailable("refused")

    class Closing:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None:
            """It is lost while the connection is closed."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "session", Closing)
        await link.run(once)


async def lease_poller(driver: Driver) -> None:
    class Follower:
        in_term = False
        lease = None

    follower: Any = Follower()
    await LeasePoller(port(driver), follower, name="default", retry_period_ms=10, seen=lambda _: None).run()


async def first_contact(driver: Driver) -> None:
    async def prepare() -> None:
        await driver.call()
        raise StoreUnavailable("not yet")

    await _prepared(prepare, 600_000)


LOOPS = (
    publisher, event_publisher, failure_reports, heartbeat, stop_poller, finish, intake, connection, connection_in_use,
    lease_poller, first_contact,
)  # fmt: skip


@pytest.mark.parametrize("error", [None, StoreUnavailable("refused"), BrokerUnavailable("refused")], ids=repr)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
async def test_a_loop_whose_driver_loses_its_cancellation_ends(
    loop: Callable[[Driver], Coroutine[Any, Any, None]], error: Exception | None
) -> None:
    driver = Driver(error)
    task = asyncio.create_task(loop(driver))
    async with asyncio.timeout(LIMIT_S):
        await driver.called.wait()
    task.cancel()
    await asyncio.wait({task}, timeout=LIMIT_S)
    is_over = task.done()
    task.cancel()
    await asyncio.wait({task}, timeout=LIMIT_S)
    assert is_over
    assert driver.calls_after == 0
