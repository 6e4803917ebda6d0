"""The orders of the list of schedules, and the place of each schedule in them.

A page goes on after the place of its last schedule, so it survives the deletion of that schedule.
"""

from collections.abc import Callable, Generator, Sequence
from enum import StrEnum
from heapq import merge, nsmallest
from itertools import islice

from pydantic import Field

from hascheduler.api.routing.queries import PageQuery, position_ms
from hascheduler.errors import InvalidInput
from hascheduler.schema.schedule import ScheduleRef

Place = tuple[int, str]
"""A number that differs by the order, then the name of the schedule."""

SORTED_MAX = 50_000
"""The most schedules that are sorted by their next times, as each of these has to be computed."""
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
    return position_ms(cursor, number, is_whole=bool(mark)), name


def cursor_of(sort: ScheduleSort, place: Place | None) -> str | None:
    if place is None or sort is ScheduleSort.NAME:
        return None if place is None else place[1]
    return f"{place[0]}:{place[1]}"


def trouble(*, failing: bool, late: bool, ahead: bool, paused: bool) -> int:
    """Return the number of the first trouble that it has, in the order of trouble."""
    return [failing, late, ahead, paused, True].index(True)


def first_places(
    sort: ScheduleSort,
    found: Sequence[Sequence[ScheduleRef]],
    number_of: Callable[[ScheduleRef], int],
    after: Place | None,
    count: int,
) -> Generator[None, None, list[Place]]:
    """Return the first ``count`` places after ``after``; ``number_of`` returns the number in a schedule's place."""
    matched = sum(map(len, found))
    if sort is ScheduleSort.NEXT and matched > SORTED_MAX:
        problem = f"{matched:,} schedules match, too many to sort by their next times"
        raise InvalidInput(("sort",), problem, f"a filter that leaves at most {SORTED_MAX:,}, or another order")
    least: list[list[Place]] = []
    size = _TRIGGERS_SLICE if sort is ScheduleSort.NEXT else _SLICE
    for schedules in found:
        for begin in range(0, len(schedules), size):
            places = ((number_of(each), each.name) for each in schedules[begin : begin + size])
            least.append(nsmallest(count, (place for place in places if after is None or place > after)))
            yield
    return [*islice(merge(*least), count)]
