"""What an unsaved trigger will do, computed here: the same answer as the replica's previews, without a replica."""

from collections.abc import Iterator
from typing import Any

from hascheduler.api.preview_schemas import PreviewResponse, show_change, show_fires, zone_of
from hascheduler.model.instants import LATEST_MS, WallMs, format_instant
from hascheduler.model.trigger import Trigger
from hascheduler.triggers import Upcoming, clock_changes, count_nominal, excluded_until, upcoming

COUNT_MAX = 1_000
_CLOCK_CHANGES_WITHIN_MS = 400 * 86_400_000


def preview(schedule: str, trigger: Trigger, after_ms: WallMs, *, count: int) -> dict[str, Any]:
    """The first ``count`` fires after ``after_ms``, and the clock changes of the next 400 days.

    ``schedule`` is the name that decides the jitter.
    """
    zone = zone_of(trigger)
    until_ms = min(after_ms + _CLOCK_CHANGES_WITHIN_MS, LATEST_MS - 1)
    changes = clock_changes(trigger, after_ms, until_ms)
    answer = PreviewResponse(
        fires=show_fires(list(_next(schedule, trigger, after_ms, count)), zone),
        clock_changes=[show_change(schedule, trigger, change) for change in changes],
        timezone=zone,
    )
    return answer.model_dump(mode="json")


def _next(schedule: str, trigger: Trigger, after_ms: WallMs, count: int) -> Iterator[Upcoming]:
    """``count`` fires, and of each window of excluded times that lies between them the first, with how many there are.

    A window may hold millions of them, so they are counted and not looked at.
    """
    fired, passed_ms = 0, after_ms
    while True:
        for one in upcoming(schedule, trigger, passed_ms, fired=fired):
            end_ms = excluded_until(trigger, one.nominal_ms)
            if end_ms is not None:
                left_out = count_nominal(trigger, one.nominal_ms - 1, end_ms - 1)
                times = "1 time is" if left_out == 1 else f"{left_out:,} times are"
                note = f"{times} excluded, until {format_instant(end_ms)}"
                yield Upcoming(one.nominal_ms, one.due_ms, excluded=True, note=note)
                passed_ms = WallMs(end_ms - 1)
                break
            yield one
            fired += 1
            if fired == count:
                return
        else:
            return
