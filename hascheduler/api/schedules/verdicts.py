"""``/v1/schedules/{name}/verdicts``: the verdict on each nominal time, and the undecided ones.

A coalesced time went into the next time that fired.

``/v1/verdicts``: the nominal times of all schedules that did not fire. Those that fired have jobs, in ``/v1/jobs``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import (
    NewestFirstQuery,
    NextPage,
    PageQuery,
    PathName,
    place_text,
    position_ms,
    run_in_slices,
)
from hascheduler.api.schedules.tenant_scope import readable_schedule, stored_schedule
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.trigger_periods import UndecidedBecause, summarize_undecided
from hascheduler.model.documents.schedule import unstorable_of
from hascheduler.model.job import JobState, fire_job_id
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import VerdictRecord, VerdictSelection
from hascheduler.schema.filters import NOT_FIRED, VerdictFilter
from hascheduler.schema.forms import instant_text
from hascheduler.schema.noun import Part
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.schedule_bodies import CountsResponse
from hascheduler.triggers import MissingCalendar, with_calendars, without_calendars

router = APIRouter(tags=["schedules"])

_READ_AT_ONCE_MAX = 500


class VerdictQuery(PageQuery):
    verdict: list[Verdict] = Field(default=[], max_length=len(Verdict), description="Only these verdicts; default: all")

    def before_ms(self) -> WallMs:
        """Return the instant before which the page has times, newest first."""
        if self.after is None:
            return LATEST_MS
        return WallMs(position_ms(self.after, self.after))


class DecidedTimes(Part):
    """The verdict on a nominal time, or on several in a row."""

    verdict: Verdict = Field(examples=["coalesced"])
    """The verdict"""
    nominal_at: str = Field(examples=["2030-01-01T00:00:02.000Z"])
    """The nominal time, or the first of several"""
    through_at: str = Field(examples=["2030-01-01T00:00:08.000Z"])
    """The last nominal time of several"""
    count: int = Field(examples=[7])
    """How many nominal times"""
    because_of: str | None = Field(examples=[None])
    """The job that blocked a skipped time, or the tenant's limit that a throttled time reached; `expired`: the job of a
    missed time would have expired before it was made"""


class VerdictResponse(DecidedTimes):
    """The verdict on a nominal time, or on several in a row."""

    job: str | None = Field(examples=[None])
    """The job of a fired time"""
    job_state: JobState | None = Field(examples=[None])
    """The state of that job; null if none was made"""
    into: str | None = Field(examples=["2030-01-01T00:00:09.000Z"])
    """The fire that covers a coalesced time; null while it is to come"""


class UndecidedResponse(Part):
    count: int = Field(examples=[0])
    """How many nominal times through now have no verdict yet"""
    since: str | None = Field(examples=[None])
    """The first of these times"""
    because: UndecidedBecause | None = Field(examples=[None])
    """due: the leader is about to decide some of them; paused: a resume decides; excluded: decided when their window
    is over"""


class VerdictsResponse(Part):
    items: list[VerdictResponse]
    """The verdicts, newest first, as long as they are stored"""
    counts: CountsResponse
    """The counts of all nominal times of the schedule, not of this page"""
    undecided: UndecidedResponse
    """The times that are due and have no verdict yet"""
    next: NextPage


@router.get("/schedules/{name}/verdicts", responses=problem_responses(404, 422))
async def list_verdicts(
    name: PathName, query: Annotated[VerdictQuery, Query()], services: Services, caller: Viewer
) -> VerdictsResponse:
    """List the verdicts on the nominal times of a schedule, newest first, a page at a time."""
    before_ms = query.before_ms()
    stored = await stored_schedule(name, caller, services)
    schedule = readable_schedule(stored)
    # Records from before its creation belong to an earlier schedule by the same name.
    wanted = frozenset(query.verdict or Verdict)
    records = await services.verdicts.list(
        schedule.identity, wanted, schedule.created_at_ms, before_ms, query.limit + 1
    )
    shown = records[: query.limit]
    coalesced = [record.run for record in shown if record.run.verdict is Verdict.COALESCED]
    into = await _coalesced_into(schedule, coalesced, services)
    try:
        schedule = with_calendars(schedule, services.view.calendars())
    except MissingCalendar:
        schedule = without_calendars(schedule)  # all its times wait for the missing calendar
    undecided = await run_in_slices(summarize_undecided(schedule, services.clock.wall_ms()))
    return VerdictsResponse(
        items=[_show(record, into.get(record.run.first_ms)) for record in shown],
        counts=CountsResponse.of(schedule.tally, unstorable_of(stored)),
        undecided=UndecidedResponse(
            count=undecided.count,
            since=None if undecided.since_ms is None else instant_text(undecided.since_ms),
            because=undecided.because,
        ),
        next=str(shown[-1].run.first_ms) if len(records) > query.limit else None,
    )


def _show(record: VerdictRecord, into_ms: WallMs | None) -> VerdictResponse:
    run = record.run
    return VerdictResponse(
        **_shown(run),
        job=fire_job_id(run.schedule, run.first_ms) if run.verdict is Verdict.FIRED else None,
        job_state=record.job_state,
        into=None if into_ms is None else instant_text(into_ms),
    )


def _shown(run: VerdictRun) -> dict[str, Any]:
    """Return the fields that all responses have for nominal times with one verdict."""
    first, last = instant_text(run.first_ms), instant_text(run.last_ms)
    return {
        "verdict": run.verdict, "nominal_at": first, "through_at": last,
        "count": run.count, "because_of": run.because_of,
    }  # fmt: skip


async def _coalesced_into(
    schedule: ScheduleRef, runs: Sequence[VerdictRun], services: ApiServices
) -> dict[WallMs, WallMs | None]:
    """Return the next fired time after each of ``runs`` (newest first), by the run's first time; None if to come."""
    if not runs:
        return {}
    store, of = services.verdicts, schedule.identity
    between = await store.list(of, {Verdict.FIRED}, runs[-1].last_ms, runs[0].first_ms, _READ_AT_ONCE_MAX)
    if len(between) == _READ_AT_ONCE_MAX:
        return {run.first_ms: await store.first_fired(of, run.last_ms) for run in runs}
    ascending = [record.run.first_ms for record in reversed(between)]
    places = {run.first_ms: bisect_right(ascending, run.last_ms) for run in runs}
    newest = await store.first_fired(of, runs[0].last_ms)
    return {first_ms: (*ascending, newest)[place] for first_ms, place in places.items()}


class ScheduleVerdictResponse(DecidedTimes):
    """The verdict on a nominal time of a schedule, or on several in a row."""

    schedule: str = Field(examples=["tick"])
    """The name of the schedule"""
    decided_at: str = Field(examples=["2030-01-01T00:00:09.100Z"])
    """When the leader decided it"""


class ScheduleVerdictPage(Part):
    """A page of verdicts of all schedules."""

    items: list[ScheduleVerdictResponse]
    """The verdicts, newest decision first, as long as they are stored"""
    next: NextPage


@router.get("/verdicts", responses=problem_responses(403, 422))
async def list_all_verdicts(
    filter: Annotated[VerdictFilter, query_of(VerdictFilter)],
    query: Annotated[NewestFirstQuery, Query()],
    services: Services,
    caller: Viewer,
) -> ScheduleVerdictPage:
    """List the nominal times of all schedules that did not fire, newest decision first, a page at a time.

    `since` and `until` refer to the time of the decision: the times of an outage are decided after it. `label` refers
    to the schedule. Verdicts of deleted schedules appear only without `label` and for all tenants. If few match, a page
    may hold fewer than `limit`, or none, and have a `next`: go on until that is null.
    """
    conditions = {"tenant": caller.filter_of(filter.tenant), "verdicts": filter.verdicts or NOT_FIRED}
    which = VerdictSelection.model_construct(**{**dict(filter), **conditions})
    found = await services.verdicts.of_all(which, query.position(), query.limit)
    items = [
        ScheduleVerdictResponse(
            schedule=each.run.schedule, **_shown(each.run), decided_at=instant_text(each.decided_at_ms)
        )
        for each in found.verdicts
    ]
    return ScheduleVerdictPage(items=items, next=place_text(found.next))
