"""The bodies and answers of ``/v1/operations``."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from hascheduler.api.jobs.changes import COUNTED_MAX
from hascheduler.api.jobs.queries import JOB_ID_LENGTH_MAX
from hascheduler.api.schedules.all_verdicts import not_fired
from hascheduler.errors import InvalidInput
from hascheduler.model.verdict import Verdict
from hascheduler.ports import BulkOperation, OperationAction, OperationState
from hascheduler.ports.operations import OPERATION_KEPT_MS
from hascheduler.wire.fields import InstantMs, Labels, Name, StrictModel, Text, instant_text, invalid_value
from hascheduler.wire.job import Priority

_OF_JOBS = ("definition", "schedule", "batch", "target", "id", "since", "until", "unschedulable")
_OF_SCHEDULES = ("text", "verdict")
_JOB_STATES = ("pending", "dispatched", "running", "succeeded", "failed", "cancelled")
_SCHEDULE_STATES = ("active", "paused", "ended")
_TEXT_LENGTH_MAX = 128
_KEPT_DAYS = OPERATION_KEPT_MS // 86_400_000
_COUNT_MAX = 1_000_000_000


class OperationFilterBody(StrictModel):
    """All that is given must hold, and something must be given."""

    state: (
        Literal["pending", "dispatched", "running", "succeeded", "failed", "cancelled", "active", "paused", "ended"]
        | None
    ) = Field(default=None, description="Only jobs in this state; of schedules `active`, `paused` or `ended`")
    definition: Name | None = Field(default=None, description="Only jobs of this type")
    schedule: Name | None = Field(default=None, description="Only jobs that this schedule made")
    tenant: Name | None = Field(default=None, description="Only jobs or schedules of this tenant")
    batch: Text | None = Field(default=None, description="Only jobs submitted in this batch, `batch:…`")
    target: Text | None = Field(default=None, description="Only jobs that work on this")
    id: Annotated[str, Field(min_length=1, max_length=JOB_ID_LENGTH_MAX)] | None = Field(
        default=None, description="Only jobs whose id begins with this text, as in `GET /v1/jobs`"
    )
    since: InstantMs | None = Field(default=None, description="Only jobs submitted at this instant or later")
    until: InstantMs | None = Field(default=None, description="Only jobs submitted before this instant")
    unschedulable: bool = Field(
        default=False, description="Only jobs that wait and that no processor which lives could ever run"
    )
    text: Text | None = Field(
        default=None,
        max_length=_TEXT_LENGTH_MAX,
        description="Only schedules with this in their name, in upper or lower case",
    )
    verdict: Annotated[Verdict, Field(strict=False), AfterValidator(not_fired)] | None = Field(
        default=None,
        description="Only schedules whose last decided time got this verdict, when the operation comes to them; as in "
        "`GET /v1/schedules`",
    )
    labels: Labels = Field(description="Only jobs or schedules with all of these labels", default={})

    @model_validator(mode="after")
    def _names_something(self) -> "OperationFilterBody":
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise invalid_value("names nothing", "at least one of " + ", ".join(type(self).model_fields))
        return self

    def require_fit(self, action: OperationAction) -> None:
        """`InvalidInput` where a condition is none of what ``action`` is about."""
        states, others = (_JOB_STATES, _OF_SCHEDULES) if action.is_of_jobs else (_SCHEDULE_STATES, _OF_JOBS)
        noun = "jobs" if action.is_of_jobs else "schedules"
        for name in others:
            if getattr(self, name) not in (None, False):
                none = "false" if name == "unschedulable" else "null"
                raise InvalidInput(("filter", name), f"says nothing of {noun}", f"{none} for {action.value}")
        if self.state is not None and self.state not in states:
            raise InvalidInput(("filter", "state"), f"{self.state!r} is no state of {noun}", ", ".join(states))


_EXAMPLE: dict[str, Any] = {"action": "cancel_jobs", "filter": {"definition": "resize"}, "expected": 12}


class StartOperationBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    action: OperationAction = Field(description="What to do with each that matches", strict=False)
    filter: OperationFilterBody = Field(description="Which jobs or schedules")
    priority: Priority | None = Field(default=None, description="The new one, for `reprioritize_jobs` alone")
    catch_up: bool = Field(
        default=False,
        description="For `resume_schedules` alone: what the misfire policy says of the nominal times since the pause, "
        "as when one schedule is resumed",
    )
    reason: Text | None = Field(
        default=None, description="Why, for people: in the audit log, and at the schedules that are paused"
    )
    expected: int | None = Field(
        default=None,
        ge=0,
        le=_COUNT_MAX,
        description="How many there were when you agreed to it: 409 where now more than 10 % more match",
    )
    dry_run: bool = Field(default=False, description="Only count them: 200 with `matched` and `exact`")

    def require_consistent(self) -> None:
        """`InvalidInput` where fields do not fit the action."""
        self.filter.require_fit(self.action)
        is_reprioritize = self.action is OperationAction.REPRIORITIZE_JOBS
        if is_reprioritize and self.priority is None:
            raise InvalidInput(("priority",), "missing", "0 to 10")
        if self.priority is not None and not is_reprioritize:
            raise InvalidInput(("priority",), f"{self.action.value} gives none", "null")
        if self.catch_up and self.action is not OperationAction.RESUME_SCHEDULES:
            raise InvalidInput(("catch_up",), f"{self.action.value} resumes nothing", "false")


class MatchedResponse(BaseModel):
    """What a dry run has counted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"matched": 12, "exact": True}]})

    matched: int = Field(description="How many match now and are not as asked")
    exact: bool = Field(
        description=f"False: there may be more, as there are more than {COUNTED_MAX}, or more schedules than are asked "
        "for their labels and last verdicts"
    )


class OperationResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "operation:0194f3a1b2c30000015f2c9a01aa",
                    "action": "cancel_jobs",
                    "filter": {"definition": "resize"},
                    "priority": None,
                    "catch_up": False,
                    "reason": "the images were wrong",
                    "state": "running",
                    "matched": 100_000,
                    "exact": True,
                    "changed": 41_500,
                    "asked_to_stop": 16,
                    "refused": 0,
                    "error": None,
                    "by": "deployer",
                    "started_at": "2030-01-01T00:00:00.000Z",
                    "ended_at": None,
                    "stop_requested_at": None,
                    "stop_requested_by": None,
                }
            ]
        }
    )

    id: str = Field(description="Later ones are greater")
    action: OperationAction = Field(description="What is done with each that matches")
    filter: dict[str, JsonValue] = Field(description="Which jobs or schedules, as it was asked for")
    priority: int | None = Field(description="The new one, of `reprioritize_jobs`")
    catch_up: bool = Field(description="As it was asked for")
    reason: str | None = Field(description="Why, as the caller said")
    state: OperationState = Field(
        description="`running` (or waiting for its turn), `done`, `stopped` on request, or `failed`: `error` says why"
    )
    matched: int = Field(description="How many there were when it began")
    exact: bool = Field(description="False: there may be more")
    changed: int = Field(description="How many are as asked by now")
    asked_to_stop: int = Field(description="Running jobs that were asked to stop, in a cancel")
    refused: int = Field(description="Schedules that could not be changed: `error` has one of the reasons")
    error: str | None = Field(description="Why something was refused, or why it failed")
    by: str = Field(description="The name of the token that asked for it; `anonymous` without one")
    started_at: str = Field(description="Jobs that were submitted later are left alone")
    ended_at: str | None = Field(description=f"It is forgotten {_KEPT_DAYS} days later")
    stop_requested_at: str | None = Field(description="It ends after the slice that is under way")
    stop_requested_by: str | None = Field(description="The name of the token that asked for that")


def show_operation(operation: BulkOperation) -> OperationResponse:
    return OperationResponse(
        id=operation.id,
        action=operation.action,
        filter=stored_filter(operation).model_dump(mode="json", exclude_defaults=True),
        priority=operation.priority,
        catch_up=operation.catch_up,
        reason=operation.reason,
        state=operation.state,
        matched=operation.matched,
        exact=operation.exact,
        changed=operation.changed,
        asked_to_stop=operation.asked_to_stop,
        refused=operation.refused,
        error=operation.error,
        by=operation.by,
        started_at=instant_text(operation.started_at_ms),
        ended_at=None if operation.ended_at_ms is None else instant_text(operation.ended_at_ms),
        stop_requested_at=None
        if operation.stop_requested_at_ms is None
        else instant_text(operation.stop_requested_at_ms),
        stop_requested_by=operation.stop_requested_by,
    )


def stored_filter(operation: BulkOperation) -> OperationFilterBody:
    """`InvalidInput` where it was broken by hand: a filter that says less would match more."""
    try:
        filter = OperationFilterBody.model_validate(dict(operation.filter))
    except ValidationError as error:
        raise InvalidInput(("filter",), str(error.errors()[0]["msg"])[:200], "a filter of operations") from None
    filter.require_fit(operation.action)
    return filter
