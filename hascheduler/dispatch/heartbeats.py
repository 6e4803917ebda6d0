"""Which processors have fallen silent, on this replica's own monotonic clock.

A processor is silent while its beat does not change. Only time in which this replica was listening counts: a pause of
its own, or a stream that stood still, must not look like the death of everybody else.
"""

from hascheduler.model.instants import MonoMs
from hascheduler.model.processor import ProcessorRef


class Heartbeats:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._beats: dict[str, tuple[int, int]] = {}
        self._reported: set[str] = set()
        self._listened_ms = 0
        self._checked_at: MonoMs | None = None

    def seen(self, processor: ProcessorRef) -> None:
        known = self._beats.get(processor.id)
        if known is None or known[0] != processor.beat:
            self._beats[processor.id] = (processor.beat, self._listened_ms)
            self._reported.discard(processor.id)

    def gone(self, processor_id: str) -> None:
        self._beats.pop(processor_id, None)
        self._reported.discard(processor_id)

    def clear(self) -> None:
        self._beats.clear()
        self._reported.clear()

    def newly_lost(self, now: MonoMs, *, listening: bool) -> list[tuple[str, int]]:
        """The processors whose silence has reached the timeout since the last call, with the beat that stood still."""
        if self._checked_at is not None and listening:
            # A gap of more than a quarter of the timeout was ours, not theirs.
            self._listened_ms += min(now - self._checked_at, self._timeout_ms // 4)
        self._checked_at = now
        lost = [
            (processor_id, beat)
            for processor_id, (beat, at_ms) in self._beats.items()
            if self._listened_ms - at_ms >= self._timeout_ms and processor_id not in self._reported
        ]
        self._reported.update(processor_id for processor_id, _ in lost)
        return sorted(lost)
