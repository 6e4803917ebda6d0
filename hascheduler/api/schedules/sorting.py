"""The orders of the list of schedules, and the place of each schedule in them.

A page goes on after the place of the last schedule shown, so it survives the deletion of that schedule.
"""

from collections.abc import Callable, Generator, Sequence
from enum import StrEnum
from heapq import merge, nsmallest
from itertools import islice

from pydantic import Field

from hascheduler.api.routing.queries import PageQuery
from hascheduler.dispatch.schedules.trouble import Late, is_failing, is_still_late
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.schedule import ScheduleRef

Place = tuple[int, str]
"""The place of a schedule in an order: a number that differs by the order, then its name."""

SORTED_MAX = 50_000
"""The most schedules that are sorted by their next times, each of which has to be computed."""
_SLICE = 5_000
_TRIGGERS_SLICE = 100


class ScheduleSort(StrEnum):
    NAME = "name"
    TROUBLE = "trouble"
    NEXT = "next"


class SchedulesQuery(PageQuery):
    sort: ScheduleSort = Field(
        default=ScheduleSort.NAME,
        description="By `name`; by `trouble`: those that fail, are late, are ahead of now or are paused, then all "
        f"others; or by the `next` time, of at most {SORTED_MAX} that match. Each is sorted by name within",
    )


def place_of(sort: ScheduleSort, cursor: str | None) -> Place | None:
    """Return the place that ``cursor`` names; raise `InvalidInput` if it is none of this order."""
    if cursor is None or sort is ScheduleSort.NAME:
        return None if cursor is None else (0, cursor)
    number, mark, name = cursor.partition(":")
    if not (mark and number.isascii() and number.isdecimal() and len(number) <= len(str(LATEST_MS))):
        raise InvalidInput(
            ("after",), f"{quoted(cursor)} is not a position in this list", "`next` of the previous page"
        )
    return int(number), name


def cursor_of(sort: ScheduleSort, place: Place) -> str:
    number, name = place
    return name if sort is ScheduleSort.NAME else f"{number}:{name}"


def trouble_place(name: str, *, failing: bool, late: bool, ahead: bool, paused: bool) -> Place:
    troubles = (failing, late, ahead, paused)
    return troubles.index(True) if any(troubles) else len(troubles), name


def first_places(
    sort: ScheduleSort,
    schedules: Sequence[ScheduleRef],
    count: int,
    *,
    after: Place | None,
    late: Late,
    next_due_ms: Callable[[ScheduleRef], WallMs | None],
    now: WallMs,
) -> Generator[None, None, list[Place]]:
    """Return the first ``count`` places after ``after``, in order."""
    if sort is ScheduleSort.NEXT and len(schedules) > SORTED_MAX:
        problem = f"{len(schedules):,} schedules match, too many to sort by their next times"
        raise InvalidInput(("sort",), problem, f"a filter that leaves at most {SORTED_MAX:,}, or another order")

    def place(schedule: ScheduleRef) -> Place:
        match sort:
            case ScheduleSort.NAME:
                return 0, schedule.name
            case ScheduleSort.NEXT:
                due_ms = next_due_ms(schedule)
                return LATEST_MS if due_ms is None else due_ms, schedule.name
            case ScheduleSort.TROUBLE:
                return trouble_place(
                    schedule.name,
                    failing=is_failing(schedule),
                    late=is_still_late(schedule, late),
                    ahead=schedule.is_ahead(now),
                    paused=schedule.paused_at_ms is not None,
                )

    least: list[list[Place]] = []
    size = _TRIGGERS_SLICE if sort is ScheduleSort.NEXT else _SLICE
    for begin in range(0, len(schedules), size):
        places = map(place, schedules[begin : begin + size])
        least.append(nsmallest(count, (each for each in places if after is None or each > after)))
        yield
    return [*islice(merge(*least), count)]
