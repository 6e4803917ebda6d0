"""Nouns with only what matters spelled out, for the tests of the core."""

from dataclasses import replace
from typing import Any

from hascheduler.dispatch.decisions import Fire
from hascheduler.mirror.changes import NounSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.partition import Hold
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Part
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.schedule import Basis, JobTemplate, ScheduleRef
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.trigger import Interval, Trigger

T0 = 1_700_006_380_000
"""When the tests of the core begin: twenty seconds before midnight, so that the days of calendars change in them."""


def wall(span_ms: int) -> WallMs:
    return WallMs(T0 + span_ms)


def make_job(id: str, **only_what_matters: Any) -> JobRef:
    plain = JobRef(
        id=id, rev=1, state=JobState.PENDING, attempt=0, definition="log", target="t", tenant="default", lane="default",
        fairness_key="", priority=5, mode="queued", submitted_at_ms=wall(0), sequence=0, not_before_ms=None,
        processor=None, dispatched_at_ms=None, cancel_requested_at_ms=None,
    )  # fmt: skip
    return replace(plain, **only_what_matters)


def dispatched(id: str, processor: str, **only_what_matters: Any) -> JobRef:
    held: dict[str, Any] = {"rev": 2, "attempt": 1, "state": JobState.DISPATCHED, "dispatched_at_ms": wall(0)}
    return make_job(id, processor=processor, **{**held, **only_what_matters})


def running(id: str, processor: str, **only_what_matters: Any) -> JobRef:
    return dispatched(id, processor, **{"rev": 3, "state": JobState.RUNNING, **only_what_matters})


def make_processor(id: str, **only_what_matters: Any) -> ProcessorRef:
    plain = ProcessorRef(id, id, "default", frozenset({"*"}), slots=2, beat=1, draining=False, parked=0)
    return replace(plain, **only_what_matters)


_COLLECTIONS: dict[type[Any], Collection] = {
    Definition: Collection.DEFINITIONS, Lane: Collection.LANES, Calendar: Collection.CALENDARS,
    Tenant: Collection.TENANTS, StandingPause: Collection.PAUSES, Hold: Collection.HOLDS,
}  # fmt: skip


def noun_seen(noun: Part | Hold) -> NounSeen:
    id = noun.key if isinstance(noun, Hold) else getattr(noun, noun.id_field)
    return NounSeen(_COLLECTIONS[type(noun)], id, noun)


def make_schedule(name: str, *, every_ms: int = 1_000, **only_what_matters: Any) -> ScheduleRef:
    template = JobTemplate("log", "t", "default", "default", "", 5, "queued")
    plain = ScheduleRef(
        name=name, rev=1, trigger=Trigger(Interval(every_ms, WallMs(0))), template=template, created_at_ms=wall(0),
        since_ms=wall(0), cursor_ms=wall(0),
    )  # fmt: skip
    return replace(plain, **only_what_matters)


def fire(schedule: str, nominal_ms: WallMs, after_ms: int = 0) -> Fire:
    """Based on a schedule of `make_schedule` whose cursor is at ``wall(after_ms)``."""
    return Fire(schedule, nominal_ms, Basis(wall(after_ms), wall(0)))
