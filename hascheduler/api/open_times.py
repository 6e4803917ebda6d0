"""The nominal times through now that have no verdict yet, and what they wait for."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hascheduler.dispatch.stretches import OpenTimes, undecided
from hascheduler.model.instants import WallMs
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.verdict import Verdict
from hascheduler.triggers import next_nominal

OpenBecause = Literal["due", "paused", "excluded"]


@dataclass(frozen=True, slots=True)
class StillOpen:
    """``because`` is ``due`` where any of them waits for a leader alone, else what the newest of them waits for."""

    count: int
    since_ms: WallMs | None
    because: OpenBecause | None


def count_open(schedule: ScheduleRef, now: WallMs) -> StillOpen:
    count, since_ms = 0, None
    because: OpenBecause | None = None
    for times, awaited in _open_times(schedule, now):
        first_ms = times.first()
        if first_ms is None:
            continue
        count += times.count()
        since_ms = first_ms if since_ms is None else since_ms
        because = because if because == "due" else awaited
    return StillOpen(count, since_ms, because)


def that_may_fire(schedule: ScheduleRef, times: Sequence[WallMs], now: WallMs) -> set[WallMs]:
    """Those of ``times`` (ascending) about which a leader is still to decide."""
    found: set[WallMs] = set()
    for still_open, _ in _open_times(schedule, now):
        if still_open.verdict is None:
            first, end = (bisect_right(times, at_ms) for at_ms in (still_open.after_ms, still_open.through_ms))
            found.update(at for at in times[first:end] if next_nominal(still_open.trigger, at - 1) == at)
    return found


def _open_times(schedule: ScheduleRef, now: WallMs) -> Iterator[tuple[OpenTimes, OpenBecause]]:
    """Those that there are, each with what they wait for; those of a pause that is over wait for a leader alone."""
    for times in undecided(schedule, schedule.cursor_ms, now):
        if not _is_exhausted(schedule, times):
            yield times, "excluded" if times.verdict is Verdict.EXCLUDED else "due"
    if schedule.paused_at_ms is not None:
        # What becomes of those since the pause is not known before the resume.
        after_ms = WallMs(max(schedule.cursor_ms, schedule.since_ms, schedule.paused_at_ms))
        times = OpenTimes(schedule.trigger, after_ms, now, Verdict.PAUSED)
        if not _is_exhausted(schedule, times):
            yield times, "paused"


def _is_exhausted(schedule: ScheduleRef, times: OpenTimes) -> bool:
    """Whether the schedule has fired as often as it may: then its times are not in force any more."""
    return times.trigger.max_fires is not None and schedule.tally.fired >= times.trigger.max_fires
