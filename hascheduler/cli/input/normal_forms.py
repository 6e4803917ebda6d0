"""Schedules, definitions, lanes, calendars and tenants in one form, whether a file or a replica wrote them, so that
equal ones compare equal.

The form is that of a request: the name first, then what differs from the default, and nothing that only answers
have.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hascheduler.cli.output.yaml_text import ANSWERED
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.tenant import DEFAULT_TENANT

if TYPE_CHECKING:
    from hascheduler.schema.noun import Part

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


def body_class(kind: str) -> "type[Part]":
    """Return the class of what a request for a definition, a lane, a calendar or a tenant has beside the name."""
    body: type[Part] = getattr(import_module(f"hascheduler.schema.{kind}"), f"{kind.capitalize()}Body")
    return body


def requested(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a noun that a file wants; raise an `InvalidInput` if no replica would take it."""
    from hascheduler.schema.noun import answer_of, read_request

    said = {name: value for name, value in document.items() if name != "name" and value is not None}
    whole = answer_of(read_request(body_class(kind), said))
    return _normal_noun(kind, {"name": document["name"], **{name: whole[name] for name in said}})


def _normal_noun(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a noun; what is invalid stays as it is, for the replica to refuse."""
    from pydantic import ValidationError

    from hascheduler.schema.noun import answer_of, normal_form, read_answer

    said = {name: value for name, value in document.items() if name not in ANSWERED and value is not None}
    head = {name: said.pop(name) for name in ("name",) if name in said}
    try:
        body = read_answer(body_class(kind), said)
    except ValidationError:
        return head | said
    # A replacement keeps the scope that it leaves out, so it is said; it says nothing without a group.
    scoped = {name: said[name] for name in body.kept if name in said and "conflict_group" in said}
    normal = {name: value for name, value in normal_form(body).items() if name not in body.kept} | scoped
    return head | {name: normal[name] for name in answer_of(body) if name in normal}


def _job(job: Mapping[str, Any], schedule: Any) -> dict[str, Any]:
    """Return ``job`` without what follows from the schedule's name and the tenant."""
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
    from hascheduler.schema.trigger import Cron
    from hascheduler.triggers import read_pattern

    pattern = read_pattern(expression, timezone, WallMs(0))
    if not isinstance(pattern, Cron):
        return {"type": "interval", "every": format_duration(pattern.every_ms), **rest}
    return {"type": "cron", "expression": pattern.expression, "timezone": pattern.timezone, **rest}


NORMAL: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "schedule": normal_schedule,
    **{kind: partial(_normal_noun, kind) for kind in ("definition", "lane", "calendar", "tenant")},
}
"""The form of each kind."""
