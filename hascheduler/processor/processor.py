"""The whole processor on one screen: its parts, one task a loop, and how it ends."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import Clock, Deliveries, WorkStore
from hascheduler.processor.attempt_loops import EXCHANGES, repeat
from hascheduler.processor.attempts import Acknowledgements, HeldAttempts, ProcessSlots, StopReason
from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.handlers import Handlers
from hascheduler.processor.health import ProcessorHealth
from hascheduler.processor.heartbeat import Heartbeat, SelfFence
from hascheduler.processor.intake import Intake
from hascheduler.processor.runner import Runner
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.tracing import NO_TRACING, Tracer

log = structlog.get_logger(__name__)

_STOP_LIMIT_S = 2.0
_SETTLE_LIMIT_S = 5.0
_LEAVE_LIMIT_S = 5.0


class Processor:
    """One worker process, or the part of one that serves one scheduler.

    `run` ends after `drain`, within the grace and a few seconds. ``slots`` are those of the process; None means its
    own. Coroutine handlers run in ``handler_loop``, which its maker starts and watches; if None, in the loop of `run`,
    for tests, where a handler that blocks stops the heartbeat too.
    """

    def __init__(
        self,
        handlers: Handlers,
        work: WorkStore,
        deliveries: Deliveries,
        clock: Clock,
        config: ProcessorConfig,
        *,
        slots: ProcessSlots | None = None,
        handler_loop: HandlerLoop | None = None,
        tracer: Tracer = NO_TRACING,
        metrics: ProcessorMetrics | None = None,
    ) -> None:
        self._work = work
        self._deliveries = deliveries
        self._config = config
        self._draining = asyncio.Event()
        self.attempts = HeldAttempts(config.held_max)
        self._fence = SelfFence(
            clock, config.heartbeat_deadline_ms, lambda: self.attempts.stop_started(StopReason.FENCED)
        )
        receipts = Acknowledgements()
        metrics = metrics or ProcessorMetrics()
        self._runner = Runner(
            handlers=handlers,
            work=work,
            clock=clock,
            config=config,
            attempts=self.attempts,
            fence=self._fence,
            receipts=receipts,
            slots=slots or ProcessSlots(config.slots),
            handler_loop=handler_loop,
            tracer=tracer,
            metrics=metrics,
        )
        self._intake = Intake(deliveries, self.attempts, self._runner, receipts)
        self.heartbeat = Heartbeat(
            work=work,
            clock=clock,
            config=config,
            definitions=handlers.definitions,
            fence=self._fence,
            parked=lambda: receipts.parked,
            handler_loop=handler_loop,
            consuming=lambda: deliveries.consuming,
        )
        self.health = ProcessorHealth(
            clock=clock,
            attempts=self.attempts,
            fence=self._fence,
            heartbeat=self.heartbeat,
            receipts=receipts,
            deliveries=deliveries,
            draining=self._draining,
            handler_loop=handler_loop,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as loops:
            running = [
                loops.create_task(self.heartbeat.run(), name="heartbeat"),
                loops.create_task(self._fence.watch(), name="fence"),
                *(
                    loops.create_task(repeat(each, failed, self._work, self._config, self.attempts), name=each.__name__)
                    for failed, each in EXCHANGES.items()
                ),
                loops.create_task(self._intake.run(self.heartbeat.deliveries_turned), name="intake"),
            ]
            await self._draining.wait()
            await self._finish_draining()
            for task in running:
                task.cancel()
        await self._try_to_leave("delete the queue", self._deliveries.delete)
        await self._try_to_leave("deregister", lambda: self._work.deregister(self._config.id))

    def drain(self) -> None:
        """Begin to stop: take nothing new, finish what runs within the grace, give the rest back."""
        self._draining.set()

    # If it is one of several in this process

    @property
    def load(self) -> int:
        """Return how many attempts it holds; if the database does not answer, those whose handlers may run."""
        return len(self.attempts.held) if self._fence.trusted else self.attempts.at_work

    def take_most_load(self) -> int:
        """Return the most attempts that it held at one moment since the last call, or now if it is fenced."""
        most = self.attempts.take_most()
        return most if self._fence.trusted else self.load

    async def _finish_draining(self) -> None:
        self.heartbeat.drain()
        self._intake.drain()
        log.info("processor_draining", held=len(self.attempts.held), grace_ms=self._config.drain_grace_ms)
        if await self.attempts.wait_until_none(self._config.drain_grace_ms / 1000):
            return
        self.attempts.stop_started(StopReason.DRAINED)
        if await self.attempts.wait_until_none(_STOP_LIMIT_S):
            return
        for attempt in self.attempts.held:
            attempt.cancel_again()
        if not await self.attempts.wait_until_none(_SETTLE_LIMIT_S):
            # The leader finds them when this registration is gone or its heartbeat stops.
            log.warning("attempts_abandoned", attempts=[f"{job_id}/{number}" for job_id, number in self.attempts.keys])

    async def _try_to_leave(self, doing: str, leave: Callable[[], Awaitable[None]]) -> None:
        """Try once to delete the queue or the registration: abandoned, they expire by themselves."""
        try:
            async with asyncio.timeout(_LEAVE_LIMIT_S):
                await leave()
        except (WorldError, TimeoutError) as error:
            log.warning("deregister_failed", doing=doing, error=str(error) or "no answer in time")
