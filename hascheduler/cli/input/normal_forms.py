"""Schedules, definitions, lanes and tenants in one form, whether a file or a replica wrote them, so that equal ones
compare equal.

The form is that of a request: one order of fields, spans and instants as the replica writes them, and no fields that
have their default or that only answers have.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT
from hascheduler.model.durations import format_duration, parse_duration
from hascheduler.model.instants import format_instant, parse_instant
from hascheduler.model.lane import PROMOTE_AFTER_MS_DEFAULT
from hascheduler.model.policy import criteria
from hascheduler.model.retry import DEFAULT_RETRY
from hascheduler.model.schedule import DEFAULT_POLICY

MISFIRE = {
    "grace": format_duration(DEFAULT_POLICY.grace_ms),
    "catch_up": DEFAULT_POLICY.catch_up.value,
    "limit": DEFAULT_POLICY.catch_up_max,
}
JOB = {
    "definition": None,
    "target": None,
    "payload": None,
    "priority": 5,
    "tenant": "default",
    "fairness_key": None,
    "lane": "default",
    "mode": "queued",
    "resources": None,
    "render": False,
}
_TRIGGER = ("type", "expression", "timezone", "every", "anchor", "at", "jitter", "start_at", "end_at", "max_fires")
RETRY = {
    "attempts": DEFAULT_RETRY.attempts_max,
    "backoff": format_duration(DEFAULT_RETRY.backoff_ms),
    "factor": DEFAULT_RETRY.backoff_factor // 1_000,
    "max": format_duration(DEFAULT_RETRY.backoff_max_ms),
}
RATE_LIMIT = ("count", "per")
DEFINITION: dict[str, Any] = {
    "default_cost": format_duration(DEFAULT_COST_MS_DEFAULT),
    "max_concurrency": None,
    "conflict_group": None,
    "conflict_scope": None,
    "tier": None,
    "rate_limit": None,
    "resources": {},
    "retry": {},
    "timeout": None,
    "total_timeout": None,
}
LANE = {"weight": 1, "promote_after": format_duration(PROMOTE_AFTER_MS_DEFAULT), "policy": None}
TENANT = {"max_running": None, "max_pending": None, "submit_rate": None, "max_schedules": None, "fire_rate": None}
_ANSWERED = {
    "rev", "created_at", "paused_at", "paused_because", "last_nominal_at", "next_at", "next_due_at", "counts",
    "failures_in_a_row",
}  # fmt: skip
"""What only answers have."""


def normal_schedule(body: Mapping[str, Any]) -> dict[str, Any]:
    """What is unknown here stays as it is."""
    rest = {name: value for name, value in body.items() if name not in _ANSWERED}
    normal = {
        "name": rest.pop("name", None),
        "labels": rest.pop("labels", None) or {},
        "paused": rest.pop("paused", None) or False,
        "trigger": _part(rest.pop("trigger", None), _trigger),
        "misfire": _part(rest.pop("misfire", None), _misfire),
        "overlap": rest.pop("overlap", None) or DEFAULT_POLICY.overlap.value,
        "pause_after_failures": rest.pop("pause_after_failures", None),
        "job": _part(rest.pop("job", None), lambda job: _job(job, body.get("name"))),
        **rest,
    }
    plain = {"labels": {}, "paused": False, "misfire": {}, "overlap": DEFAULT_POLICY.overlap.value}
    return {name: value for name, value in normal.items() if value is not None and plain.get(name) != value}


def normal_definition(body: Mapping[str, Any]) -> dict[str, Any]:
    forms = {
        "default_cost": _span,
        "rate_limit": lambda limit: _part(limit, _rate_limit),
        "retry": lambda retry: _part(retry, _retry),
        "timeout": _span,
        "total_timeout": _span,
    }
    normal = _normal(body, forms, DEFINITION)
    if "conflict_group" not in normal:
        normal.pop("conflict_scope", None)  # it says nothing then
    return normal


def normal_lane(body: Mapping[str, Any]) -> dict[str, Any]:
    return _normal(body, {"promote_after": _steps, "policy": _criteria}, LANE)


def normal_tenant(body: Mapping[str, Any]) -> dict[str, Any]:
    forms = dict.fromkeys(("submit_rate", "fire_rate"), lambda rate: _part(rate, _rate_limit))
    return _normal(body, forms, TENANT)


def _normal(
    body: Mapping[str, Any], forms: Mapping[str, Callable[[Any], Any]], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The name first, then what is known of the noun, then what is not."""
    fields = {name: body[name] for name in ("name", *defaults, *body) if body.get(name) is not None}
    formed = {name: forms[name](value) if name in forms else value for name, value in fields.items()}
    kept = _without_defaults({name: value for name, value in formed.items() if name not in _ANSWERED}, defaults)
    return {**({"name": kept["name"]} if "name" in kept else {}), **kept}


def _part(value: Any, form: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """What is no object stays, for the replica to refuse."""
    return form(value) if isinstance(value, Mapping) else value


def _misfire(body: Mapping[str, Any]) -> dict[str, Any]:
    return _without_defaults({**body, **({"grace": _span(body["grace"])} if "grace" in body else {})}, MISFIRE)


def _job(body: Mapping[str, Any], schedule: Any) -> dict[str, Any]:
    fields = {name: value for name, value in body.items() if (name, value) != ("target", schedule)}
    if fields.get("fairness_key") == (fields.get("tenant") or JOB["tenant"]):
        fields["fairness_key"] = None
    return _without_defaults(fields, JOB)


def _rate_limit(limit: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: limit[name] for name in (*RATE_LIMIT, *limit) if name in limit}
    return {**fields, **({"per": _span(fields["per"])} if "per" in fields else {})}


def _retry(retry: Mapping[str, Any]) -> dict[str, Any]:
    forms = {"backoff": _span, "factor": _number, "max": _span}
    formed = {name: forms[name](value) if name in forms else value for name, value in retry.items()}
    return _without_defaults(formed, RETRY)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _steps(value: Any) -> Any:
    return [_span(one) for one in value] if isinstance(value, list) else _span(value)


def _criteria(value: Any) -> Any:
    """The list that a preset stands for; what is no policy stays."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        with suppress(InvalidInput):
            return [criterion.value for criterion in criteria(value)]
    return value


def _trigger(body: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: body[name] for name in (*_TRIGGER, *body) if body.get(name) not in (None, [])}
    if fields.get("type") == "cron":
        expression = fields.pop("expression", None)
        fields = {"type": "cron", "expression": expression, "timezone": fields.pop("timezone", "UTC"), **fields}
    for name in ("anchor", "start_at", "end_at"):
        if name in fields:
            fields[name] = _instant(fields[name])
    for name in ("every", "jitter"):
        if name in fields:
            fields[name] = _span(fields[name])
    if fields.get("jitter") == "0s":
        del fields["jitter"]
    at = fields.get("at")
    if at is not None:
        fields["at"] = [_instant(one) for one in at] if isinstance(at, list) else _instant(at)
    if isinstance(fields.get("exclude"), list):
        fields["exclude"] = [
            {end: _instant(instant) for end, instant in window.items()} if isinstance(window, Mapping) else window
            for window in fields["exclude"]
        ]
    return fields


def _without_defaults(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    ordered = {name: fields[name] for name in (*defaults, *fields) if name in fields}
    # Types are compared as well: in a payload, 0 is not false.
    return {
        name: value
        for name, value in ordered.items()
        if name not in defaults
        or (value is not None and (type(value), value) != (type(defaults[name]), defaults[name]))
    }


def _span(value: Any) -> Any:
    """As the replica writes it; what is none stays."""
    with suppress(InvalidInput):
        return format_duration(parse_duration(value))
    return value


def _instant(value: Any) -> Any:
    with suppress(InvalidInput):
        return format_instant(parse_instant(value)).replace(".000Z", "Z") if isinstance(value, str) else value
    return value


NORMAL: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "schedule": normal_schedule,
    "definition": normal_definition,
    "lane": normal_lane,
    "tenant": normal_tenant,
}
"""The form of each kind."""
