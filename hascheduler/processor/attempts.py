"""The attempts that this process holds: from the message that names them until the database has their end.

::

    WAITING ──► STARTING ──► RUNNING ──► SETTLING      WAITING ──► SETTLING  (no room, draining)
    for a slot  asking       the handler reporting     STARTING ─► SETTLING  (no answer, no handler)

`HeldAttempts` owns the book, and only the event loop touches it. A held attempt is never started a second time, however
many messages name it: that is the local half of "one start for each (job, attempt)".

`Acknowledgements` acknowledges messages, or parks them with the reason. Neither may fail an attempt: a message that
could not be acknowledged comes again, and finds an attempt that is held or a start that is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import structlog

from hascheduler.errors import WorldError
from hascheduler.lifecycle import in_time
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Delivery, HandlerProgress

if TYPE_CHECKING:
    from hascheduler.processor.handler_loop import Stall

log = structlog.get_logger(__name__)

Key = tuple[str, int]
_LAST_MOMENT_S = 1.0


class Phase(IntEnum):
    WAITING = 1
    STARTING = 2
    RUNNING = 3
    SETTLING = 4


class StopReason(IntEnum):
    """Why an attempt must stop; of several reasons the highest decides how it ends."""

    DRAINED = 1
    """Give it back: this process stops."""
    BLOCKED = 2
    """Give it back: another handler blocks the event loop, perhaps for ever."""
    TIMED_OUT = 3
    """It took too long and has failed; a later result is late."""
    BLOCKING = 4
    """It blocks the event loop, perhaps for ever, and has failed."""
    CANCELLED = 5
    """Its cancellation was requested: finish it as cancelled, unless a result comes first."""
    REVOKED = 6
    """It is no longer ours: write nothing more about it."""
    FENCED = 7
    """It may no longer be ours: drop its result, and give it back if it still is."""


class HeldAttempt:
    """One held attempt; its runner moves it through the phases, any part may `stop` it."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.phase = Phase.WAITING
        self.has_slot = False
        self.stop_reason: StopReason | None = None
        self.cancel_requested = False
        self.timed_out = False
        self.in_thread = False
        """Its handler runs in a thread, which can't be stopped."""
        self.overdue_since_ms: WallMs | None = None
        """When it timed out."""
        self.overdue_reported = False
        self.definition = ""
        """Known once it has started."""
        self.handled_for_ms: int | None = None
        """How long its handler ran; None until it has ended."""
        self.stall: Stall | None = None
        """The newest stall of the event loop that delayed it."""
        self.progress: HandlerProgress | None = None
        """The newest report of its handler."""
        self.progress_reported: HandlerProgress | None = None
        self._wait: asyncio.Timeout | None = None
        self._handler: asyncio.Task[Any] | None = None
        self._abandoned: asyncio.Future[None] | None = None

    def stop(self, reason: StopReason) -> None:
        if self.stop_reason is None and self._handler is not None:
            self._handler.cancel()
        self.stop_reason = reason if self.stop_reason is None else max(reason, self.stop_reason)
        self.cancel_requested = self.cancel_requested or reason is StopReason.CANCELLED
        self.timed_out = self.timed_out or reason is StopReason.TIMED_OUT
        if self._wait is not None and reason is StopReason.DRAINED:
            self._wait.reschedule(asyncio.get_running_loop().time())

    @property
    def is_running(self) -> bool:
        """Return True if its handler runs and has not been abandoned."""
        return self._handler is not None

    @property
    def is_overdue(self) -> bool:
        """Return True if it has timed out and its thread goes on."""
        return self.timed_out and self.in_thread

    def cancel_again(self) -> None:
        """Cancel a second time, for handlers that ignored the first; one that ignores this too is abandoned.

        A thread that timed out is not abandoned: what it holds stays held until it has ended, at the latest with this
        process, and nothing is written about its attempt before.
        """
        if self._handler is not None and not self.is_overdue:
            self._handler.cancel()
            asyncio.get_running_loop().call_later(_LAST_MOMENT_S, self._abandon)

    @property
    def abandon_reason(self) -> StopReason:
        """Return why a running handler was abandoned; without any other reason this process stops."""
        return StopReason.DRAINED if self.stop_reason is None else self.stop_reason

    async def wait_for(self, room: Callable[[], Awaitable[None]], limit_s: float) -> bool:
        """Wait for ``room``; return True if it came within the limit and before a drain."""
        if self.stop_reason is StopReason.DRAINED:
            return False
        try:
            async with asyncio.timeout(limit_s) as self._wait:
                await room()
        except TimeoutError:
            return False
        finally:
            self._wait = None
        return True

    async def wait_for_handler(self, handler: asyncio.Task[Any]) -> bool:
        """Wait until the handler has ended; return False if it was abandoned and may never end.

        A cancellation abandons it.
        """
        self._handler = handler
        self._abandoned = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({handler, self._abandoned}, return_when=asyncio.FIRST_COMPLETED)
            return handler.done()
        finally:
            self._abandoned.cancel()
            handler.cancel()
            self._handler = None

    def _abandon(self) -> None:
        if self._abandoned is not None and not self._abandoned.done():
            self._abandoned.set_result(None)


class HeldAttempts:
    """The book of held attempts, with room for ``held_max``."""

    def __init__(self, held_max: int) -> None:
        self._held: dict[Key, HeldAttempt] = {}
        self._room = asyncio.Semaphore(held_max)
        self._most = 0
        self._none_held = asyncio.Event()
        self._none_held.set()

    async def hold(self, key: Key) -> HeldAttempt | None:
        """Return a new attempt once there is room, or None if it is held already."""
        if key in self._held:
            return None
        await self._room.acquire()
        self._none_held.clear()
        held = self._held.setdefault(key, HeldAttempt(key))
        self._most = max(self._most, len(self._held))
        return held

    def forget(self, attempt: HeldAttempt) -> None:
        del self._held[attempt.key]
        self._room.release()
        if not self._held:
            self._none_held.set()

    def take_most(self) -> int:
        """Return the most that were held at one moment since the last call."""
        most, self._most = self._most, len(self._held)
        return most

    async def wait_until_none(self, limit_s: float) -> bool:
        """Wait until no attempt is held; return True if that happened within the limit."""
        return await in_time(self._none_held.wait(), limit_s)

    @property
    def keys(self) -> Sequence[Key]:
        return list(self._held)

    @property
    def held(self) -> Sequence[HeldAttempt]:
        return list(self._held.values())

    @property
    def running(self) -> Sequence[Key]:
        return [key for key, attempt in self._held.items() if attempt.phase is Phase.RUNNING]

    @property
    def at_work(self) -> int:
        """Return how many may have a running handler."""
        return sum(attempt.phase in (Phase.STARTING, Phase.RUNNING) for attempt in self._held.values())

    def take_progress(self) -> dict[Key, HandlerProgress]:
        """Return the new progress of running attempts since the last call."""
        news = {}
        for key, attempt in self._held.items():
            progress, reported = attempt.progress, attempt.progress_reported
            if attempt.phase is not Phase.RUNNING or progress is None:
                continue
            if reported is None or (progress.percent, progress.text) != (reported.percent, reported.text):
                news[key] = attempt.progress_reported = progress
        return news

    def unreported_overdue(self) -> dict[Key, WallMs]:
        """Return the overdue attempts that were not yet reported, and since when each is overdue."""
        return {
            key: attempt.overdue_since_ms
            for key, attempt in self._held.items()
            if attempt.is_overdue and attempt.overdue_since_ms is not None and not attempt.overdue_reported
        }

    def overdue_were_reported(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if key in self._held:
                self._held[key].overdue_reported = True

    def stop(self, key: Key, reason: StopReason) -> None:
        """Stop the attempt if it is held."""
        attempt = self._held.get(key)
        if attempt is not None:
            attempt.stop(reason)

    def stop_waiting(self) -> None:
        """Give back at once those that have not started, as the drain begins."""
        for attempt in self.held:
            if attempt.phase is Phase.WAITING:
                attempt.stop(StopReason.DRAINED)

    def stop_started(self, reason: StopReason) -> None:
        for attempt in self.held:
            if attempt.phase in (Phase.STARTING, Phase.RUNNING):
                attempt.stop(reason)


class Acknowledgements:
    """Owner of the number of messages that this process could not read."""

    def __init__(self) -> None:
        self.parked = 0

    async def acknowledge(self, delivery: Delivery) -> None:
        try:
            await delivery.ack()
        except WorldError as error:
            log.debug("message_ack_failed", error=str(error))

    async def park(self, delivery: Delivery, reason: str) -> None:
        self.parked += 1
        log.warning("message_parked", reason=reason)
        try:
            await delivery.park(reason)
        except WorldError as error:
            log.warning("message_park_failed", error=str(error))


class ProcessSlots(asyncio.Semaphore):
    """Slots that attempts get in the order in which they ask."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.freed = 0
        """How often a slot became free."""

    def release(self) -> None:
        self.freed += 1
        super().release()
