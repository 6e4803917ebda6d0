"""When a nominal time is due, and whether it is to fire at all."""

from bisect import bisect_right
from hashlib import blake2b

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import Trigger


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
