"""``GET /v1/jobs:errors``: the newest dead letters, grouped by error.

Equal faults have one pattern: the first line of the error, with placeholders for the parts that differ from job to job.
It is found in linear time, in the first `ERROR_BEGINNING_MAX` characters. Errors are untrusted input: sequences that
move a terminal's cursor and marks that turn the direction of a text are left out of the pattern.
"""

import re
import unicodedata
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.queries import selected
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import run_in_slices
from hascheduler.api.services import Services
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import ERROR_BEGINNING_MAX, FailedJob
from hascheduler.schema.filters import JobAttributes, JobFilter
from hascheduler.schema.forms import Instant
from hascheduler.schema.noun import Part

PATTERN_LENGTH_MAX = 200
NO_ERROR = "no error reported"

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,256}\x07?|[@-Z\\-_])?", re.ASCII)
_QUOTED = re.compile(r"(?<![A-Za-z0-9_])(?:\"[^\"]{0,256}\"|'[^']{0,256}'|`[^`]{0,256}`)(?![A-Za-z0-9_])", re.ASCII)
_HEX_ID = re.compile(
    r"(?<![A-Za-z0-9])(?:0[xX][0-9A-Fa-f]{1,64}"
    r"|(?=[A-Fa-f-]{0,64}[0-9])[0-9A-Fa-f]{8,64}(?:-[0-9A-Fa-f]{4,64}){0,8}"
    r"|(?=[A-Fa-f]{0,7}[0-9])[0-9A-Fa-f]{4,7})(?![A-Za-z0-9])",
    re.ASCII,
)
_NUMBER = re.compile(r"[0-9]{1,256}(?:[.,:][0-9]{1,256}){0,8}", re.ASCII)


def error_pattern(error: str) -> str:
    """Return at most `PATTERN_LENGTH_MAX` characters, with … at the cut.

    Quoted texts become ``"…"``, ids in hex ``<id>``, numbers ``<n>``. Equal errors have equal patterns.
    """
    line = first_line(error)
    if not line:
        return NO_ERROR
    if "'" in line or '"' in line or "`" in line:
        line = _QUOTED.sub('"…"', line)
    line = _HEX_ID.sub(_placeholder, line)
    line = _NUMBER.sub("<n>", line)
    return line if len(line) <= PATTERN_LENGTH_MAX else f"{line[: PATTERN_LENGTH_MAX - 1]}…"


def first_line(error: str) -> str:
    """Return the first line with visible characters, only those and with single blanks; empty if there is none."""
    text = error[:ERROR_BEGINNING_MAX]
    line = text.lstrip().partition("\n")[0]
    if line and line.isascii() and line.isprintable():  # nearly always
        return " ".join(line.split())
    text = _ESCAPE_SEQUENCE.sub("", text)
    for line in text.splitlines():
        shown = " ".join("".join(map(_visible, line)).split())
        if shown:
            return shown
    return ""


def _placeholder(found: re.Match[str]) -> str:
    # Digits alone are a number, or a part of one.
    return found[0] if found[0].isdecimal() else "<id>"


def _visible(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() else " "
    # Controls, formats (including the marks of direction), surrogates and unassigned characters.
    return "" if unicodedata.category(character)[0] == "C" else character


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
    """A filter for the jobs of the group. It may select others too, because filters can't select by error"""


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
        groups=[_show(group, query.labels) for group in shown],
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


def _show(group: _Group, labels: dict[str, str]) -> ErrorGroupResponse:
    return ErrorGroupResponse(
        definition=group.definition,
        fault=redacted_beginning(group.pattern, PATTERN_LENGTH_MAX),
        count=group.count,
        first_at_ms=WallMs(group.first_ms),
        last_at_ms=WallMs(group.newest.at_ms),
        job=group.newest.id,
        error=redacted_beginning(first_line(group.newest.error), ERROR_BEGINNING_MAX),
        # As stored: it may hold values that no request may use.
        filter=JobFilter.model_construct(
            states=(JobState.FAILED,), definition=group.definition, labels=labels, **group.common
        ),
    )
