"""When a nominal time is due, and whether it is to fire at all: its jitter, and the exclusion windows."""

from bisect import bisect_right
from hashlib import blake2b

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import Trigger
from hascheduler.triggers.nominal import count_nominal


def due_ms(schedule: str, trigger: Trigger, nominal_ms: int) -> WallMs:
    """The nominal time and its jitter, evenly from 0 through ``jitter_ms``.

    The jitter is a hash of the schedule's name and the nominal time: every replica finds the same, and two schedules
    of one trigger do not fire together.
    """
    if not trigger.jitter_ms:
        return WallMs(nominal_ms)
    digest = blake2b(f"{schedule}:{nominal_ms}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return WallMs(nominal_ms + int.from_bytes(digest, "big") % (trigger.jitter_ms + 1))


def excluded_until(trigger: Trigger, nominal_ms: int) -> WallMs | None:
    """The end of the exclusion window that the nominal time lies in, or None."""
    place = bisect_right(trigger.exclude, nominal_ms, key=lambda window: window.from_ms)
    if not place or nominal_ms >= trigger.exclude[place - 1].to_ms:
        return None
    return trigger.exclude[place - 1].to_ms


def count_firing(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    """How many nominal times from ``from_ms`` through ``through_ms`` lie in no exclusion window.

    They are counted, not gone through one by one.
    """
    if through_ms < from_ms:
        return 0
    excluded = (
        count_nominal(trigger, max(from_ms, window.from_ms) - 1, min(through_ms, window.to_ms - 1))
        for window in trigger.exclude
        if window.to_ms > from_ms and window.from_ms <= through_ms
    )
    return count_nominal(trigger, from_ms - 1, through_ms) - sum(excluded)
