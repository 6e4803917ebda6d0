"""``GET /v1/jobs:errors``: the newest dead letters, grouped by what went wrong."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.error_pattern import PATTERN_LENGTH_MAX, error_pattern, first_line
from hascheduler.api.jobs.queries import JobAttributesQuery
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.api.services import Services
from hascheduler.model.job import JobState
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import ERROR_BEGINNING_MAX, FailedJob
from hascheduler.wire.fields import instant_text

EXAMINED_MAX = 10_000
GROUPS_MAX = 50
_SLICE = 100
"""Errors that are looked at in one turn of the event loop, in some two milliseconds."""
_COMMON = ("tenant", "schedule", "target", "batch")
"""What a filter says beside the definition, where it is one for the whole group."""

router = APIRouter(tags=["jobs"])


class ErrorGroupFilter(BaseModel):
    """As `filter` of `POST /v1/jobs:retry` takes it, and `GET /v1/jobs` in its parameters."""

    state: JobState = Field(description="`failed`")
    definition: str = Field(description="The definition of all jobs of the group")
    tenant: str | None = Field(description="The tenant, where it is one")
    schedule: str | None = Field(description="The schedule that made them, where it is one")
    target: str | None = Field(description="What they work on, where it is one")
    batch: str | None = Field(description="The batch, where it is one")
    labels: dict[str, str] = Field(description="The labels that were asked for")


class ErrorGroupResponse(BaseModel):
    """Failed jobs of one definition whose errors are equal but for numbers, ids and quoted texts."""

    definition: str = Field(description="The definition of these jobs")
    fault: str = Field(
        description='The first line of the error, with `<n>` for numbers, `<id>` for ids and `"…"` for quoted texts; '
        f"cut at {PATTERN_LENGTH_MAX} characters"
    )
    count: int = Field(description="How many jobs")
    first_at: str = Field(description="When the first of them failed")
    last_at: str = Field(description="When the last of them failed")
    job: str = Field(description="One of them: that which failed last")
    error: str = Field(description=f"Its error, cut at {ERROR_BEGINNING_MAX} characters")
    filter: ErrorGroupFilter = Field(
        description="Selects all of them; others too, where errors differ: the API can't select by error"
    )


class OtherErrorsResponse(BaseModel):
    groups: int = Field(description="How many groups are not shown")
    count: int = Field(description="How many jobs they have")


class JobErrorsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "groups": [
                        {
                            "definition": "resize",
                            "fault": "TimeoutError: the image host did not answer in <n> s",
                            "count": 41,
                            "first_at": "2030-01-01T00:00:09.000Z",
                            "last_at": "2030-01-01T00:12:00.000Z",
                            "job": "job:0194f3a1b2c3000001deadbeef01",
                            "error": "TimeoutError: the image host did not answer in 30 s",
                            "filter": {
                                "state": "failed",
                                "definition": "resize",
                                "tenant": "default",
                                "schedule": None,
                                "target": None,
                                "batch": None,
                                "labels": {},
                            },
                        }
                    ],
                    "others": {"groups": 0, "count": 0},
                    "examined": 41,
                    "complete": True,
                }
            ]
        }
    )

    groups: list[ErrorGroupResponse] = Field(description=f"The largest first, at most {GROUPS_MAX}")
    others: OtherErrorsResponse = Field(description="What is not shown of these jobs")
    examined: int = Field(description=f"How many failed jobs were grouped: the newest, at most {EXAMINED_MAX}")
    complete: bool = Field(description="These were all that match; false: there are or may be more")


@dataclass(slots=True)
class _Group:
    definition: str
    pattern: str
    newest: FailedJob
    count: int = 0
    first_ms: int = 0
    common: dict[str, str | None] = field(default_factory=dict)

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
    query: Annotated[JobAttributesQuery, Query()], services: Services, caller: Viewer
) -> JobErrorsResponse:
    """The newest failed jobs, grouped by definition and by what went wrong: errors that are equal but for numbers, ids
    and quoted texts are one group.

    At most 10,000 jobs are looked at, the newest by submission first.
    """
    failed = await services.jobs.failed(query.selection(caller.filter_of(query.tenant)), EXAMINED_MAX)
    groups = await run_in_slices(_grouped(failed.jobs))
    shown, others = groups[:GROUPS_MAX], groups[GROUPS_MAX:]
    return JobErrorsResponse(
        groups=[_show(group, query.labels()) for group in shown],
        others=OtherErrorsResponse(groups=len(others), count=sum(group.count for group in others)),
        examined=len(failed.jobs),
        complete=failed.complete,
    )


def _grouped(jobs: Sequence[FailedJob]) -> Generator[None, None, list[_Group]]:
    """The largest group first."""
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


def _show(group: _Group, labels: dict[str, str]) -> ErrorGroupResponse:
    common = {name: group.common.get(name) for name in _COMMON}
    return ErrorGroupResponse(
        definition=group.definition,
        fault=redacted_beginning(group.pattern, PATTERN_LENGTH_MAX),
        count=group.count,
        first_at=instant_text(group.first_ms),
        last_at=instant_text(group.newest.at_ms),
        job=group.newest.id,
        error=redacted_beginning(first_line(group.newest.error), ERROR_BEGINNING_MAX),
        filter=ErrorGroupFilter(state=JobState.FAILED, definition=group.definition, labels=labels, **common),
    )
