"""``…/preview``: when a schedule would fire, before anything is stored."""

from collections.abc import Generator, Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import CHANGES_NOTHING
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.queries import PathName, run_in_slices
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.schedules.edits import (
    ScheduleEdit,
    SchedulePatch,
    edit_now,
    patched_body,
    replaced_fields,
    stored_calendars,
)
from hascheduler.api.schedules.tenant_scope import readable_schedule, stored_schedule, with_tenant
from hascheduler.api.services import Services
from hascheduler.dispatch.schedules.previews import (
    PREVIEW_COUNT_MAX,
    FiresToCome,
    compare_fires,
    local_fires,
    make_preview,
)
from hascheduler.dispatch.schedules.trigger_periods import decided_through_ms
from hascheduler.model.documents.fired_job import WORK_AT_ONCE_MAX, JobMaker
from hascheduler.model.documents.trigger import decode_trigger
from hascheduler.model.job import fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.forms import Instant, Name, instant_text
from hascheduler.schema.noun import AS_REQUEST, Part
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Trigger
from hascheduler.schema.trigger_bodies import HasTrigger
from hascheduler.triggers import Upcoming, missing_calendar, on_calendars, with_calendars
from hascheduler.triggers.requests import trigger_of

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)

_STEP = 100
"""Fires that are shown in a slice."""


class PreviewBody(HasTrigger):
    """The trigger to preview."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"trigger": {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}},
                {"name": "tick", "trigger": {"type": "interval", "every": "1m", "jitter": "10s"}},
            ]
        }
    )

    name: Name | None = None
    """The name of the schedule, which determines the jitter; without it the jitter is an example"""


class CountQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    count: int = Field(default=10, ge=1, le=PREVIEW_COUNT_MAX, description="The most nominal times")


class PreviewQuery(CountQuery):
    from_: Instant | None = Field(default=None, alias="from", description="The start of the preview; default: now")


class FireResponse(Part):
    nominal_at: str = Field(examples=["2027-03-28T01:00:00.000Z"])
    """The nominal time, in UTC"""
    due_at: str = Field(examples=["2027-03-28T01:00:00.000Z"])
    """The nominal time plus jitter, which the schedule's name determines"""
    local: str = Field(examples=["2027-03-28T03:00:00+02:00"])
    """`nominal_at` in the trigger's zone"""
    weekday: str = Field(examples=["Sun"])
    """`due_at` in the trigger's zone"""
    excluded: bool = Field(examples=[False])
    """True if it does not fire: it is in an exclusion window or on a day that a calendar leaves out"""
    note: str | None = Field(examples=["02:30 does not exist on this day"])
    """The calendar that leaves it out, or the effect of a clock change"""
    payload: JsonValue = Field(default=None, examples=[{"day": "2027-03-28"}])
    """The payload of its job with `${…}` filled; for several jobs, an object with each payload by `ref`. Null if there
    is nothing to fill, if the caller may not see payloads, and after the first fires if the payload is large"""


class ClockChangeResponse(Part):
    """A clock change in the trigger's zone, and its effect on the trigger."""

    at: str = Field(examples=["2027-03-28T01:00:00.000Z"])
    """The instant of the change, in UTC"""
    kind: Literal["gap", "fold"] = Field(examples=["gap"])
    """gap: wall times are skipped; fold: wall times occur twice"""
    offset_before: str = Field(examples=["+01:00"])
    """The offset before the change"""
    offset_after: str = Field(examples=["+02:00"])
    """The offset after the change"""
    explanation: str = Field(examples=["clocks go from 02:00 to 03:00: fires once, at 03:00"])
    """The change and its effect in a sentence, for people"""
    fires: list[FireResponse]
    """Nominal times of that local day; of many, only some"""


class PreviewResponse(Part):
    fires: list[FireResponse]
    """The next nominal times, including excluded ones"""
    clock_changes: list[ClockChangeResponse]
    """The clock changes of the next 400 days"""
    timezone: str = Field(examples=["Europe/Paris"])
    """The IANA zone of the local times; `UTC` unless it is a cron trigger"""
    warnings: list[str] = Field(examples=[[]])
    """Parts of the cron expression that may be mistakes"""


class EditPreviewResponse(PreviewResponse):
    added: list[FireResponse]
    """The times through `until` that would fire only after the edit"""
    removed: list[FireResponse]
    """The times through `until` that would no longer fire after the edit"""
    until: str = Field(examples=["2027-04-01T01:00:00.000Z"])
    """The end of the comparison of the edited and the current trigger"""


@router.get("/{name}/preview", responses=problem_responses(404, 422))
async def preview_schedule(
    name: PathName, query: Annotated[PreviewQuery, Query(), AS_REQUEST], services: Services, caller: Viewer
) -> PreviewResponse:
    """Preview the next fires of a schedule, paused or not, and the effect of the clock changes of the next 400 days."""
    stored = await stored_schedule(name, caller, services)
    schedule = with_calendars(readable_schedule(stored), services.view.calendars())
    after_ms = _after(schedule, services.clock.wall_ms())
    fires = FiresToCome(name, schedule.trigger, after_ms, fired=schedule.tally.fired)
    if query.from_ is not None:
        fires = await run_in_slices(fires.starting_at(query.from_))
    shown = await run_in_slices(_preview(fires, query.count, _maker(name, stored, caller)))
    return PreviewResponse.model_construct(**shown)


@router.post("/preview", responses=problem_responses(413, 422), dependencies=[CHANGES_NOTHING])
async def preview_trigger(
    body: Annotated[PreviewBody, AS_REQUEST], query: Annotated[CountQuery, Query()], services: Services, caller: Viewer
) -> PreviewResponse:
    """Preview the next fires of a trigger that is not stored."""
    now = services.clock.wall_ms()
    trigger = trigger_of(body.trigger, None, now)
    if trigger.calendars is not None:
        known = services.view.calendars()
        missing = missing_calendar(trigger.calendars, known)
        known = known if missing is None else {**known, **await stored_calendars(trigger.calendars.names, services)}
        trigger = on_calendars(trigger, known)
    fires = FiresToCome(body.name or "", trigger, now, fired=0)
    return PreviewResponse.model_construct(**await run_in_slices(_preview(fires, query.count, None)))


@router.post("/{name}/preview", responses=problem_responses(404, 409, 413, 422), dependencies=[CHANGES_NOTHING])
async def preview_edit(
    name: PathName, body: SchedulePatch, query: Annotated[CountQuery, Query()], services: Services, caller: Viewer
) -> EditPreviewResponse:
    """Preview the effect of a PATCH with this body on future fires. Everything is checked, nothing is written."""
    edit = edit_now(caller, services)
    stored = await stored_schedule(name, caller, services)
    schedule = with_calendars(readable_schedule(stored), edit.calendars)
    whole = with_tenant(patched_body(name, body, stored, caller), caller)

    def edited_schedule(edit: ScheduleEdit) -> tuple[Mapping[str, Any], Trigger]:
        fields = replaced_fields(name, whole, stored, edit)
        return fields, on_calendars(decode_trigger(fields["trigger"]), edit.calendars)

    fields, trigger = await edit.made(edited_schedule)
    after_ms, fired = _after(schedule, edit.now), schedule.tally.fired
    edited = FiresToCome(name, trigger, after_ms, fired=fired)
    present = FiresToCome(name, schedule.trigger, after_ms, fired=fired)
    changed = await run_in_slices(compare_fires(present, edited, query.count))
    shown = await run_in_slices(_preview(edited, query.count, _maker(name, {**stored, **fields}, caller)))
    return EditPreviewResponse.model_construct(
        **shown,
        added=await run_in_slices(_shown(changed.added, trigger)),
        removed=await run_in_slices(_shown(changed.removed, schedule.trigger)),
        until=instant_text(changed.until_ms),
    )


def _after(schedule: ScheduleRef, now: WallMs) -> WallMs:
    # A leader whose clock is ahead may have decided times after now already.
    return WallMs(max(now, decided_through_ms(schedule)))


def _maker(name: str, stored: Mapping[str, Any], caller: Caller) -> JobMaker | None:
    return JobMaker(name, stored) if caller.sees_payloads and stored.get("render") else None


def _preview(fires: FiresToCome, count: int, maker: JobMaker | None) -> Generator[None, None, dict[str, Any]]:
    """Return the fields of a `PreviewResponse`, with the payloads that ``maker`` renders, if there is one."""
    times = yield from fires.first(count)
    preview = yield from make_preview(fires.schedule, fires.trigger, fires.after_ms, ())
    shown = yield from _shown(times, fires.trigger)
    if maker is not None and maker.makes_jobs:
        firing = [(place, each.nominal_ms) for place, each in enumerate(times) if not each.excluded]
        for place, nominal_ms in firing[: max(1, WORK_AT_ONCE_MAX // max(maker.work, 1))]:
            payload = maker.payloads(fire_job_id(fires.schedule, nominal_ms), nominal_ms)
            shown[place] = shown[place].model_copy(update={"payload": payload})
    yield
    changes = [ClockChangeResponse(**change) for change in preview["clock_changes"]]
    return {**preview, "fires": shown, "clock_changes": changes}


def _shown(times: Sequence[Upcoming], trigger: Trigger) -> Generator[None, None, list[FireResponse]]:
    shown: list[FireResponse] = []
    for first in range(0, len(times), _STEP):
        yield
        fires = local_fires(times[first : first + _STEP], trigger)
        shown += (FireResponse.model_construct(**fire) for fire in fires)
    return shown
