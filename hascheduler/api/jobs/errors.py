"""``GET /v1/jobs:errors``: the newest dead letters, grouped by error.

Equal faults have one pattern (`hascheduler.model.values.error_patterns`), and the filter of a group selects by it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.read import selected
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import run_in_slices
from hascheduler.api.services import Services
from hascheduler.model.job import JobState
from hascheduler.model.values.error_patterns import (
    ERROR_BEGINNING_MAX,
    PATTERN_LENGTH_MAX,
    error_pattern,
    error_regex,
    first_line,
    text_of_pattern,
)
from hascheduler.model.values.instants import WallMs
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import FailedJob
from hascheduler.schema.filters import JobAttributes, JobFilter
from hascheduler.schema.forms import Instant
from hascheduler.schema.noun import Part

EXAMINED_MAX = 10_000
GROUPS_MAX = 50
_SLICE = 100
"""Errors grouped in one turn of the event loop, in some two milliseconds."""
_COMMON = ("tenant", "schedule", "target", "batch")
"""The fields of a group's filter, besides the definition, if they are equal in the whole group."""

router = APIRouter(tags=["jobs"])


class ErrorGroupResponse(Part):
    """Failed jobs of one definition whose errors differ only in numbers, ids and quoted texts."""

    definition: str = Field(examples=["resize"])
    """The definition of the jobs"""
    fault: str = Field(examples=["TimeoutError: the image host did not answer in <n> s"])
    """The first line of the error, with `<n>` for numbers, `<id>` for ids and `"…"` for quoted texts; cut at 200
    characters"""
    count: int = Field(examples=[41])
    """How many jobs the group has"""
    first_at_ms: Instant = Field(examples=["2030-01-01T00:00:09.000Z"])
    """When the first of them failed"""
    last_at_ms: Instant = Field(examples=["2030-01-01T00:12:00.000Z"])
    """When the last of them failed"""
    job: str = Field(examples=["job:0194f3a1b2c3000001deadbeef01"])
    """The id of the job that failed last"""
    error: str = Field(examples=["TimeoutError: the image host did not answer in 30 s"])
    """The error of that job, cut at 512 characters"""
    filter: JobFilter
    """A filter that selects the jobs of the group. If the error is longer than 200 characters or holds a secret, it
    selects all whose errors begin alike"""


class OtherErrorsResponse(Part):
    """The groups that are not shown."""

    groups: int = 0
    """How many groups"""
    count: int = 0
    """How many jobs in these groups"""


class JobErrorsResponse(Part):
    """The newest failed jobs, grouped by error."""

    groups: list[ErrorGroupResponse]
    """The largest first, at most 50"""
    others: OtherErrorsResponse = OtherErrorsResponse()
    """The groups that are not shown"""
    examined: int = Field(examples=[41])
    """How many failed jobs were read: the newest, at most 10000"""
    complete: bool = Field(examples=[True])
    """True if these were all matching jobs; false if there may be more"""


@dataclass(slots=True)
class _Group:
    definition: str
    pattern: str
    newest: FailedJob
    count: int = 0
    first_ms: int = 0
    common: dict[str, Any] = field(default_factory=dict)

    def add(self, job: FailedJob) -> None:
        self.count += 1
        self.first_ms = min(self.first_ms, job.at_ms)
        if job.at_ms > self.newest.at_ms:
            self.newest = job
        for name in [name for name, value in self.common.items() if getattr(job, name) != value]:
            del self.common[name]

    @property
    def order(self) -> tuple[Any, ...]:
        return -self.count, -self.newest.at_ms, self.definition, self.pattern


@router.get("/jobs:errors", responses=problem_responses(403, 422))
async def list_job_errors(
    query: Annotated[JobAttributes, query_of(JobAttributes)], services: Services, caller: Viewer
) -> JobErrorsResponse:
    """List the newest failed jobs, grouped by definition and error.

    Errors that differ only in numbers, ids and quoted texts are one group. At most 10,000 jobs are read, newest
    submission first.
    """
    failed = await services.jobs.failed(selected(query, caller, services), EXAMINED_MAX)
    groups = await run_in_slices(_grouped(failed.jobs))
    shown, others = groups[:GROUPS_MAX], groups[GROUPS_MAX:]
    return JobErrorsResponse(
        groups=[_show(group, query) for group in shown],
        others=OtherErrorsResponse(groups=len(others), count=sum(group.count for group in others)),
        examined=len(failed.jobs),
        complete=failed.complete,
    )


def _grouped(jobs: Sequence[FailedJob]) -> Generator[None, None, list[_Group]]:
    """Return the groups, the largest first."""
    patterns: dict[str, str] = {}
    groups: dict[tuple[str, str], _Group] = {}
    for place, job in enumerate(jobs):
        pattern = patterns.get(job.error)
        if pattern is None:
            pattern = patterns[job.error] = error_pattern(job.error)
        group = groups.get((job.definition, pattern))
        if group is None:
            common = {name: getattr(job, name) for name in _COMMON}
            group = _Group(job.definition, pattern, job, first_ms=job.at_ms, common=common)
            groups[job.definition, pattern] = group
        group.add(job)
        if place % _SLICE == _SLICE - 1:
            yield
    return sorted(groups.values(), key=lambda group: group.order)


def _show(group: _Group, query: JobAttributes) -> ErrorGroupResponse:
    fault = redacted_beginning(group.pattern, PATTERN_LENGTH_MAX)
    text = text_of_pattern(group.pattern, fault, group.newest.error)
    if query.error is not None and not error_regex(query.error).search(group.pattern):
        text = query.error  # it is narrower: the numbers, for example, are given
    conditions = {**dict(query), "definition": group.definition, "error": text, **group.common}
    return ErrorGroupResponse(
        definition=group.definition,
        fault=fault,
        count=group.count,
        first_at_ms=WallMs(group.first_ms),
        last_at_ms=WallMs(group.newest.at_ms),
        job=group.newest.id,
        error=redacted_beginning(first_line(group.newest.error), ERROR_BEGINNING_MAX),
        # As stored: it may hold values that no request may use.
        filter=JobFilter.model_construct(**conditions, states=(JobState.FAILED,)),
    )
