"""Filters that several stores share: by labels, by the attributes of a job, by the schedule that made it."""

from collections.abc import Mapping
from typing import Any

from hascheduler.model.job import ScheduleId
from hascheduler.ports import JobSelection

DEPENDS_ON = "depends_on"
"""The name of the index that finds the jobs which depend on one; without those, most, that depend on none."""


def has_labels(labels: Mapping[str, str]) -> dict[str, Any]:
    """For ``$expr``: whether a document has all of these.

    The key of a label may hold a dot, which a field name in a query may not.
    """
    return {
        "$and": [
            {"$eq": [{"$getField": {"field": {"$literal": key}, "input": "$labels"}}, {"$literal": value}]}
            for key, value in labels.items()
        ]
    }


def job_query(which: JobSelection) -> dict[str, Any]:
    states = [state.value for state in which.states]
    wanted = {
        "state": {"$in": states} if len(states) > 1 else next(iter(states), None),
        "definition": which.definition,
        "schedule": which.schedule,
        "tenant": which.tenant,
        "batch": which.batch,
        "target": which.target,
    }
    query: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if which.tenant is None and which.not_of:
        query["tenant"] = {"$nin": sorted(which.not_of)}
    if which.made_by is not None:
        query |= {"schedule": which.made_by.name, **made_by(which.made_by)}
    if which.labels:
        query["$expr"] = has_labels(which.labels)
    between = {"$gte": which.since_ms, "$lt": which.until_ms}
    if any(bound is not None for bound in between.values()):
        query["submitted_at_ms"] = {name: bound for name, bound in between.items() if bound is not None}
    id: dict[str, Any] = {} if which.ids is None else {"$in": list(which.ids)}
    if which.id_prefix is not None:
        id |= begins_with(which.id_prefix)
    if id:
        query["_id"] = id
    return query


def begins_with(prefix: str) -> dict[str, str]:
    """A range of an index: texts are in the order of their code points, and that one is the last."""
    return {"$gte": prefix, "$lt": f"{prefix}\U0010ffff"}


def made_by(schedule: ScheduleId) -> dict[str, Any]:
    """Among the jobs of all schedules of that name: those of this one (see `ScheduleId.is_same`)."""
    said = {"schedule_created_at_ms": schedule.created_at_ms}
    return {"$or": [said, {"schedule_created_at_ms": None, "tenant": schedule.tenant}]}
