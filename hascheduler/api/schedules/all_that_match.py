"""``POST /v1/schedules:pause``, ``:resume``, ``:reset`` and ``:trigger``: change all schedules that match.

It works like ``/v1/jobs:cancel``: up to 20,000 a request, slice by slice, by name from ``after`` on. Each schedule is
changed as by a request for it alone; a schedule that can't be changed is counted and left.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.all_that_match import (
    CHANGED_MAX,
    REFUSALS,
    Bulk,
    BulkRequest,
    ChangedResponse,
    counted_only,
)
from hascheduler.api.jobs.idempotency import IdempotencyKey
from hascheduler.api.middleware.auth import Caller, Operator, Submitter
from hascheduler.api.routing.revisions import Precondition
from hascheduler.api.routing.route_rules import IDEMPOTENCY_KEY, JsonRoute, UnreadableDocument
from hascheduler.api.schedules.actions import TriggerNowBody, pausing, resetting, resuming, trigger
from hascheduler.api.schedules.edits import ScheduleChange, ScheduleEdit, edit_schedule
from hascheduler.api.schedules.selection import count_matching, first_names
from hascheduler.errors import CallerError, InvalidInput, NotFound, TooMany, WorldError
from hascheduler.ports import StoredDocument, SubmitAnswer
from hascheduler.schema.filters import ChangeOfMany, ScheduleFilter
from hascheduler.schema.forms import Name, Text
from hascheduler.schema.noun import AS_REQUEST
from hascheduler.schema.schedule import ScheduleState

_SLICE = 64
_TOGETHER_MAX = 8
_ERROR_LENGTH_MAX = 500
_UNPAUSED = (ScheduleState.ACTIVE, ScheduleState.ENDED)
_UNCONDITIONALLY = Precondition(None)
_KEY_DIGITS = 32

router = APIRouter(tags=["schedules"], route_class=JsonRoute)
Change = Callable[[str], Awaitable[bool]]
"""A function that changes the schedule of that name, and returns False if it was in the requested state already."""


class ChangeSchedulesBody(ChangeOfMany):
    """The schedules to change."""

    filter: ScheduleFilter
    """The schedules to select; at least one condition is required"""
    after: Name | None = None
    """`next` of the previous response: only schedules after that name"""


class PauseSchedulesBody(ChangeSchedulesBody):
    """The schedules to pause."""

    because: Text | None = Field(default=None, examples=["the disk is full"])
    """The reason, for people"""


class ResumeSchedulesBody(ChangeSchedulesBody):
    """The schedules to resume."""

    catch_up: bool = False
    """As in the resume of a single schedule"""


@router.post("/schedules:pause", responses=REFUSALS)
async def pause_schedules(
    body: Annotated[PauseSchedulesBody, AS_REQUEST], bulk: BulkRequest, caller: Operator
) -> ChangedResponse:
    """Pause all matching schedules that are not paused. Repeat it until it is complete."""
    bulk.note.because = body.because
    pause = pausing(body.because)

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Any:
        # A paused schedule keeps its reason: this replica may not have seen that pause yet.
        return {} if stored.get("paused_at_ms") is not None else pause(stored, edit)

    return await _All(body, bulk, caller, _UNPAUSED).edit(change)


@router.post("/schedules:resume", responses=REFUSALS)
async def resume_schedules(
    body: Annotated[ResumeSchedulesBody, AS_REQUEST], bulk: BulkRequest, caller: Operator
) -> ChangedResponse:
    """Resume all matching schedules that are paused. Repeat it until it is complete."""
    return await _All(body, bulk, caller, (ScheduleState.PAUSED,)).edit(resuming(catch_up=body.catch_up))


@router.post("/schedules:reset", responses=REFUSALS)
async def reset_schedules(
    body: Annotated[ChangeSchedulesBody, AS_REQUEST], bulk: BulkRequest, caller: Operator
) -> ChangedResponse:
    """Reset all matching schedules that fired ahead of time. Repeat it until it is complete."""
    return await _All(body, bulk, caller, _UNPAUSED, ahead=True).edit(resetting)


@router.post(
    "/schedules:trigger",
    responses=REFUSALS,
    openapi_extra=idempotency.parameter(
        "Required, except for a dry run. Requests with the same key trigger each schedule only once"
    ),
)
async def trigger_schedules(
    body: Annotated[ChangeSchedulesBody, AS_REQUEST], bulk: BulkRequest, caller: Submitter, key: IdempotencyKey
) -> ChangedResponse:
    """Make a job of each matching schedule now, paused or not.

    Repeat it with the same key until it is complete.
    """
    if key is None and not body.dry_run:
        raise InvalidInput((IDEMPOTENCY_KEY,), "missing", "a key, the same for each repeated request")
    action = sha256((key or "").encode()).hexdigest()[:_KEY_DIGITS]

    async def change(name: str) -> bool:
        made = await trigger(name, caller, bulk.services, TriggerNowBody(), key=f"{action}/{name}", request=None)
        return made.answer is SubmitAnswer.NEW

    return await _All(body, bulk, caller, tuple(ScheduleState)).change(change)


@dataclass(frozen=True, slots=True)
class _All:
    """All schedules that match ``body`` and are in ``states``; with ``ahead`` only those that fired ahead of time."""

    body: ChangeSchedulesBody
    bulk: Bulk
    caller: Caller
    states: Sequence[ScheduleState]
    ahead: bool = False

    async def edit(self, change: ScheduleChange) -> ChangedResponse:
        async def edited(name: str) -> bool:
            revs: list[Any] = []

            def remembering(stored: StoredDocument, edit: ScheduleEdit) -> Any:
                revs.append(stored.get("rev"))
                return change(stored, edit)

            stored = await edit_schedule(name, self.caller, self.bulk.services, _UNCONDITIONALLY, remembering)
            return bool(stored.get("rev") != revs[-1])

        return await self.change(edited)

    async def change(self, change: Change) -> ChangedResponse:
        """Count the schedules, then change each of them, or as many as one request may."""
        body, services = self.body, self.bulk.services
        self.bulk.note.unaudited = body.dry_run
        tenant, labels = self.caller.filter_of(body.filter.tenant), body.filter.labels
        states = tuple(state for state in self.states if state in (body.filter.states or self.states))
        filter = body.filter.model_copy(update={"states": states, "ahead": body.filter.ahead or self.ahead})
        if not states:
            return counted_only(0)
        by_state, exact = await count_matching(filter, tenant, services)
        answer = counted_only(sum(by_state.values()), exact=exact)
        if body.dry_run:
            return answer
        names = await first_names(filter, tenant, services, CHANGED_MAX + 1, after=body.after)
        place = 0
        async for _ in self.bulk.turns(body, answer, is_first=body.after is None):
            some = names[place : min(place + _SLICE, CHANGED_MAX)]
            if not some:
                break
            meant = {*(await services.schedules.names_among(some, labels, tenant=tenant))} if labels else {*some}
            done = await _changed(answer, some, meant, change, may_fail=place == 0)
            place += done
            if done < len(some):
                break
        answer.complete = place == len(names)
        answer.next = None if answer.complete else names[place - 1] if place else body.after
        return answer


async def _changed(
    answer: ChangedResponse, names: Sequence[str], meant: set[str], change: Change, *, may_fail: bool
) -> int:
    """Change those of ``names`` that are ``meant``, and count them in ``answer``.

    Return how many names are done: fewer than all after an error of the database or a limit. Raise that error instead
    if it ``may_fail`` and nothing was changed.
    """
    for first in range(0, len(names), _TOGETHER_MAX):
        some = names[first : first + _TOGETHER_MAX]
        doing = [change(name) if name in meant else asyncio.sleep(0, result=False) for name in some]
        # Wait for all, even if one fails: a task that is left behind would still write.
        fates = await asyncio.gather(*doing, return_exceptions=True)
        answer.changed += sum(fate is True for fate in fates)
        for number, fate in enumerate(fates):
            match fate:
                case bool() | NotFound():
                    pass
                case TooMany() | WorldError():
                    if may_fail and not answer.changed and first + number == 0:
                        raise fate
                    return first + number
                case CallerError() | UnreadableDocument() | ProblemError():
                    answer.refused += 1
                    answer.error = (fate.detail if isinstance(fate, ProblemError) else str(fate))[:_ERROR_LENGTH_MAX]
                case _:
                    raise fate
    return len(names)
