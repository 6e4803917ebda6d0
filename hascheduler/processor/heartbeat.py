"""Show that this processor lives: once an interval one write for all its jobs, or the registration if it is gone.

The heartbeat also reports whether messages arrive here. A processor that does not consume is registered as draining: it
gets no jobs, not even from a leader of 0.2.0, and what it runs goes on.

`SelfFence` judges for this processor whether the leader still takes it for alive. The leader gives a processor's jobs
to others when its heartbeat has not changed for the heartbeat timeout. The fence closes earlier: ``deadline_ms`` after
the beginning of the last written heartbeat, on a monotonic clock. The leader can't have seen that heartbeat before it
began, so the two spans never overlap, whatever the pauses and whichever side woke first: code that is about to rely on
trust calls `check`, which reads the clock before anything else.

Once closed, it opens with the second heartbeat, not the first: the leader may be about to find this processor lost
while the first is on its way, and an attempt started in between would run at another processor as well.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from hascheduler.errors import WorldError
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.model.processor import NOT_CONSUMING, ProcessorRef
from hascheduler.model.resources import Resources
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock, WorkStore
from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

_CHECK_MS_MAX = 1_000


class SelfFence:
    """Closed until the first heartbeat. Its only state is when the last written one began, and when it last checked."""

    def __init__(self, clock: Clock, deadline_ms: int, on_lost: Callable[[], None]) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._on_lost = on_lost
        self._beat_began_at: MonoMs | None = None
        self._open = asyncio.Event()
        self.checked_at_ms = clock.mono_ms()
        """When `watch` last turned."""

    @property
    def trusted(self) -> bool:
        """Return True while this processor may run handlers. It only reads the clock, so any thread may ask."""
        return self._beat_began_at is not None and self._clock.mono_ms() - self._beat_began_at < self._deadline_ms

    @property
    def age_ms(self) -> int | None:
        """Return the time since the last written heartbeat began; None before the first."""
        return None if self._beat_began_at is None else self._clock.mono_ms() - self._beat_began_at

    def check(self) -> bool:
        """Return `trusted`; the first call that finds trust lost closes the fence, which stops all handlers."""
        trusted = self.trusted
        if self._open.is_set() and not trusted:
            self._open.clear()
            log.warning("processor_fenced", no_heartbeat_for_ms=self._clock.mono_ms() - (self._beat_began_at or 0))
            self._on_lost()
        return trusted

    def renewed(self, began_at: MonoMs) -> None:
        """Record that the heartbeat that began then has been written."""
        is_first = self._beat_began_at is None
        # A pause may lie in between; what ran before it must not live on under the new trust.
        was_trusted = self.check()
        self._beat_began_at = began_at
        if self.trusted and (was_trusted or is_first):
            self._open.set()

    async def wait_until_open(self) -> None:
        """Return while the fence is open, or wait until it is."""
        await self._open.wait()

    async def watch(self) -> None:
        """Stop what runs at the moment at which trust ends."""
        while True:
            await asyncio.sleep(min(self._until_lost_ms(), _CHECK_MS_MAX) / 1000)
            self.checked_at_ms = self._clock.mono_ms()
            self.check()

    def _until_lost_ms(self) -> int:
        age_ms = self.age_ms
        if age_ms is None or not self._open.is_set():
            return self._deadline_ms // 4  # there is nothing to stop before a beat has opened it
        return max(self._deadline_ms - age_ms, 1)


AWAY_MS = 3_000
"""How long a processor that stopped consuming still counts as able: most connections are back by then."""


class _Offer(NamedTuple):
    slots: int
    resources: Resources


@dataclass(kw_only=True)
class Heartbeat:
    """Owner of the registration: the heartbeat's number, and whether it is draining and consuming."""

    work: WorkStore
    clock: Clock
    config: ProcessorConfig
    definitions: frozenset[str]
    fence: SelfFence
    parked: Callable[[], int]
    consuming: Callable[[], bool]
    handler_loop: HandlerLoop | None = None

    def __post_init__(self) -> None:
        self._away_since: MonoMs | None = None
        self._registered_able = False
        self._beat = 0
        self._draining = False
        self._offer = _Offer(self.config.offered, self.config.resources)
        self.registered_offer: _Offer | None = None
        """What the registration shows; None until there was one."""
        self.turned_at_ms = self.clock.mono_ms()
        """When the loop last turned."""
        self._hurry = asyncio.Event()
        self._reminders = Reminders()
        # Two tries before the deadline, so that one exchange that hangs does not close the fence.
        self._limit_s = max(self.config.heartbeat_deadline_ms / 2, self.config.heartbeat_interval_ms) / 1000

    @property
    def slots(self) -> int:
        """Return how many slots it offers."""
        return self._offer.slots

    @property
    def offer_is_registered(self) -> bool:
        """Return True if the registration shows what it offers."""
        return self.registered_offer == self._offer

    def drain(self) -> None:
        """Tell the leader at once: no new jobs."""
        self._draining = True
        self._hurry.set()

    def offer(self, slots: int, resources: Resources) -> None:
        """Tell the leader at once how many slots and which resources it has."""
        offer = _Offer(slots, resources)
        if offer != self._offer:
            self._offer = offer
            self._hurry.set()

    def deliveries_turned(self) -> None:
        """Tell the leader soon that messages now arrive, or no longer do."""
        self._hurry.set()

    async def run(self) -> None:
        if not self.consuming():
            await self._pause(AWAY_MS)  # usually the queue is there in a moment: one write less
        while True:
            self.fence.check()
            began_at = self.turned_at_ms = self.clock.mono_ms()
            self._hurry.clear()
            try:
                async with asyncio.timeout(self._limit_s):
                    await self._write()
            except (WorldError, TimeoutError) as error:
                reason = str(error) or "no answer in time"
                if self._reminders.is_due(reason, began_at):
                    log.warning("heartbeat_failed", error=reason)
            else:
                self._reminders.over()
                self.fence.renewed(began_at)
            leave_if_cancelled()
            next_at = began_at + self.config.heartbeat_interval_ms
            if self._registered_able and self._away_since is not None:
                next_at = min(next_at, self._away_since + AWAY_MS)
            await self._pause(next_at - self.clock.mono_ms())

    async def _pause(self, pause_ms: int) -> None:
        await in_time(self._hurry.wait(), max(pause_ms, 0) / 1000)

    def _is_able(self) -> bool:
        """Return True if messages arrive here, or did a moment ago."""
        now = self.clock.mono_ms()
        if self.consuming():
            self._away_since = None
            return True
        if self._away_since is None:
            self._away_since = now
        return self._registered_able and now - self._away_since < AWAY_MS

    async def _write(self) -> None:
        able = self._is_able()
        await self._beat_or_register(able)
        if able is not self._registered_able:
            self._registered_able = able
            log.info("consuming_resumed") if able else log.warning("consuming_stopped", reason=NOT_CONSUMING)

    async def _beat_or_register(self, able: bool) -> None:
        self._beat += 1
        # While its handlers are stalled it gets no new jobs; the next heartbeat after that offers slots again.
        has_stalled = self.handler_loop is not None and self.handler_loop.stall is not None
        offer, draining = self._offer, self._draining or has_stalled or not able
        if self.registered_offer == offer and await self.work.beat(
            self.config.id, self._beat, draining=draining, consuming=able, parked=self.parked()
        ):
            return
        await self.work.register(
            ProcessorRef(
                id=self.config.id,
                name=self.config.name,
                shard=self.config.scheduler,
                definitions=self.definitions,
                slots=offer.slots,
                beat=self._beat,
                draining=draining,
                consuming=able,
                parked=self.parked(),
                resources=offer.resources,
                liveness_endpoint=self.config.liveness_endpoint,
            )
        )
        if self.registered_offer is None or self.registered_offer == offer:
            log.info("processor_registered", processor=self.config.id, definitions=sorted(self.definitions))
        self.registered_offer = offer
