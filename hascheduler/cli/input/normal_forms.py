"""Schedules, definitions, lanes, calendars and tenants in one form, whether a file or a replica wrote them, so that
equal ones compare equal.

The form is that of a request: the name first, then what `hascheduler.wire.normal_form` makes of the noun's model, and
nothing that only answers have.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hascheduler.cli.output.yaml_text import ANSWERED
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.schema.trigger import Interval

if TYPE_CHECKING:
    from hascheduler.wire.fields import StrictModel

# The models and triggers are imported with the first use: a list of schedules needs none.


def normal_schedule(body: Mapping[str, Any]) -> dict[str, Any]:
    from hascheduler.schema.lenient_form import lenient_form
    from hascheduler.schema.schedule_bodies import CreateScheduleBody

    said = {name: value for name, value in body.items() if name not in ANSWERED}
    normal = dict(sorted(lenient_form(CreateScheduleBody, said).items(), key=lambda field: field[0] != "name"))
    trigger, job, jobs = normal.get("trigger"), normal.get("job"), normal.get("jobs")
    if isinstance(trigger, Mapping):
        normal["trigger"] = _trigger(trigger)
    if isinstance(jobs, list):
        normal["jobs"] = [_job(each, body.get("name")) if isinstance(each, Mapping) else each for each in jobs]
        if body.get("rev") is not None:
            normal.pop("job", None)  # an answer shows the last of them there, too
    elif isinstance(job, Mapping):
        normal["job"] = _job(job, body.get("name"))
    return normal


def body_model(kind: str) -> "type[StrictModel]":
    """What a request for a definition, a lane, a calendar or a tenant has, beside the name."""
    from hascheduler.wire.calendar import CalendarBody
    from hascheduler.wire.definition import DefinitionBody
    from hascheduler.wire.fields import StrictModel
    from hascheduler.wire.lane import LaneBody
    from hascheduler.wire.tenant import TenantBody

    models: Mapping[str, type[StrictModel]] = {
        "definition": DefinitionBody,
        "lane": LaneBody,
        "calendar": CalendarBody,
        "tenant": TenantBody,
    }
    return models[kind]


def _normal_noun(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    normal = _normal(body_model(kind), body)
    if kind == "definition" and "conflict_group" not in normal:
        normal.pop("conflict_scope", None)  # it says nothing then
    return normal


def _normal(model: "type[StrictModel]", body: Mapping[str, Any]) -> dict[str, Any]:
    from hascheduler.wire.normal_form import normal_form

    normal = normal_form(model, {name: value for name, value in body.items() if name not in ANSWERED})
    return dict(sorted(normal.items(), key=lambda field: field[0] != "name"))


def _job(job: Mapping[str, Any], schedule: Any) -> dict[str, Any]:
    """Without what follows from the schedule's name and the tenant."""
    tenant = job.get("tenant", DEFAULT_TENANT)
    unsaid = {"target": schedule, "tenant": DEFAULT_TENANT, "fairness_key": tenant}
    return {name: value for name, value in job.items() if name not in unsaid or value != unsaid[name]}


def _trigger(trigger: Mapping[str, Any]) -> Mapping[str, Any]:
    if trigger.get("type") == "any" and isinstance(trigger.get("of"), list):
        return {**trigger, "of": [_trigger(part) if isinstance(part, Mapping) else part for part in trigger["of"]]}
    return _cron(trigger) if trigger.get("type") == "cron" else trigger


def _cron(trigger: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the replica stores it: an interval, for `@every 90s`."""
    expression, timezone = trigger.get("expression"), trigger.get("timezone", "UTC")
    if not isinstance(expression, str) or not isinstance(timezone, str):
        return trigger
    rest = {name: value for name, value in trigger.items() if name not in ("type", "expression", "timezone")}
    from hascheduler.triggers import read_pattern

    pattern = read_pattern(expression, timezone, WallMs(0))
    if isinstance(pattern, Interval):
        return {"type": "interval", "every": format_duration(pattern.every_ms), **rest}
    return {"type": "cron", "expression": pattern.expression, "timezone": pattern.timezone, **rest}


NORMAL: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "schedule": normal_schedule,
    **{kind: partial(_normal_noun, kind) for kind in ("definition", "lane", "calendar", "tenant")},
}
"""The form of each kind."""
