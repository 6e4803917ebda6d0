"""The one place that reads a clock."""

import time

from hascheduler.model.values.instants import MonoMs, WallMs


class SystemClock:
    """The machine's clocks. Boot time, if there is one, keeps counting while the machine is suspended."""

    def __init__(self) -> None:
        self._mono = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000)

    def mono_ms(self) -> MonoMs:
        return MonoMs(time.clock_gettime_ns(self._mono) // 1_000_000)
