"""``/v1/schedules/{name}/backfill``: a job for each nominal time of a span that has none.

A nominal time is backfilled once at most, as the id of its job is made of it, so a request may be repeated. Jobs of an
earlier schedule by the same name do not count. If a schedule makes a graph of jobs, the last one is the job of its
time: it is submitted after the others, so a request that broke off is completed by the next.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.dependencies import definitions_of, with_limit_keys
from hascheduler.api.jobs.submit import submit_span
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Operator
from hascheduler.api.routing.queries import PathName, run_in_slices
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.schedules.tenant_scope import readable_schedule, stored_schedule, too_large_to_render
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.backfill import (
    BACKFILL_EARLIEST_MS,
    BACKFILL_TIMES_MAX,
    backfill_times,
    plan_backfill,
    possible_job_ids,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.fired_job import WORK_AT_ONCE_MAX, JobMaker, begins_after
from hascheduler.model.job import NewJob, ScheduleId, backfill_job_ids
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.ports import SubmitAnswer
from hascheduler.schema.forms import Instant
from hascheduler.schema.noun import AS_REQUEST, Part
from hascheduler.telemetry.tracing import JOB_SCHEDULE, JOBS, Attribute
from hascheduler.triggers import with_calendars

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)

_READ_AT_ONCE_MAX = 1_000
_SUBMITTED_AT_ONCE_MAX = 100


class BackfillBody(Part):
    """The nominal times to backfill, from `from` through `to`."""

    from_ms: Instant = Field(examples=["2026-01-01T00:00:00Z"])
    """The first nominal time"""
    to_ms: Instant = Field(examples=["2026-01-02T00:00:00Z"])
    """The last nominal time, not in the future"""
    overlap: Literal["allow", "buffer_one"] = "buffer_one"
    """allow: run the jobs at once; buffer_one: run them one after the other"""
    dry_run: bool = Field(default=False, examples=[True])
    """Only report what would be made"""


class BackfillResponse(Part):
    count: int = Field(examples=[2])
    """How many nominal times the span has"""
    created: int = Field(examples=[1])
    """How many got a job now, or would get one in a dry run"""
    existing: int = Field(examples=[1])
    """How many already have a job, of a fire or of an earlier backfill"""
    undecided: int = Field(examples=[0])
    """How many the leader has not decided yet; they are skipped"""
    jobs: list[str] = Field(examples=[["fire:nightly:1893456000000", "backfill:nightly:1893542400000"]])
    """The job of each nominal time that has one now, oldest first; of several, the last"""


@router.post("/{name}/backfill", responses=problem_responses(404, 409, 413, 422, 429))
async def backfill_schedule(
    name: PathName,
    body: Annotated[BackfillBody, AS_REQUEST],
    services: Services,
    caller: Operator,
    *,
    note: Noted,
    request: Request,
) -> BackfillResponse:
    """Make the jobs of past nominal times of the current trigger that have none. The schedule may be paused.

    Exclusion windows and the days that calendars leave out now are skipped; `max_fires` is not applied. `expires_in`
    counts from the request, because the nominal times are in the past. At most 1,000 jobs a request. An undecided time
    is skipped, so that it does not get a second job when it fires.
    """
    note.unaudited, note.location = body.dry_run, f"/v1/jobs?id={backfill_job_ids(name)}"
    now = services.clock.wall_ms()
    _require_past(body, now)
    stored = await stored_schedule(name, caller, services)
    schedule = with_calendars(readable_schedule(stored), services.view.calendars())
    times_max = BACKFILL_TIMES_MAX // schedule.jobs_per_fire
    times = await run_in_slices(backfill_times(schedule.trigger, body.from_ms, body.to_ms, times_max))
    makers = await _makers(possible_job_ids(schedule.identity, times), services)
    plan = plan_backfill(schedule, times, makers, now)
    ids = {nominal_ms: plan.job_ids[nominal_ms] for nominal_ms in plan.missing}
    if body.dry_run:
        created = len(ids)
    else:
        maker = JobMaker(name, stored, expires_from_ms=now)
        if ids and not maker.makes_jobs:
            raise too_large_to_render(name)
        tenant, count = schedule.template.tenant, len(ids) * schedule.jobs_per_fire
        attributes: dict[str, Attribute] = {JOB_SCHEDULE: name, JOBS: count}
        with submit_span(request, services, "backfill", **attributes) as span:
            definitions = await definitions_of(schedule.definitions, services)
            jobs = _jobs(maker, ids, now, one_by_one=body.overlap == "buffer_one")
            made = (replace(with_limit_keys(job, definitions), trace=span.context) for job in jobs)
            # The tenant's limits admit all jobs or none.
            if count:
                await services.admission.admit(tenant, count, ("to",))
            new = await _create(made, schedule.jobs_per_fire, maker.work, services)
            services.admission.not_new(tenant, count - len(new))
            created = len(new & set(ids.values()))
    return BackfillResponse(
        count=len(times),
        created=created,
        existing=len(plan.job_ids) - created,
        undecided=plan.undecided,
        jobs=list(plan.job_ids.values()),
    )


def _require_past(body: Annotated[BackfillBody, AS_REQUEST], now: WallMs) -> None:
    if body.from_ms < BACKFILL_EARLIEST_MS:
        problem = f"{format_instant(body.from_ms)} is too long ago"
        raise InvalidInput(("from",), problem, f"at least {format_instant(BACKFILL_EARLIEST_MS)}")
    if body.to_ms > now:
        raise InvalidInput(("to",), f"{format_instant(body.to_ms)} is in the future", f"at most {format_instant(now)}")
    if body.to_ms < body.from_ms:
        problem = f"{format_instant(body.to_ms)} is before from"
        raise InvalidInput(("to",), problem, f"at least {format_instant(body.from_ms)}")


async def _makers(ids: Sequence[str], services: ApiServices) -> dict[str, ScheduleId | None]:
    """Return the schedule that made the job, for each id of ``ids`` that has one."""
    return {
        job.id: job.made_by
        for first in range(0, len(ids), _READ_AT_ONCE_MAX)
        for job in await services.jobs.known(ids[first : first + _READ_AT_ONCE_MAX])
    }


def _jobs(maker: JobMaker, ids: Mapping[WallMs, str], now: WallMs, *, one_by_one: bool) -> Iterator[NewJob]:
    before: Sequence[NewJob] = ()
    sequence = 0
    for at, id in ids.items():
        made = maker.jobs(id, at, serial=one_by_one)
        if one_by_one and len(made) > 1:
            made = [begins_after([each.id for each in before], job) for job in made]
        before = made
        for job in made:
            # Submit them as of now, in order: with the age of their nominal times they would run before all other work.
            yield replace(job, submitted_at_ms=now, sequence=sequence)
            sequence += 1


async def _create(jobs: Iterator[NewJob], jobs_per_time: int, work: int, services: ApiServices) -> set[str]:
    """Submit the jobs, as many nominal times at once as their ``work`` allows, and return the ids of the new ones."""
    times = max(1, min(_SUBMITTED_AT_ONCE_MAX // jobs_per_time, WORK_AT_ONCE_MAX // max(work, 1)))
    new: set[str] = set()
    while some := await run_in_slices(_next(jobs, times * jobs_per_time)):
        submissions = await services.jobs.submit_many(some)
        new |= {str(each.document["_id"]) for each in submissions if each.answer is SubmitAnswer.NEW}
    return new


def _next(jobs: Iterator[NewJob], count: int) -> Generator[None, None, list[NewJob]]:
    yield  # another request's slice
    return list(islice(jobs, count))
