"""Which processors have fallen silent, on this replica's own monotonic clock.

A processor is silent while its heartbeat does not change. Only time in which this replica was listening counts: its own
pause, or a stalled stream, must not pass for the death of all processors.

A heartbeat may also be on its way in the stream. So the silence is measured up to the moment before which everything
written has been *seen*: a processor that is declared lost has then written nothing for the whole timeout, and its own
fence, which closes earlier, is closed.

A gap in what has been seen is an outage of the database or of the way to it: the processors could write as little as
this replica. It counts as one heartbeat of this replica; otherwise all processors would be lost at the end of every
long outage, while their first heartbeats are on their way.
"""

from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import MonoMs


class Heartbeats:
    """The last heartbeats; ``own_interval_ms`` is how often this replica's own heartbeat moves ``seen_through``."""

    def __init__(self, timeout_ms: int, own_interval_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._own_interval_ms = own_interval_ms
        self._seen_through: MonoMs | None = None
        self._beats: dict[str, tuple[int, int, MonoMs]] = {}
        self._reported: set[str] = set()
        self._listened_ms = 0
        self._checked_at: MonoMs | None = None

    def seen(self, processor: ProcessorRef, now: MonoMs) -> None:
        known = self._beats.get(processor.id)
        if known is None or known[0] != processor.beat:
            self._beats[processor.id] = (processor.beat, self._listened_ms, now)
            self._reported.discard(processor.id)

    def gone(self, processor_id: str) -> None:
        self._beats.pop(processor_id, None)
        self._reported.discard(processor_id)

    def clear(self) -> None:
        self._beats.clear()
        self._reported.clear()

    def newly_lost(self, now: MonoMs, *, listening: bool, seen_through: MonoMs | None) -> list[tuple[str, int]]:
        """Return the processors whose silence has reached the timeout since the last call, with their last heartbeat.

        Everything written before ``seen_through`` has been seen here; None if that instant is not known.
        """
        if self._checked_at is not None and listening:
            # A gap of more than a quarter of the timeout was this replica's, not the processors'.
            self._listened_ms += min(now - self._checked_at, self._timeout_ms // 4)
        self._checked_at = now
        if seen_through is None:
            return []
        self._advance(seen_through)
        lost = [
            (processor_id, beat)
            for processor_id, (beat, listened_ms, seen_at) in self._beats.items()
            if min(self._listened_ms - listened_ms, seen_through - seen_at) >= self._timeout_ms
            and processor_id not in self._reported
        ]
        self._reported.update(processor_id for processor_id, _ in lost)
        return sorted(lost)

    def _advance(self, seen_through: MonoMs) -> None:
        before, self._seen_through = self._seen_through, seen_through
        if before is None or seen_through - before <= 2 * self._own_interval_ms:
            return
        outage_ms = seen_through - before - self._own_interval_ms
        for processor_id, (beat, listened_ms, seen_at) in self._beats.items():
            # A beat seen after the outage must not count as later than what has been seen.
            shifted = max(seen_at, min(MonoMs(seen_at + outage_ms), seen_through))
            self._beats[processor_id] = (beat, listened_ms, shifted)
