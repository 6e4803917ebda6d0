"""How each noun is stored, and how a stored document is read back.

One place for both directions, so that the schema has one owner. ``LEAN_FIELDS`` are the fields a mirror needs: the
stream and the snapshot project to them, so payloads never travel to a mirror. Every decoder takes a document that
anybody may have written by hand: what is wrong with it is an `InvalidInput` with the path, for the quarantine.

Instants are integers (``…_ms``), except ``expire_at`` on jobs and replicas, which MongoDB's TTL monitor must read.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import ATTEMPTS_MAX_DEFAULT, Definition
from hascheduler.model.fields import (
    NAME_CHARACTERS_MAX,
    identifier,
    instant_or_none,
    integer,
    job_state,
    text,
    text_or_none,
)
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobRef, JobState, NewJob, fire_job_id
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.schedule import JobTemplate, ScheduleRef
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger, Trigger

Document = Mapping[str, Any]


class Collection(StrEnum):
    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"
    PROCESSORS = "processors"
    JOBS = "jobs"
    LEASES = "leases"
    JOURNAL = "journal"
    REPLICAS = "replicas"


LEAN_FIELDS: dict[Collection, tuple[str, ...]] = {
    Collection.DEFINITIONS: ("rev", "max_concurrency", "attempts_max"),
    Collection.SCHEDULES: (
        "rev", "trigger", "job", "cursor_ms", "created_at_ms",
    ),
    Collection.PROCESSORS: ("name", "shard", "definitions", "slots", "beat", "draining", "parked"),
    Collection.JOBS: (
        "rev", "state", "attempt", "definition", "target", "tenant", "lane", "fairness_key", "priority", "mode",
        "submitted_at_ms", "sequence", "not_before_ms", "processor", "dispatched_at_ms", "cancel_requested_at_ms",
    ),
    Collection.LEASES: (
        "holder", "term", "renewals", "endpoint", "acquired_at_ms", "renewed_at_ms", "lease_duration_ms", "transitions",
    ),
    Collection.JOURNAL: ("term", "kind", "holder", "applied_through"),
    Collection.REPLICAS: (
        "name", "beat", "started_at_ms", "http_endpoint", "liveness_endpoint", "ready", "stream_lag_ms", "position",
        "digest", "quarantined",
    ),
}  # fmt: skip


# Jobs


def new_job_document(job: NewJob) -> dict[str, Any]:
    return {
        "_id": job.id,
        "rev": 1,
        "state": JobState.PENDING.value,
        "attempt": 0,
        "definition": job.definition,
        "target": job.target,
        "payload": job.payload,
        "tenant": job.tenant,
        "lane": job.lane,
        "fairness_key": job.fairness_key,
        "priority": job.priority,
        "mode": job.mode,
        "labels": job.labels,
        "submitted_at_ms": job.submitted_at_ms,
        "sequence": job.sequence,
        "not_before_ms": job.not_before_ms,
        "schedule": job.schedule,
        "nominal_ms": job.nominal_ms,
        "processor": None,
        "dispatched_at_ms": None,
        "started_at_ms": None,
        "finished_at_ms": None,
        "cancel_requested_at_ms": None,
        "result": None,
        "error": None,
        "attempts": [],
    }


def decode_job(id: object, fields: Document) -> JobRef:
    return JobRef(
        id=identifier(id),
        rev=integer(fields, "rev"),
        state=job_state(fields),
        attempt=integer(fields, "attempt"),
        definition=text(fields, "definition"),
        target=text(fields, "target"),
        tenant=text(fields, "tenant"),
        lane=text(fields, "lane"),
        fairness_key=text(fields, "fairness_key", empty=True),
        priority=integer(fields, "priority"),
        mode=text(fields, "mode"),
        submitted_at_ms=WallMs(integer(fields, "submitted_at_ms")),
        sequence=integer(fields, "sequence"),
        not_before_ms=instant_or_none(fields, "not_before_ms"),
        processor=text_or_none(fields, "processor"),
        dispatched_at_ms=instant_or_none(fields, "dispatched_at_ms"),
        cancel_requested_at_ms=instant_or_none(fields, "cancel_requested_at_ms"),
    )


def encode_job_ref(job: JobRef) -> dict[str, Any]:
    """The lean fields of a job, as `decode_job` reads them."""
    return {name: getattr(job, name) for name in LEAN_FIELDS[Collection.JOBS]}


# Schedules


def encode_trigger(trigger: Trigger) -> dict[str, Any]:
    match trigger:
        case IntervalTrigger(every_ms, anchor_ms):
            return {"type": "interval", "every_ms": every_ms, "anchor_ms": anchor_ms}
        case OnceTrigger(at_ms):
            return {"type": "once", "at_ms": at_ms}


def decode_trigger(fields: object) -> Trigger:
    if not isinstance(fields, Mapping):
        raise InvalidInput(("trigger",), "not an object")
    match fields.get("type"):
        case "interval":
            every_ms = integer(fields, "every_ms")
            if every_ms <= 0:
                raise InvalidInput(("trigger", "every_ms"), f"{every_ms}", "a positive number of milliseconds")
            return IntervalTrigger(every_ms, WallMs(integer(fields, "anchor_ms")))
        case "once":
            return OnceTrigger(WallMs(integer(fields, "at_ms")))
        case other:
            raise InvalidInput(("trigger", "type"), f"{str(other)[:64]!r} is unknown", "interval or once")


def encode_template(template: JobTemplate) -> dict[str, Any]:
    return {
        "definition": template.definition,
        "target": template.target,
        "tenant": template.tenant,
        "lane": template.lane,
        "fairness_key": template.fairness_key,
        "priority": template.priority,
        "mode": template.mode,
    }


def decode_template(fields: object) -> JobTemplate:
    if not isinstance(fields, Mapping):
        raise InvalidInput(("job",), "not an object")
    return JobTemplate(
        definition=text(fields, "definition"),
        target=text(fields, "target"),
        tenant=text(fields, "tenant"),
        lane=text(fields, "lane"),
        fairness_key=text(fields, "fairness_key", empty=True),
        priority=integer(fields, "priority"),
        mode=text(fields, "mode"),
    )


def decode_schedule(id: object, fields: Document) -> ScheduleRef:
    return ScheduleRef(
        name=identifier(id, longest=NAME_CHARACTERS_MAX),
        rev=integer(fields, "rev"),
        trigger=decode_trigger(fields.get("trigger")),
        template=decode_template(fields.get("job")),
        cursor_ms=WallMs(integer(fields, "cursor_ms")),
        created_at_ms=WallMs(integer(fields, "created_at_ms")),
    )


def encode_schedule_ref(schedule: ScheduleRef) -> dict[str, Any]:
    """The lean fields of a schedule, as `decode_schedule` reads them."""
    return {
        "rev": schedule.rev,
        "trigger": encode_trigger(schedule.trigger),
        "job": encode_template(schedule.template),
        "cursor_ms": schedule.cursor_ms,
        "created_at_ms": schedule.created_at_ms,
    }


def fired_job_document(name: str, schedule: Document, nominal_ms: WallMs) -> dict[str, Any] | None:
    """The document that a fire inserts, from the stored ``schedule``; None where that is unreadable, or another one.

    A schedule that was made at or after a nominal time is another one by the same name. Everything follows from the
    schedule and the nominal time, so every leader inserts the same.
    """
    created_at_ms, labels = schedule.get("created_at_ms"), schedule.get("labels")
    if not isinstance(created_at_ms, int) or created_at_ms >= nominal_ms:
        return None
    try:
        template = decode_template(schedule.get("job"))
    except InvalidInput:
        return None
    return new_job_document(
        NewJob(
            id=fire_job_id(name, nominal_ms),
            definition=template.definition,
            target=template.target,
            payload=schedule.get("payload"),
            tenant=template.tenant,
            lane=template.lane,
            fairness_key=template.fairness_key,
            priority=template.priority,
            mode=template.mode,
            labels=labels if isinstance(labels, dict) else {},
            submitted_at_ms=nominal_ms,
            schedule=name,
            nominal_ms=nominal_ms,
        )
    )


def fired_job(schedule: ScheduleRef, nominal_ms: WallMs) -> JobRef:
    """The job that a fire inserts, as the mirror will see it: what the core may act on before the echo arrives.

    It counts as submitted at its nominal time, so that every leader inserts the same document.
    """
    template = schedule.template
    return JobRef(
        id=fire_job_id(schedule.name, nominal_ms),
        rev=1,
        state=JobState.PENDING,
        attempt=0,
        definition=template.definition,
        target=template.target,
        tenant=template.tenant,
        lane=template.lane,
        fairness_key=template.fairness_key,
        priority=template.priority,
        mode=template.mode,
        submitted_at_ms=nominal_ms,
        sequence=0,
        not_before_ms=None,
        processor=None,
        dispatched_at_ms=None,
        cancel_requested_at_ms=None,
    )


# Definitions, processors


def encode_definition(definition: Definition) -> dict[str, Any]:
    return {
        "_id": definition.name,
        "rev": definition.rev,
        "max_concurrency": definition.max_concurrency,
        "attempts_max": definition.attempts_max,
    }


def decode_definition(id: object, fields: Document) -> Definition:
    cap = fields.get("max_concurrency")
    return Definition(
        name=identifier(id),
        rev=integer(fields, "rev"),
        max_concurrency=None if cap is None else integer(fields, "max_concurrency"),
        attempts_max=integer(fields, "attempts_max", default=ATTEMPTS_MAX_DEFAULT),
    )


def encode_processor(processor: ProcessorRef) -> dict[str, Any]:
    return {
        "_id": processor.id,
        "name": processor.name,
        "shard": processor.shard,
        "definitions": sorted(processor.definitions),
        "slots": processor.slots,
        "beat": processor.beat,
        "draining": processor.draining,
        "parked": processor.parked,
    }


def decode_processor(id: object, fields: Document) -> ProcessorRef:
    definitions = fields.get("definitions")
    if not isinstance(definitions, list) or not all(isinstance(name, str) for name in definitions):
        raise InvalidInput(("definitions",), "not a list of texts")
    return ProcessorRef(
        id=identifier(id),
        name=text(fields, "name"),
        shard=text(fields, "shard"),
        definitions=frozenset(definitions),
        slots=integer(fields, "slots"),
        beat=integer(fields, "beat"),
        draining=bool(fields.get("draining")),
        parked=integer(fields, "parked", default=0),
    )


# Leases, journal, replicas


def encode_lease(record: LeaseRecord) -> dict[str, Any]:
    return {
        "_id": record.shard,
        "holder": record.holder,
        "term": record.term,
        "renewals": record.renewals,
        "endpoint": record.endpoint,
        "acquired_at_ms": record.acquired_at_ms,
        "renewed_at_ms": record.renewed_at_ms,
        "lease_duration_ms": record.lease_duration_ms,
        "transitions": record.transitions,
    }


def decode_lease(id: object, fields: Document) -> LeaseRecord:
    return LeaseRecord(
        shard=identifier(id),
        holder=text(fields, "holder", empty=True),
        term=integer(fields, "term"),
        renewals=integer(fields, "renewals"),
        endpoint=text(fields, "endpoint", empty=True),
        acquired_at_ms=WallMs(integer(fields, "acquired_at_ms")),
        renewed_at_ms=WallMs(integer(fields, "renewed_at_ms")),
        lease_duration_ms=integer(fields, "lease_duration_ms"),
        transitions=integer(fields, "transitions"),
    )


def journal_id(shard: str, seq: int) -> dict[str, Any]:
    return {"shard": shard, "seq": seq}


def encode_journal_head(head: JournalHead) -> dict[str, Any]:
    return {
        "_id": journal_id(head.shard, head.seq),
        "term": head.term,
        "kind": head.kind.value,
        "holder": head.holder,
        "applied_through": head.applied_through,
    }


def decode_journal_head(id: object, fields: Document) -> JournalHead:
    if not isinstance(id, Mapping):
        raise InvalidInput(("_id",), "not an object of shard and seq")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in set(EntryKind):
        raise InvalidInput(("kind",), f"{str(kind)[:64]!r} is unknown")
    return JournalHead(
        shard=text(id, "shard"),
        seq=integer(id, "seq"),
        term=integer(fields, "term"),
        kind=EntryKind(kind),
        holder=text(fields, "holder"),
        applied_through=integer(fields, "applied_through"),
    )


def encode_replica(status: ReplicaStatus) -> dict[str, Any]:
    return {
        "_id": status.id,
        "name": status.name,
        "beat": status.beat,
        "started_at_ms": status.started_at_ms,
        "http_endpoint": status.http_endpoint,
        "liveness_endpoint": status.liveness_endpoint,
        "ready": status.ready,
        "stream_lag_ms": status.stream_lag_ms,
        "position": status.position,
        "digest": status.digest,
        "quarantined": status.quarantined,
    }


def decode_replica(id: object, fields: Document) -> ReplicaStatus:
    lag = fields.get("stream_lag_ms")
    return ReplicaStatus(
        id=identifier(id),
        name=text(fields, "name"),
        beat=integer(fields, "beat"),
        started_at_ms=WallMs(integer(fields, "started_at_ms")),
        http_endpoint=text(fields, "http_endpoint", empty=True),
        liveness_endpoint=text(fields, "liveness_endpoint", empty=True),
        ready=bool(fields.get("ready")),
        stream_lag_ms=None if lag is None else integer(fields, "stream_lag_ms"),
        position=text(fields, "position", empty=True),
        digest=text(fields, "digest", empty=True),
        quarantined=integer(fields, "quarantined", default=0),
    )
