"""The selection of schedules by a filter: for the pages of the list, the counts, and changes of all that match.

Names, pauses, tenants and triggers are in the replica's mirror, labels in the database. So with ``text``, ``state`` or
``verdict`` the mirror selects the schedules, in slices of some milliseconds, and the database is asked only for those
names. No document holds the last verdict of a schedule: it is the newest decision, among those of all schedules, at the
schedule's cursor. The late schedules are among those whose timers are overdue.

A page goes on after the place of its last schedule in the order, so it survives the deletion of that schedule.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import merge, nsmallest
from itertools import islice
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import PageQuery, position_ms, run_in_slices
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.dispatch.schedules.trouble import LATE_MS_MIN, is_failing, is_late, next_due_ms
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, Verdict
from hascheduler.ports import StoredDocument, VerdictSelection
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.noun import Part
from hascheduler.schema.schedule import ScheduleRef, ScheduleState
from hascheduler.schema.trigger import Once, Times, Trigger
from hascheduler.triggers import without_calendars

LABELS_READ_MAX = 2_000
"""Schedules whose labels are checked for one page."""
LABELLED_MAX = 10_000
"""Schedules whose labels are checked for one count."""
_LABELLED_AT_ONCE = 2_500
DECISIONS_MAX = 5_000
_DECISIONS_AT_ONCE = 1_000
_SLICE = 5_000
_TRIGGERS_SLICE = 100
"""Schedules whose next time is computed in one turn of the event loop."""
SORTED_MAX = 50_000
"""The most schedules that are sorted by their next times, as each of these has to be computed."""
Place = tuple[int, str]
"""A number that differs by the order, then the name of the schedule."""
Decisions = Collection[tuple[str, int]]
"""Decisions by the name of the schedule and the time through which it is decided."""


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


def _first_places(
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


async def page_of_schedules(
    filter: ScheduleFilter,
    query: PageQuery,
    caller: Caller,
    services: ApiServices,
    sort: ScheduleSort = ScheduleSort.NAME,
) -> tuple[Sequence[StoredDocument], Mapping[str, str], str | None]:
    """Return the documents of one page in order, the cursors after them by name, and that of the next page."""
    tenant, labels, limit = caller.filter_of(filter.tenant), filter.labels, query.limit
    if sort is ScheduleSort.NAME and filter == ScheduleFilter(tenant=filter.tenant, labels=labels):
        documents = await services.schedules.list(query.after, limit + 1, labels, tenant=tenant)
        return documents[:limit], {}, str(documents[limit - 1]["_id"]) if len(documents) > limit else None
    read_max = LABELS_READ_MAX if labels else limit
    places = await _first(filter, tenant, services, read_max + 1, sort=sort, after=place_of(sort, query.after))
    names = [name for _, name in places[:read_max]]
    cursors = {place[1]: str(cursor_of(sort, place)) for place in places}
    next = cursors[names[-1]] if len(places) > read_max else None
    if labels:
        labelled = {*await services.schedules.names_among(names, labels, tenant=tenant)}
        names = [name for name in names if name in labelled]
    if len(names) > limit:
        names = names[:limit]
        next = cursors[names[-1]]
    found = {str(each["_id"]): each for each in await services.schedules.among(names, labels, limit, tenant=tenant)}
    return [found[name] for name in names if name in found], cursors, next


async def count_matching(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices
) -> tuple[Mapping[ScheduleState, int], bool]:
    """Return how many match, by state, and False if there may be more."""
    labels = filter.labels
    last, exact = await _last_verdicts(filter.verdicts, services)
    late, known, now = await _late(filter, services), known_schedules(services), services.clock.wall_ms()
    found = await run_in_slices(_matching(filter, tenant, last, late, known, now=now, with_states=True))
    counts = {state: len(schedules) for state, schedules in found.items()}
    if not labels:
        return counts, exact
    exact = exact and sum(counts.values()) <= LABELLED_MAX
    state_of = {each.name: state for state, schedules in found.items() for each in schedules[:LABELLED_MAX]}
    names = [*state_of][:LABELLED_MAX]
    counts = dict.fromkeys(found, 0)
    for place in range(0, len(names), _LABELLED_AT_ONCE):
        some = names[place : place + _LABELLED_AT_ONCE]
        for name in await services.schedules.names_among(some, labels, tenant=tenant):
            counts[state_of[name]] += 1
    return counts, exact


async def first_names(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices, count: int, *, after: str | None
) -> list[str]:
    """Return the first names after ``after``, of schedules that match apart from their labels."""
    place = None if after is None else (0, after)
    found = await _first(filter, tenant, services, count, sort=ScheduleSort.NAME, after=place)
    return [name for _, name in found]


async def _first(
    filter: ScheduleFilter,
    tenant: str | None,
    services: ApiServices,
    count: int,
    *,
    sort: ScheduleSort,
    after: Place | None,
) -> list[Place]:
    """Return the first places after ``after``, of schedules that match apart from their labels."""
    last, _ = await _last_verdicts(filter.verdicts, services)
    late = await _late(filter, services, needed=sort is ScheduleSort.TROUBLE)
    known, now, calendars = known_schedules(services), services.clock.wall_ms(), services.view.calendars()

    def number_of(schedule: ScheduleRef) -> int:
        if sort is ScheduleSort.NAME:
            return 0
        if sort is ScheduleSort.NEXT:
            due_ms = next_due_ms(schedule, calendars)
            return LATEST_MS if due_ms is None else due_ms
        is_late, is_ahead = (schedule.name, schedule.cursor_ms) in late, schedule.is_ahead(now)
        is_paused = schedule.paused_at_ms is not None
        return trouble(failing=is_failing(schedule), late=is_late, ahead=is_ahead, paused=is_paused)

    def steps() -> Generator[None, None, list[Place]]:
        found = yield from _matching(filter, tenant, last, late, known, now=now)
        return (yield from _first_places(sort, [*found.values()], number_of, after, count))

    return await run_in_slices(steps())


async def _late(filter: ScheduleFilter, services: ApiServices, *, needed: bool = False) -> Decisions:
    """Return the names and cursors of the late schedules; none if that is not needed."""
    view, now = services.view, services.clock.wall_ms()

    def steps() -> Generator[None, None, Decisions]:
        overdue, late = view.overdue_schedules(now - LATE_MS_MIN), set[tuple[str, int]]()
        for begin in range(0, len(overdue), _TRIGGERS_SLICE):
            some = overdue[begin : begin + _TRIGGERS_SLICE]
            late.update((each.name, each.cursor_ms) for each in some if is_late(each, view.calendars(), now))
            yield
        return late

    return await run_in_slices(steps()) if filter.late or needed else ()


async def _last_verdicts(verdicts: tuple[Verdict, ...], services: ApiServices) -> tuple[Decisions, bool]:
    """Return the newest decisions with one of these verdicts, by name and last time, and True if these are all."""
    found: set[tuple[str, int]] = set()
    if not verdicts:
        return found, True
    which, after = VerdictSelection(verdicts=verdicts), None
    for _ in range(DECISIONS_MAX // _DECISIONS_AT_ONCE):
        page = await services.verdicts.of_all(which, after, _DECISIONS_AT_ONCE)
        found |= {(each.run.schedule, each.run.last_ms) for each in page.verdicts}
        after = page.next
        if after is None:
            return found, True
    return found, False


def known_schedules(services: ApiServices, names: Iterable[str] | None = None) -> Sequence[ScheduleRef]:
    """Return all schedules in no order, or those of ``names``; raise `StoreUnavailable` without a complete mirror."""
    view = services.view
    if not view.ready:
        raise StoreUnavailable(f"this replica does not know now which schedules match: {view.unready_reason}")
    copied, known = view.copied_partitions(), view.schedules()
    found = known.values() if names is None else [known[name] for name in names if name in known]
    # Copied to a list, as the mirror changes meanwhile.
    return [each for each in found if partition_of(each.template.tenant) not in copied] if copied else [*found]


def _matching(
    filter: ScheduleFilter,
    tenant: str | None,
    last: Decisions,
    late: Decisions,
    schedules: Sequence[ScheduleRef],
    *,
    now: WallMs,
    with_states: bool = False,
) -> Generator[None, None, dict[ScheduleState, list[ScheduleRef]]]:
    """Return by state, in no order, all ``schedules`` that match apart from their labels.

    Which active ones have ended is computed only ``with_states``, or if the filter depends on it.
    """
    text, wanted = (filter.text or "").lower(), frozenset(filter.states or ScheduleState)
    active, ended, paused = ScheduleState.ACTIVE, ScheduleState.ENDED, ScheduleState.PAUSED
    unpaused = wanted & {active, ended}
    tells_ended = len(unpaused) == 1 or (with_states and bool(unpaused))
    found: dict[ScheduleState, list[ScheduleRef]] = {state: [] for state in ScheduleState}
    computed = 0
    for begin in range(0, len(schedules), _SLICE):
        for schedule in schedules[begin : begin + _SLICE]:
            decided = schedule.name, schedule.cursor_ms
            if (
                (filter.failing and not is_failing(schedule))
                or (filter.late and decided not in late)
                or (text and text not in schedule.name.lower())
                or (tenant is not None and schedule.template.tenant != tenant)
                # The newest decision of this schedule, and not of an earlier namesake.
                or (filter.verdicts and (schedule.tally == NOTHING_DECIDED or decided not in last))
                or (filter.ahead and not schedule.is_ahead(now))
            ):
                continue
            state = active if schedule.paused_at_ms is None else paused
            if state is active and tells_ended and _may_end(schedule.trigger):
                state = ended if _has_ended(schedule) else active
                computed += 1
                if computed % _TRIGGERS_SLICE == 0:
                    yield
            if state in wanted:
                found[state].append(schedule)
        yield
    return found


def _has_ended(schedule: ScheduleRef) -> bool:
    try:
        return next_fire(without_calendars(schedule)) is None
    except InvalidInput:  # written by hand: it never fires, but has not ended by its trigger either
        return False


def _may_end(trigger: Trigger) -> bool:
    return (
        trigger.end_at_ms is not None
        or trigger.max_fires is not None
        or all(isinstance(part, Once | Times) for part in trigger.parts)
    )


router = APIRouter(tags=["schedules"])


class ScheduleCountsResponse(Part):
    """How many schedules match, by state."""

    matched: int = Field(examples=[431])
    """How many match"""
    exact: bool = Field(examples=[True])
    """False if more may match, because the labels of at most 10000 schedules, and at most 5000 decisions for the
    last verdict, are read"""
    active: int = Field(examples=[412])
    """How many have times to come"""
    paused: int = Field(examples=[17])
    """How many are paused"""
    ended: int = Field(examples=[2])
    """How many have a trigger without further times"""
    failing: int = Field(examples=[2])
    """How many the filter `failing` selects of them"""
    late: int = Field(examples=[1])
    """How many the filter `late` selects of them"""


@router.get("/schedules:counts", responses=problem_responses(403, 422))
async def count_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)], services: Services, caller: Viewer
) -> ScheduleCountsResponse:
    """Count the matching schedules by state, with the filters of the list, from this replica's mirror."""
    tenant = caller.filter_of(filter.tenant)
    counts, exact = await count_matching(filter, tenant, services)
    numbers = {state.value: counts[state] for state in ScheduleState}
    for name in ("failing", "late"):
        troubled, _ = await count_matching(filter.model_copy(update={name: True}), tenant, services)
        numbers[name] = sum(troubled.values())
    return ScheduleCountsResponse(matched=sum(counts.values()), exact=exact, **numbers)
