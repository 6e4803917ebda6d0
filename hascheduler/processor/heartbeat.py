"""Shows that this processor lives: once an interval one write for all its jobs, or the registration if it is gone."""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock, WorkStore
from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.self_fence import SelfFence
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)


class Heartbeat:
    """Owns the registration: the beat's number and whether it is draining."""

    def __init__(
        self,
        *,
        work: WorkStore,
        clock: Clock,
        config: ProcessorConfig,
        definitions: frozenset[str],
        fence: SelfFence,
        parked: Callable[[], int],
        handler_loop: HandlerLoop | None = None,
    ) -> None:
        self._work = work
        self._clock = clock
        self._config = config
        self._definitions = definitions
        self._fence = fence
        self._parked = parked
        self._handler_loop = handler_loop
        self._beat = 0
        self._draining = False
        self._registered = False
        self._slots = config.offered
        self._slots_told = 0
        self._turned_at = clock.mono_ms()
        self._hurry = asyncio.Event()
        self._reminders = Reminders()
        # Two tries before the deadline, so that one exchange that hangs does not close the fence.
        self._limit_s = max(config.heartbeat_deadline_ms / 2, config.heartbeat_interval_ms) / 1000

    @property
    def registered(self) -> bool:
        """Whether it ever was."""
        return self._registered

    @property
    def slots(self) -> int:
        """How many it offers."""
        return self._slots

    @property
    def turned_at_ms(self) -> MonoMs:
        """When the loop last came round."""
        return self._turned_at

    def drain(self) -> None:
        """Tell the leader now: no new jobs."""
        self._draining = True
        self._hurry.set()

    def offer(self, slots: int) -> None:
        """Tell the leader now: it has so many slots."""
        self._slots = slots
        self._hurry.set()

    async def run(self) -> None:
        while True:
            self._fence.check()
            began_at = self._turned_at = self._clock.mono_ms()
            self._hurry.clear()
            try:
                async with asyncio.timeout(self._limit_s):
                    await self._write()
            except (WorldError, TimeoutError) as error:
                reason = str(error) or "no answer in time"
                if self._reminders.is_due(reason, began_at):
                    log.warning("beat_failed", error=reason)
            else:
                self._reminders.over()
                self._fence.renewed(began_at)
            leave_if_cancelled()
            pause_ms = self._config.heartbeat_interval_ms - (self._clock.mono_ms() - began_at)
            try:
                async with asyncio.timeout(max(pause_ms, 0) / 1000):
                    await self._hurry.wait()
            except TimeoutError:
                pass

    async def _write(self) -> None:
        self._beat += 1
        slots = self._slots
        # Whose handlers stand still gets no new jobs; the next beat after that says that it takes some again.
        draining = self._draining or (self._handler_loop is not None and self._handler_loop.stall is not None)
        if self._slots_told == slots and await self._work.beat(
            self._config.id, self._beat, draining=draining, parked=self._parked()
        ):
            return
        await self._work.register(
            ProcessorRef(
                id=self._config.id,
                name=self._config.name,
                shard=self._config.shard,
                definitions=self._definitions,
                slots=slots,
                beat=self._beat,
                draining=draining,
                parked=self._parked(),
                resources=self._config.resources,
                liveness_endpoint=self._config.liveness_endpoint,
            )
        )
        log.info("registered", processor=self._config.id, definitions=sorted(self._definitions))
        self._registered, self._slots_told = True, slots
