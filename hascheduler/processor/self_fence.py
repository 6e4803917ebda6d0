"""Self-fencing: this processor's own judgement of whether the leader still takes it for alive.

The leader gives a processor's jobs to others when its heartbeat has stood still for the heartbeat timeout. This fence
closes earlier: ``deadline_ms`` after the beginning of the last beat that was written, on a clock that only grows. The
leader can't have seen that beat before it began, so the two spans never overlap, whatever the pauses and whichever side
woke first: code that is about to rely on trust asks `check`, which looks at the clock before anything else.

Once closed it opens with the second beat, not the first: the leader may be about to find this processor lost while the
first is on its way, and what was started in between would run at another processor as well.
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock

log = structlog.get_logger(__name__)

_LOOK_MS_MAX = 1_000


class SelfFence:
    """Closed until the first beat. Its only state is when the last written beat began, and when it last looked."""

    def __init__(self, clock: Clock, deadline_ms: int, on_lost: Callable[[], None]) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._on_lost = on_lost
        self._beat_began_at: MonoMs | None = None
        self._open = asyncio.Event()
        self._looked_at = clock.mono_ms()

    @property
    def trusted(self) -> bool:
        """Reads only the clock, so any thread may ask."""
        return self._beat_began_at is not None and self._clock.mono_ms() - self._beat_began_at < self._deadline_ms

    @property
    def age_ms(self) -> int | None:
        """Since the last written beat began; None before the first."""
        return None if self._beat_began_at is None else self._clock.mono_ms() - self._beat_began_at

    @property
    def looked_at_ms(self) -> MonoMs:
        """When `watch` last came round."""
        return self._looked_at

    def check(self) -> bool:
        """`trusted`; the first to notice that it is lost closes the fence, which stops all handlers."""
        trusted = self.trusted
        if self._open.is_set() and not trusted:
            self._open.clear()
            log.warning("fenced", no_heartbeat_for_ms=self._clock.mono_ms() - (self._beat_began_at or 0))
            self._on_lost()
        return trusted

    def renewed(self, began_at: MonoMs) -> None:
        """A beat has been written that began then."""
        is_first = self._beat_began_at is None
        # A pause may lie between; what ran before it must not live on under the new trust.
        was_trusted = self.check()
        self._beat_began_at = began_at
        if self.trusted and (was_trusted or is_first):
            self._open.set()

    async def opened(self) -> None:
        """Returns while the fence is open, or once it is."""
        await self._open.wait()

    async def watch(self) -> None:
        """Stop what runs at the moment at which trust ends."""
        while True:
            await asyncio.sleep(min(self._until_lost_ms(), _LOOK_MS_MAX) / 1000)
            self._looked_at = self._clock.mono_ms()
            self.check()

    def _until_lost_ms(self) -> int:
        age_ms = self.age_ms
        if age_ms is None or not self._open.is_set():
            return self._deadline_ms // 4  # there is nothing to stop before a beat has opened it
        return max(self._deadline_ms - age_ms, 1)
