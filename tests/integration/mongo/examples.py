"""Jobs and schedules with only what matters spelled out, for the tests of this room."""

from dataclasses import replace
from typing import Any

from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import NewJob
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Interval, Trigger

RETENTION_MS = 600_000

TEMPLATE = JobTemplate("log", "target", "tenant", "default", "", 5, "queued")


def job(id: str, **only_what_matters: Any) -> NewJob:
    plain = NewJob(id, "log", "target", {"n": 1}, "tenant", "default", "", 5, "queued", {}, WallMs(1_000))
    return replace(plain, **only_what_matters)


def schedule(name: str, **only_what_matters: Any) -> dict[str, Any]:
    plain = NewSchedule(name, Trigger(Interval(1_000, WallMs(0))), TEMPLATE, {"big": "x" * 1_000}, {}, WallMs(500))
    return new_schedule_document(replace(plain, **only_what_matters))
