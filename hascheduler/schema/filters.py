"""Filters: the jobs and schedules that a list shows, a count counts, or an action changes. All conditions must hold.

query      ?state=failed&state=cancelled&label=team=a               `hascheduler.api.routing.published`
body       {"filter": {"state": "failed", "labels": {"team": "a"}}}
command    --state failed --label team=a                            `hascheduler.cli.fields`
stores     `hascheduler.ports.JobSelection`: the filter, and what the API and the core add to it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema

from hascheduler.model.job import JobState
from hascheduler.model.values.error_patterns import PLACEHOLDER, PLACEHOLDERS_MAX
from hascheduler.model.verdict import Verdict
from hascheduler.schema.forms import REQUEST, Instant, Labels, Listed, Name, Text, whole, wrong
from hascheduler.schema.noun import Part, together
from hascheduler.schema.refusals import refusal_of
from hascheduler.schema.schedule import ScheduleState

NOT_FIRED = tuple(verdict for verdict in Verdict if verdict is not Verdict.FIRED)
_JOB_ID_LENGTH_MAX = 320
_NAME_TEXT_LENGTH_MAX = 128


@dataclass(frozen=True, slots=True)
class _AnyOf:
    """An annotation of a tuple of which any one is meant.

    A body holds a single one, or null; a query, which may hold several, is read from a tuple.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def write(values: tuple[Any, ...], info: core_schema.SerializationInfo) -> Any:
            return list(values) if len(values) > 1 or not info.by_alias else next(iter(values), None)

        once = core_schema.no_info_after_validator_function(
            lambda values: tuple(dict.fromkeys(values)), handler(source)
        )
        return core_schema.with_info_wrap_validator_function(
            _read_any_of, once, serialization=core_schema.plain_serializer_function_ser_schema(write, info_arg=True)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        one: dict[str, Any] = handler(schema)["items"]
        return one


def _read_any_of(given: Any, read: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if info.context is REQUEST and isinstance(given, list):
        raise wrong(f"a list of {len(given)} values", "a single value")
    if not isinstance(given, str):
        return read(given)
    try:
        return read([given])
    except ValidationError as error:
        refusal = refusal_of(error.errors(include_url=False)[0], [given])
        raise wrong(refusal.problem, refusal.expected) from None


def not_fired(verdict: Verdict) -> Verdict:
    """Return ``verdict``; raise an error if it is the verdict of times that have a job."""
    if verdict is Verdict.FIRED:
        raise wrong("fired times are not listed here; their jobs are in /v1/jobs", " or ".join(NOT_FIRED))
    return verdict


def _few_placeholders(text: str) -> str:
    count = len(PLACEHOLDER.findall(text))
    if count > PLACEHOLDERS_MAX:
        raise wrong(f"{count} placeholders", f"at most {PLACEHOLDERS_MAX}")
    return text


ErrorText = Annotated[Text, AfterValidator(_few_placeholders)]
NameText = Annotated[str, Field(min_length=1, max_length=_NAME_TEXT_LENGTH_MAX)]
JobStates = Annotated[tuple[Annotated[JobState, Strict(False)], ...], Listed, _AnyOf()]
ScheduleStates = Annotated[tuple[Annotated[ScheduleState, Strict(False)], ...], Listed, _AnyOf()]
NotFired = Annotated[Verdict, Strict(False), AfterValidator(not_fired)]
NotFiredVerdicts = Annotated[tuple[NotFired, ...], Listed, _AnyOf()]


class JobAttributes(Part):
    """The conditions on what a job has from its submission on, and on how it failed."""

    definition: Name | None = Field(default=None, examples=["resize"])
    """Only jobs of this definition"""
    schedule: Name | None = None
    """Only jobs that this schedule made"""
    tenant: Name | None = None
    """Only jobs of this tenant"""
    batch: Text | None = None
    """Only jobs of this batch"""
    target: Text | None = None
    """Only jobs with this target"""
    id_prefix: Annotated[str, Field(min_length=1, max_length=_JOB_ID_LENGTH_MAX)] | None = None
    """Only jobs whose id begins with this literal text: `job:`, or `fire:`, `backfill:` or `trigger:` followed by
    the name of the schedule"""
    since_ms: Instant | None = None
    """Only jobs submitted at this instant or later"""
    until_ms: Instant | None = None
    """Only jobs submitted before this instant"""
    error: ErrorText | None = Field(default=None, examples=["the image host did not answer in <n> s"])
    """Only failed jobs whose error contains this text, in which `<n>`, `<id>` and `"…"` stand for any number, id and
    quoted text, `^` at its beginning for that of the error, and `$` at its end for that of a line"""
    failed_since_ms: Instant | None = None
    """Only jobs that failed at this instant or later"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Only jobs with all of these labels"""


class JobFilter(JobAttributes):
    """Which jobs to select; all given conditions must hold."""

    states: JobStates = Field(default=(), max_length=len(JobState), examples=["failed"])
    """Only jobs in this state, or in any of several states. `failed`: the dead letters"""
    ended_before_ms: Instant | None = None
    """Only jobs that ended before this instant"""
    unschedulable: bool = False
    """Only waiting jobs that no live processor can run"""

    def check_request(self, given: Mapping[str, Any]) -> None:
        for name in ("error", "failed_since"):
            if given.get(name) is not None and {*self.states} - {JobState.FAILED}:
                raise together((name,), type(self), "selects failed jobs", "no other state beside it")

    def completed(self) -> Self:
        is_of_failed = self.error is not None or self.failed_since_ms is not None
        return self.model_copy(update={"states": (JobState.FAILED,)}) if is_of_failed else self


class ScheduleFilter(Part):
    """Which schedules to select; all given conditions must hold."""

    text: NameText | None = Field(default=None, examples=["nightly"])
    """Only schedules whose name contains this literal text, in upper or lower case"""
    states: ScheduleStates = Field(default=(), max_length=len(ScheduleState))
    """Only schedules in this state, or in any of several states. `active`: it has times to come; `paused`; `ended`:
    its trigger has no more times"""
    verdicts: NotFiredVerdicts = Field(default=(), max_length=len(NOT_FIRED))
    """Only schedules whose last decided time got this verdict, or any of several verdicts. Searches the newest 5000
    decisions with these verdicts"""
    tenant: Name | None = None
    """Only schedules of this tenant"""
    ahead: bool = False
    """Only schedules whose times were decided too early because a clock was wrong; `reset` repairs them"""
    failing: bool = False
    """Only schedules whose last job that succeeded or failed has failed"""
    late: bool = False
    """Only schedules that are not paused and have a fire that has been due for longer than their grace and a minute;
    if thousands are, some are left out"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Only schedules with all of these labels"""


class VerdictFilter(Part):
    """Which nominal times to select, of all that did not fire; all given conditions must hold."""

    verdicts: NotFiredVerdicts = Field(default=(), max_length=len(NOT_FIRED))
    """Only these verdicts; default: all but `fired`, whose jobs are in /v1/jobs"""
    since_ms: Instant | None = None
    """Only verdicts decided at this instant or later"""
    until_ms: Instant | None = None
    """Only verdicts decided before this instant"""
    tenant: Name | None = None
    """Only schedules of this tenant"""
    text: NameText | None = Field(default=None, examples=["nightly"])
    """Only schedules whose name contains this literal text, in upper or lower case"""
    labels: Labels = Field(default={}, examples=[{"team": "a"}])
    """Only schedules with all of these labels"""


class ChangeOfMany(Part):
    """The common fields of requests that change everything that matches."""

    filter: Part
    """Which to change; at least one condition is required"""
    dry_run: bool = Field(default=False, examples=[True])
    """Only count what matches"""
    expected: Annotated[int, whole(0, 1_000_000_000)] | None = None
    """The count that you confirmed: the request is refused with 409 if over 10 % more match now"""

    def check_request(self, given: Mapping[str, Any]) -> None:
        if self.filter == type(self.filter)():
            names = (field.alias or name for name, field in type(self.filter).model_fields.items())
            raise together(("filter",), type(self), "sets no condition", f"at least one of {', '.join(names)}")
