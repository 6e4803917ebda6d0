"""Which fire stands for a coalesced nominal time: exactly the next one after it.

The store lists verdicts newest first, so the next fire after a time is found in a bounded number of reads.
"""

from bisect import bisect_right
from collections.abc import Sequence

from hascheduler.api.services import ApiServices
from hascheduler.model.instants import LATEST_MS, WallMs
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.triggers import next_nominal

_READ_AT_ONCE_MAX = 500
_FIRED = frozenset({Verdict.FIRED})


async def coalesced_into(
    schedule: ScheduleRef, runs: Sequence[VerdictRun], services: ApiServices
) -> dict[WallMs, WallMs | None]:
    """The next fired time after each of ``runs`` (newest first), by the first time of the run; None: yet to come."""
    if not runs:
        return {}
    between = await _fired(schedule, runs[-1].last_ms, runs[0].first_ms, _READ_AT_ONCE_MAX, services)
    if len(between) == _READ_AT_ONCE_MAX:
        return {run.first_ms: await next_fired(schedule, run.last_ms, services) for run in runs}
    newest = await next_fired(schedule, runs[0].last_ms, services)
    ascending = between[::-1]
    places = {run.first_ms: bisect_right(ascending, run.last_ms) for run in runs}
    return {first_ms: (*ascending, newest)[place] for first_ms, place in places.items()}


async def next_fired(schedule: ScheduleRef, after_ms: WallMs, services: ApiServices) -> WallMs | None:
    """The first nominal time after ``after_ms`` that fired."""
    # Nearly always the very next one.
    next_ms = next_nominal(schedule.trigger, after_ms)
    known = await _fired(schedule, after_ms, next_ms + 1, 2, services) if next_ms is not None else []
    if len(known) == 1:
        return known[0]
    known = known or await _fired(schedule, after_ms, LATEST_MS, 1, services)
    return await _first_fired(schedule, after_ms, known[-1], services) if known else None


async def _first_fired(schedule: ScheduleRef, after_ms: WallMs, fired_ms: WallMs, services: ApiServices) -> WallMs:
    """The first time that fired after ``after_ms``, given that ``fired_ms`` fired.

    The span is halved until one read covers it.
    """
    low_ms = after_ms  # nothing fired after ``after_ms`` through here
    while True:
        between = await _fired(schedule, low_ms, fired_ms, _READ_AT_ONCE_MAX, services)
        if len(between) < _READ_AT_ONCE_MAX:
            return between[-1] if between else fired_ms
        fired_ms = between[-1]
        middle_ms = WallMs((low_ms + fired_ms) // 2)
        lower = await _fired(schedule, low_ms, middle_ms + 1, 1, services)
        if lower:
            fired_ms = lower[0]
        else:
            low_ms = middle_ms


async def _fired(
    schedule: ScheduleRef, after_ms: int, before_ms: int, limit: int, services: ApiServices
) -> list[WallMs]:
    """The times that fired strictly between the two, newest first."""
    records = await services.verdicts.list(schedule.identity, _FIRED, WallMs(after_ms), WallMs(before_ms), limit)
    return [record.run.first_ms for record in records]
