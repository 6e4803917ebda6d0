"""How each noun is stored, and how a stored document is read back (schedules: `schedule_documents`).

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
    identifier,
    instant_or_none,
    integer,
    job_state,
    text,
    text_or_none,
)
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobRef, JobState, NewJob
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.schedule_documents import SCHEDULE_FIELDS
from hascheduler.model.verdict import Verdict, VerdictRun

Document = Mapping[str, Any]


class Collection(StrEnum):
    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"
    PROCESSORS = "processors"
    JOBS = "jobs"
    LEASES = "leases"
    JOURNAL = "journal"
    REPLICAS = "replicas"
    VERDICTS = "verdicts"
    """The API alone reads them; no mirror does."""


MIRRORED = tuple(collection for collection in Collection if collection is not Collection.VERDICTS)
LEAN_FIELDS: dict[Collection, tuple[str, ...]] = {
    Collection.DEFINITIONS: ("rev", "max_concurrency", "attempts_max"),
    Collection.SCHEDULES: SCHEDULE_FIELDS,
    Collection.PROCESSORS: ("name", "shard", "definitions", "slots", "beat", "draining", "parked"),
    Collection.JOBS: (
        "rev", "state", "attempt", "definition", "target", "tenant", "lane", "fairness_key", "priority", "mode",
        "submitted_at_ms", "sequence", "not_before_ms", "processor", "dispatched_at_ms", "cancel_requested_at_ms",
        "serial",
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
        "serial": job.serial,
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
        serial=bool(fields.get("serial")),
    )


def encode_job_ref(job: JobRef) -> dict[str, Any]:
    """The lean fields of a job, as `decode_job` reads them."""
    return {name: getattr(job, name) for name in LEAN_FIELDS[Collection.JOBS]}


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


# Verdicts


def verdict_id(schedule: str, first_ms: int) -> str:
    """Ids of one schedule are in the order of their times: instants have thirteen digits until 2286."""
    return f"{schedule}:{first_ms:013d}"


def verdict_document(run: VerdictRun, decided_at_ms: WallMs) -> dict[str, Any]:
    return {
        "_id": verdict_id(run.schedule, run.first_ms),
        "schedule": run.schedule,
        "verdict": run.verdict.value,
        "first_ms": run.first_ms,
        "last_ms": run.last_ms,
        "count": run.count,
        "because_of": run.because_of,
        "decided_at_ms": decided_at_ms,
    }


def decode_verdict(fields: Document) -> VerdictRun:
    verdict = fields.get("verdict")
    if not isinstance(verdict, str) or verdict not in set(Verdict):
        raise InvalidInput(("verdict",), f"{str(verdict)[:64]!r} is unknown", " or ".join(Verdict))
    return VerdictRun(
        schedule=text(fields, "schedule"),
        verdict=Verdict(verdict),
        first_ms=WallMs(integer(fields, "first_ms")),
        last_ms=WallMs(integer(fields, "last_ms")),
        count=integer(fields, "count"),
        because_of=text_or_none(fields, "because_of"),
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
