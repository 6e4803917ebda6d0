"""This replica's own record: written once a retry period, and awaited in its own stream.

The echo is worth more than the record. It measures how far the stream lags, it shows that the mirror is fresh even if
nothing else is written, and it is the barrier after a snapshot: everything written before this beat has been folded
when the beat comes back.
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.errors import StoreUnavailable
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.model.values.instants import MonoMs
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.ports import ReplicaBoard
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

_SENT_MAX = 64


class ReplicaHeartbeat:
    """Owner of the beats that were sent, of the newest that came back, and of when each replica's last was seen."""

    def __init__(self, config: ReplicaConfig, board: ReplicaBoard, clock: TrustedClock) -> None:
        self._config = config
        self._board = board
        self._clock = clock
        self._beat = 0
        self._sent: dict[int, MonoMs] = {}
        self._echoed_beat = 0
        self._echoed_at: MonoMs | None = None
        self.lag_ms: int | None = None
        """From writing the last beat that came back to folding it; None before the first."""
        self.seen_through_ms: MonoMs | None = None
        """When the last beat that came back was sent: the stream has brought everything written before."""
        self._others_seen_at: dict[str, MonoMs] = {}
        self._zone_data: dict[str, str] = {}
        self._hurry = asyncio.Event()
        self._reminders = Reminders()

    @property
    def fresh(self) -> bool:
        """Return True if a beat came back recently enough to trust the mirror."""
        return self._echoed_at is not None and self._clock.mono_ms() - self._echoed_at < self._config.stale_after_ms

    def barrier(self) -> int:
        """Return the number of a beat that is not written yet; `echoed` returns True once it has come back."""
        self._hurry.set()
        return self._beat + 1

    def echoed(self, beat: int) -> bool:
        return self._echoed_beat >= beat

    def seen(self, replica: ReplicaStatus) -> None:
        """Take a replica's record from the stream."""
        self._others_seen_at[replica.id] = self._clock.mono_ms()
        self._compare_zone_data(replica)
        if replica.id != self._config.replica_id or replica.beat <= self._echoed_beat:
            return
        self._echoed_beat = replica.beat
        self._echoed_at = self._clock.mono_ms()
        sent_at = self._sent.pop(replica.beat, None)
        if sent_at is not None:
            self.lag_ms = self._echoed_at - sent_at
            self.seen_through_ms = sent_at
        for beat in [beat for beat in self._sent if beat < replica.beat]:
            del self._sent[beat]

    def gone(self, replica_id: str) -> None:
        """Forget a replica: its record was removed, or has expired, which takes a minute or more."""
        self._others_seen_at.pop(replica_id, None)
        self._zone_data.pop(replica_id, None)

    def _compare_zone_data(self, replica: ReplicaStatus) -> None:
        """Warn once of each other replica that may read a local time differently."""
        other = replica.zone_data
        if other is None or other == ZONE_DATA_VERSION or self._zone_data.get(replica.id) == other:
            return
        self._zone_data[replica.id] = other
        log.warning("zone_data_differ", other=replica.id, own=ZONE_DATA_VERSION, others=other)

    def is_silent(self, replica_id: str) -> bool:
        """Return True if another replica's beats have stopped: it was killed, or is cut off.

        If our own do not come back either, the stream is silent, and nothing is known about the others.
        """
        seen_at = self._others_seen_at.get(replica_id)
        if seen_at is None or replica_id == self._config.replica_id or not self.fresh:
            return False
        return self._clock.mono_ms() - seen_at >= self._config.stale_after_ms

    async def run(self, describe: Callable[[int], ReplicaStatus]) -> None:
        """Write, once a retry period, the status that ``describe`` returns for the beat of that number."""
        while True:
            self._hurry.clear()
            self._beat += 1
            if len(self._sent) < _SENT_MAX:
                self._sent[self._beat] = self._clock.mono_ms()
            began_at = self._clock.mono_ms()
            try:
                database_ms = await self._board.beat(describe(self._beat))
                if database_ms is not None:
                    self._clock.compared(database_ms, began_at, self._clock.mono_ms())
                self._reminders.over()
            except StoreUnavailable as error:
                if self._reminders.is_due(str(error), self._clock.mono_ms()):
                    log.warning("heartbeat_failed", error=str(error))
            leave_if_cancelled()
            await in_time(self._hurry.wait(), self._config.retry_period_ms / 1000)

    async def leave(self) -> None:
        """Remove the record; if that fails, it expires."""
        try:
            await self._board.remove(self._config.replica_id)
        except StoreUnavailable as error:
            log.info("deregister_failed", error=str(error))
