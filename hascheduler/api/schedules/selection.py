"""The selection of schedules by a filter: for the pages of the list, the counts, and changes of all that match.

Names, pauses, tenants and triggers are in the replica's mirror, labels in the database. So with ``text``, ``state`` or
``verdict`` the mirror selects the schedules, in slices of some milliseconds, and the database is asked only for those
names. No document holds the last verdict of a schedule: it is the newest decision, among those of all schedules, at the
schedule's cursor.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from heapq import merge, nsmallest
from itertools import chain, islice
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import PageQuery, run_in_slices
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
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


async def page_of_schedules(
    filter: ScheduleFilter, query: PageQuery, caller: Caller, services: ApiServices
) -> tuple[Sequence[StoredDocument], str | None]:
    """Return the documents of one page by name, and the cursor of the next."""
    tenant, labels, limit = caller.filter_of(filter.tenant), filter.labels, query.limit
    if not (filter.text or filter.ahead or filter.states or filter.verdicts):
        documents = await services.schedules.list(query.after, limit + 1, labels, tenant=tenant)
        return documents[:limit], str(documents[limit - 1]["_id"]) if len(documents) > limit else None
    read_max = LABELS_READ_MAX if labels else limit
    names = await first_names(filter, tenant, services, read_max + 1, after=query.after)
    documents = await services.schedules.among(names[:read_max], labels, limit + 1, tenant=tenant)
    if len(documents) > limit:
        return documents[:limit], str(documents[limit - 1]["_id"])
    return documents, names[read_max - 1] if len(names) > read_max else None


async def count_matching(
    filter: ScheduleFilter, tenant: str | None, services: ApiServices
) -> tuple[Mapping[ScheduleState, int], bool]:
    """Return how many match, by state, and False if there may be more."""
    labels = filter.labels
    last, exact = await _last_verdicts(filter.verdicts, services)
    known = known_schedules(services)
    found = await run_in_slices(_matching(filter, tenant, last, known, now=services.clock.wall_ms(), with_states=True))
    counts = {state: len(names) for state, names in found.items()}
    if not labels:
        return counts, exact
    exact = exact and sum(counts.values()) <= LABELLED_MAX
    state_of = {name: state for state, names in found.items() for name in names[:LABELLED_MAX]}
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
    last, _ = await _last_verdicts(filter.verdicts, services)
    known = known_schedules(services)
    now = services.clock.wall_ms()
    return await run_in_slices(_first(_matching(filter, tenant, last, known, after=after, now=now), count))


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


def known_schedules(services: ApiServices) -> Sequence[ScheduleRef]:
    """Return all schedules, in no order, from the mirror; raise `StoreUnavailable` if it does not hold all yet."""
    view = services.view
    if not view.ready:
        raise StoreUnavailable(f"this replica does not know now which schedules match: {view.unready_reason}")
    copied, found = view.copied_partitions(), view.schedules().values()
    # Copied to a list, as the mirror changes meanwhile.
    return [each for each in found if not copied or partition_of(each.template.tenant) not in copied]


def _matching(
    filter: ScheduleFilter,
    tenant: str | None,
    last: Collection[tuple[str, int]],
    schedules: Sequence[ScheduleRef],
    *,
    now: WallMs,
    after: str | None = None,
    with_states: bool = False,
) -> Generator[None, None, dict[ScheduleState, list[str]]]:
    """Return by state, in no order, the names of all ``schedules`` that match apart from their labels.

    Which active ones have ended is computed only ``with_states``, or if the filter depends on it.
    """
    text, wanted = (filter.text or "").lower(), frozenset(filter.states or ScheduleState)
    active, ended, paused = ScheduleState.ACTIVE, ScheduleState.ENDED, ScheduleState.PAUSED
    unpaused = wanted & {active, ended}
    tells_ended = len(unpaused) == 1 or (with_states and bool(unpaused))
    found: dict[ScheduleState, list[str]] = {state: [] for state in ScheduleState}
    computed = 0
    for begin in range(0, len(schedules), _SLICE):
        for schedule in schedules[begin : begin + _SLICE]:
            name = schedule.name
            if (
                (after is not None and name <= after)
                or (text and text not in name.lower())
                or (tenant is not None and schedule.template.tenant != tenant)
                or (filter.verdicts and not _was_last(schedule, last))
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
                found[state].append(name)
        yield
    return found


def _first(
    matching: Generator[None, None, dict[ScheduleState, list[str]]], count: int
) -> Generator[None, None, list[str]]:
    found = yield from matching
    names, least = [*chain.from_iterable(found.values())], []
    for begin in range(0, len(names), _SLICE):
        least.append(nsmallest(count, names[begin : begin + _SLICE]))
        yield
    return [*islice(merge(*least), count)]


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


@router.get("/schedules:counts", responses=problem_responses(403, 422))
async def count_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)], services: Services, caller: Viewer
) -> ScheduleCountsResponse:
    """Count the matching schedules by state, with the filters of the list, from this replica's mirror."""
    counts, exact = await count_matching(filter, caller.filter_of(filter.tenant), services)
    by_state = {state.value: counts[state] for state in ScheduleState}
    return ScheduleCountsResponse(matched=sum(counts.values()), exact=exact, **by_state)
