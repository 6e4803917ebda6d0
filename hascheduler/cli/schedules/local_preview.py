"""What an unsaved trigger will do, computed here: the same answer as the replica's previews, without a replica."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hascheduler.dispatch.schedules import previews
from hascheduler.model.trigger import Trigger
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.triggers import Upcoming, count_nominal, excluded_until, upcoming


def preview(schedule: str, trigger: Trigger, after_ms: WallMs, *, count: int) -> dict[str, Any]:
    """The first ``count`` fires after ``after_ms``, and the clock changes of the next 400 days.

    ``schedule`` is the name that decides the jitter.
    """
    times = list(_next(schedule, trigger, after_ms, count))
    made = asdict(previews.finished(previews.make_preview(schedule, trigger, after_ms, times)))
    # A trigger alone has no payload.
    return {**made, "fires": [{**fire, "payload": None} for fire in made["fires"]]}


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
