"""The selection of schedules by a filter: for the pages of the list, the counts, and changes of all that match.

Names, pauses, tenants and triggers are in the replica's mirror, labels in the database. So with ``text``, ``state`` or
``verdict`` the mirror selects the schedules, in slices of some milliseconds, and the database is asked only for those
names. No document holds the last verdict of a schedule: it is the newest decision, among those of all schedules, at the
schedule's cursor. Which schedules are late is computed for all of them, for all requests of some seconds together.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import PageQuery, run_in_slices
from hascheduler.api.schedules.sorting import Place, ScheduleSort, cursor_of, first_places, place_of
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.dispatch.schedules.trouble import Late, is_failing, is_late, is_still_late, next_due_ms
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, Verdict
from hascheduler.ports import StoredDocument, VerdictSelection
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.noun import Part
from hascheduler.schema.pause import EVERYTHING
from hascheduler.schema.schedule import Basis, ScheduleRef, ScheduleState
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


async def page_of_schedules(
    filter: ScheduleFilter,
    query: PageQuery,
    caller: Caller,
    services: ApiServices,
    sort: ScheduleSort = ScheduleSort.NAME,
) -> tuple[Sequence[StoredDocument], Mapping[str, str], str | None]:
    """Return the documents of one page in order, the cursor after each of them by name, and that of the next page."""
    tenant, labels, limit = caller.filter_of(filter.tenant), filter.labels, query.limit
    after = place_of(sort, query.after)
    if sort is ScheduleSort.NAME and filter == ScheduleFilter(tenant=filter.tenant, labels=labels):
        documents = await services.schedules.list(query.after, limit + 1, labels, tenant=tenant)
        names = [str(document["_id"]) for document in documents]
        cursors = dict(zip(names, names, strict=True))
        return documents[:limit], cursors, names[limit - 1] if len(names) > limit else None
    read_max = LABELS_READ_MAX if labels else limit
    places = await _first(filter, tenant, services, read_max + 1, after=after, sort=sort)
    cursors = {place[1]: cursor_of(sort, place) for place in places[:read_max]}
    names = [*cursors]
    last = names[-1] if len(places) > read_max else None
    if labels:
        labelled = {*await services.schedules.names_among(names, labels, tenant=tenant)}
        names = [name for name in names if name in labelled]
    if len(names) > limit:
        names = names[:limit]
        last = names[-1]
    found = {str(each["_id"]): each for each in await services.schedules.among(names, labels, limit, tenant=tenant)}
    return [found[name] for name in names if name in found], cursors, None if last is None else cursors[last]


async def count_matching(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices
) -> tuple[Mapping[ScheduleState, int], bool]:
    """Return how many match, by state, and False if there may be more."""
    by_state, exact = await _matching_by_state(filter, tenant, services)
    return {state: len(schedules) for state, schedules in by_state.items()}, exact


async def _matching_by_state(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices
) -> tuple[Mapping[ScheduleState, Sequence[ScheduleRef]], bool]:
    """Return those that match, and False if there may be more."""
    labels = filter.labels
    last, exact = await _last_verdicts(filter.verdicts, services)
    late = await late_schedules(services) if filter.late else {}
    known = known_schedules(services)
    found = await run_in_slices(
        _matching(filter, tenant, last, late, known, now=services.clock.wall_ms(), with_states=True)
    )
    if not labels:
        return found, exact
    exact = exact and sum(map(len, found.values())) <= LABELLED_MAX
    some = [*islice(chain.from_iterable(each[:LABELLED_MAX] for each in found.values()), LABELLED_MAX)]
    labelled: set[str] = set()
    for place in range(0, len(some), _LABELLED_AT_ONCE):
        names = [each.name for each in some[place : place + _LABELLED_AT_ONCE]]
        labelled.update(await services.schedules.names_among(names, labels, tenant=tenant))
    return {state: [each for each in of if each.name in labelled] for state, of in found.items()}, exact


async def first_names(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices, count: int, *, after: str | None
) -> list[str]:
    """Return the first names after ``after``, of schedules that match apart from their labels."""
    place = place_of(ScheduleSort.NAME, after)
    return [name for _, name in await _first(filter, tenant, services, count, after=place)]


async def _first(
    filter: ScheduleFilter,
    tenant: str | None,
    services: ApiServices,
    count: int,
    *,
    after: Place | None,
    sort: ScheduleSort = ScheduleSort.NAME,
) -> list[Place]:
    """Return the first places after ``after``, of schedules that match apart from their labels."""
    last, _ = await _last_verdicts(filter.verdicts, services)
    late = await late_schedules(services) if filter.late or sort is ScheduleSort.TROUBLE else {}
    known, now, calendars = known_schedules(services), services.clock.wall_ms(), services.view.calendars()

    def steps() -> Generator[None, None, list[Place]]:
        found = yield from _matching(filter, tenant, last, late, known, now=now)
        schedules = [*chain.from_iterable(found.values())]
        yield
        next_due = partial(next_due_ms, calendars=calendars)
        return (yield from first_places(sort, schedules, count, after=after, late=late, next_due_ms=next_due, now=now))

    return await run_in_slices(steps())


async def late_schedules(services: ApiServices) -> Late:
    """Return the schedules that were late some seconds ago; none while everything is paused."""
    known, view, now = known_schedules(services), services.view, services.clock.wall_ms()

    def steps() -> Generator[None, None, Late]:
        calendars = view.calendars()
        late: dict[str, Basis] = {}
        for begin in range(0, len(known), _TRIGGERS_SLICE):
            some = known[begin : begin + _TRIGGERS_SLICE]
            found = [each for each in some if is_late(each, calendars, now)]
            late.update((each.name, each.basis_at(each.cursor_ms)) for each in found)
            yield
        return late

    return {} if EVERYTHING in view.pauses() else await services.late.get(services.clock.mono_ms, steps)


async def _last_verdicts(
    verdicts: tuple[Verdict, ...], services: ApiServices
) -> tuple[Collection[tuple[str, int]], bool]:
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
    """Return all schedules in no order, or those of ``names`` in that order, from the mirror.

    Raise `StoreUnavailable` if the mirror does not hold all yet.
    """
    view = services.view
    if not view.ready:
        raise StoreUnavailable(f"this replica does not know now which schedules match: {view.unready_reason}")
    copied, known = view.copied_partitions(), view.schedules()
    found = known.values() if names is None else [known[name] for name in names if name in known]
    # Copied to a list, as the mirror changes meanwhile.
    return [each for each in found if not copied or partition_of(each.template.tenant) not in copied]


def _matching(
    filter: ScheduleFilter,
    tenant: str | None,
    last: Collection[tuple[str, int]],
    late: Late,
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
            if (
                (text and text not in schedule.name.lower())
                or (tenant is not None and schedule.template.tenant != tenant)
                or (filter.verdicts and not _was_last(schedule, last))
                or (filter.ahead and not schedule.is_ahead(now))
                or (filter.failing and not is_failing(schedule))
                or (filter.late and not is_still_late(schedule, late))
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


def _was_last(schedule: ScheduleRef, last: Collection[tuple[str, int]]) -> bool:
    """Return True if one of the ``last`` decisions is the newest of this schedule, and not of an earlier namesake."""
    return schedule.tally != NOTHING_DECIDED and (schedule.name, schedule.cursor_ms) in last


router = APIRouter(tags=["schedules"])


class ScheduleCountsResponse(Part):
    """How many schedules match, by state, and how many of them fail or are late."""

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
    failing: int = Field(default=0, examples=[2])
    """How many the filter `failing` selects"""
    late: int = Field(default=0, examples=[1])
    """How many the filter `late` selects"""


@router.get("/schedules:counts", responses=problem_responses(403, 422))
async def count_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)], services: Services, caller: Viewer
) -> ScheduleCountsResponse:
    """Count the matching schedules by state, with the filters of the list, from this replica's mirror."""
    found, exact = await _matching_by_state(filter, caller.filter_of(filter.tenant), services)
    failing, late = await run_in_slices(_troubled([*found.values()], await late_schedules(services)))
    by_state = {state.value: len(found[state]) for state in ScheduleState}
    matched = sum(by_state.values())
    return ScheduleCountsResponse(matched=matched, exact=exact, **by_state, failing=failing, late=late)


def _troubled(found: Sequence[Sequence[ScheduleRef]], late: Late) -> Generator[None, None, tuple[int, int]]:
    """Return how many fail, and how many are late."""
    failing_count = late_count = 0
    for schedules in found:
        for begin in range(0, len(schedules), _SLICE):
            some = schedules[begin : begin + _SLICE]
            failing_count += sum(map(is_failing, some))
            late_count += sum(is_still_late(each, late) for each in some)
            yield
    return failing_count, late_count
