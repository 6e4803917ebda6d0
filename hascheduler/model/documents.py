"""How each noun is stored, and how a stored document is read back (also `schedule_documents`, `job_documents`, …).

One place for both directions, so that the schema has one owner. ``LEAN_FIELDS`` are the fields a mirror needs: the
stream and the snapshot project to them, so payloads never travel to a mirror. Every decoder takes a document that
anybody may have written by hand: what is wrong with it is an `InvalidInput` with the path, for the quarantine.

Instants are integers (``…_ms``), except ``expire_at`` on jobs and replicas, which MongoDB's TTL monitor must read.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, ConflictScope, Definition, RateLimit
from hascheduler.model.fields import (
    identifier,
    integer,
    is_integer,
    not_negative,
    positive,
    positive_or_none,
    text,
    text_or_none,
)
from hascheduler.model.instants import WallMs
from hascheduler.model.job_documents import JOB_FIELDS
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lane import PRIORITY_MAX, PROMOTE_AFTER_MS_DEFAULT, Lane
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.policy import criteria
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import Audited, ReplicaStatus
from hascheduler.model.resources import decode_resources, encode_resources
from hascheduler.model.retry import (
    ATTEMPTS_MAX_DEFAULT,
    BACKOFF_FACTOR_DEFAULT,
    BACKOFF_MAX_MS_DEFAULT,
    BACKOFF_MS_DEFAULT,
    RetryPolicy,
)
from hascheduler.model.schedule_documents import SCHEDULE_FIELDS
from hascheduler.model.schema_version import SCHEMA_FIELDS, UNSAID, WRITTEN, demand_known
from hascheduler.model.tenant import Tenant
from hascheduler.model.token_documents import TOKEN_FIELDS
from hascheduler.model.verdict import Verdict, VerdictRun, read_verdict, stored_verdict

Document = Mapping[str, Any]


class Collection(StrEnum):
    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"
    PROCESSORS = "processors"
    JOBS = "jobs"
    LEASES = "leases"
    JOURNAL = "journal"
    REPLICAS = "replicas"
    LANES = "lanes"
    TENANTS = "tenants"
    TOKENS = "tokens"
    VERDICTS = "verdicts"
    """The API alone reads them; no mirror does."""
    ACCOUNTS = "accounts"
    """Read before a snapshot; no mirror has them."""
    AUDIT = "audit"
    """Only written, and read by people."""
    BUCKETS = "buckets"
    """How fast tenants submit: whoever lets a job in asks the database itself."""
    FAILOVERS = "failovers"
    """Read by whoever wants to know of them, never by a mirror."""
    META = "meta"
    """What the database says of itself: its schema version."""


_UNMIRRORED = (
    Collection.VERDICTS, Collection.ACCOUNTS, Collection.AUDIT, Collection.BUCKETS, Collection.FAILOVERS
)  # fmt: skip
MIRRORED = tuple(collection for collection in Collection if collection not in _UNMIRRORED)
LEAN_FIELDS: dict[Collection, tuple[str, ...]] = {
    Collection.DEFINITIONS: (
        "v", "rev", "max_concurrency", "attempts_max", "default_cost_ms", "conflict_group", "tier", "rate_limit",
        "resources", "backoff_ms", "backoff_factor", "backoff_max_ms", "timeout_ms", "total_timeout_ms",
        "conflict_scope",
    ),
    Collection.LANES: ("v", "rev", "weight", "promote_after_ms", "criteria"),
    Collection.TENANTS: ("v", "rev", "max_running", "max_pending", "submit_rate", "max_schedules", "fire_rate"),
    Collection.TOKENS: TOKEN_FIELDS,
    Collection.SCHEDULES: SCHEDULE_FIELDS,
    Collection.PROCESSORS: (
        "v", "name", "shard", "definitions", "slots", "beat", "draining", "parked", "resources",
        "registered_by",
    ),
    Collection.JOBS: JOB_FIELDS,
    Collection.LEASES: (
        "v", "holder", "term", "renewals", "endpoint", "acquired_at_ms", "renewed_at_ms", "lease_duration_ms",
        "transitions",
    ),
    Collection.JOURNAL: ("v", "term", "kind", "holder", "applied_through"),
    Collection.REPLICAS: (
        "v", "name", "beat", "started_at_ms", "http_endpoint", "liveness_endpoint", "ready", "stream_lag_ms",
        "position", "digest", "quarantined", "version", "reads", "marks", "audited",
    ),
    Collection.META: SCHEMA_FIELDS,
}  # fmt: skip


# Definitions, lanes, tenants, processors


def encode_definition(definition: Definition) -> dict[str, Any]:
    retry = definition.retry
    return {
        "_id": definition.name,
        "v": WRITTEN,
        "rev": definition.rev,
        "max_concurrency": definition.max_concurrency,
        "attempts_max": retry.attempts_max,
        "default_cost_ms": definition.default_cost_ms,
        "conflict_group": definition.conflict_group,
        "conflict_scope": definition.conflict_scope.value,
        "tier": definition.tier,
        "rate_limit": _encode_rate_limit(definition.rate_limit),
        "resources": encode_resources(definition.resources),
        "backoff_ms": retry.backoff_ms,
        "backoff_factor": retry.backoff_factor,
        "backoff_max_ms": retry.backoff_max_ms,
        "timeout_ms": definition.timeout_ms,
        "total_timeout_ms": definition.total_timeout_ms,
    }


def decode_definition(id: object, fields: Document) -> Definition:
    demand_known(fields)
    return Definition(
        name=identifier(id),
        rev=integer(fields, "rev"),
        max_concurrency=positive_or_none(fields, "max_concurrency"),
        default_cost_ms=not_negative(fields, "default_cost_ms", default=DEFAULT_COST_MS_DEFAULT),
        conflict_group=text_or_none(fields, "conflict_group"),
        tier=positive_or_none(fields, "tier"),
        rate_limit=_decode_rate_limit(fields, "rate_limit"),
        resources=decode_resources(fields.get("resources")),
        retry=RetryPolicy(
            attempts_max=integer(fields, "attempts_max", default=ATTEMPTS_MAX_DEFAULT),
            backoff_ms=not_negative(fields, "backoff_ms", default=BACKOFF_MS_DEFAULT),
            backoff_factor=not_negative(fields, "backoff_factor", default=BACKOFF_FACTOR_DEFAULT),
            backoff_max_ms=not_negative(fields, "backoff_max_ms", default=BACKOFF_MAX_MS_DEFAULT),
        ),
        timeout_ms=positive_or_none(fields, "timeout_ms"),
        total_timeout_ms=positive_or_none(fields, "total_timeout_ms"),
        conflict_scope=_decode_conflict_scope(fields),
    )


def _decode_conflict_scope(fields: Document) -> ConflictScope:
    scope = fields.get("conflict_scope")
    if scope is None:
        return ConflictScope.SHARED
    if not isinstance(scope, str) or scope not in set(ConflictScope):
        raise InvalidInput(("conflict_scope",), f"{str(scope)[:64]!r} is unknown", " or ".join(ConflictScope))
    return ConflictScope(scope)


def _encode_rate_limit(limit: RateLimit | None) -> dict[str, int] | None:
    return None if limit is None else {"count": limit.count, "per_ms": limit.per_ms}


def _decode_rate_limit(fields: Document, name: str) -> RateLimit | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidInput((name,), f"a {type(value).__name__}", "an object of count and per_ms")
    return RateLimit(positive(value, "count"), positive(value, "per_ms"))


def encode_lane(lane: Lane) -> dict[str, Any]:
    return {
        "_id": lane.name,
        "v": WRITTEN,
        "rev": lane.rev,
        "weight": lane.weight,
        "promote_after_ms": list(lane.promote_after_ms),
        "criteria": None if lane.criteria is None else [criterion.value for criterion in lane.criteria],
    }


def decode_lane(id: object, fields: Document) -> Lane:
    demand_known(fields)
    steps = fields.get("promote_after_ms", [PROMOTE_AFTER_MS_DEFAULT])
    if not isinstance(steps, list) or len(steps) not in (1, PRIORITY_MAX + 1) or not all(map(_is_positive, steps)):
        raise InvalidInput(("promote_after_ms",), f"{str(steps)[:64]}", f"a list of 1 or {PRIORITY_MAX + 1} spans")
    listed = fields.get("criteria")
    if listed is not None and not isinstance(listed, list):
        raise InvalidInput(("criteria",), f"a {type(listed).__name__}", "a list of criteria")
    return Lane(
        name=identifier(id),
        rev=integer(fields, "rev"),
        weight=positive(fields, "weight"),
        promote_after_ms=tuple(steps),
        criteria=None if listed is None else criteria(listed, "criteria"),
    )


def _is_positive(value: object) -> bool:
    return is_integer(value) and value > 0


def encode_tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "_id": tenant.name,
        "v": WRITTEN,
        "rev": tenant.rev,
        "max_running": tenant.max_running,
        "max_pending": tenant.max_pending,
        "submit_rate": _encode_rate_limit(tenant.submit_rate),
        "max_schedules": tenant.max_schedules,
        "fire_rate": _encode_rate_limit(tenant.fire_rate),
    }


def decode_tenant(id: object, fields: Document) -> Tenant:
    demand_known(fields)
    return Tenant(
        name=identifier(id),
        rev=integer(fields, "rev"),
        max_running=positive_or_none(fields, "max_running"),
        max_pending=positive_or_none(fields, "max_pending"),
        submit_rate=_decode_rate_limit(fields, "submit_rate"),
        max_schedules=positive_or_none(fields, "max_schedules"),
        fire_rate=_decode_rate_limit(fields, "fire_rate"),
    )


def encode_processor(processor: ProcessorRef) -> dict[str, Any]:
    return {
        "_id": processor.id,
        "v": WRITTEN,
        "name": processor.name,
        "shard": processor.shard,
        "definitions": sorted(processor.definitions),
        "slots": processor.slots,
        "beat": processor.beat,
        "draining": processor.draining,
        "parked": processor.parked,
        "resources": encode_resources(processor.resources),
        "registered_by": processor.registered_by,
    }


def decode_processor(id: object, fields: Document) -> ProcessorRef:
    demand_known(fields)
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
        resources=decode_resources(fields.get("resources")),
        registered_by=text_or_none(fields, "registered_by"),
    )


# Verdicts


def verdict_id(schedule: str, first_ms: int) -> str:
    """Ids of one schedule are in the order of their times: instants have thirteen digits until 2286."""
    return f"{schedule}:{first_ms:013d}"


def verdict_document(run: VerdictRun, decided_at_ms: WallMs, created_at_ms: WallMs | None = None) -> dict[str, Any]:
    """``created_at_ms`` is that of the schedule, so that a later one of its name is not shown the record as its own."""
    made = {} if created_at_ms is None else {"schedule_created_at_ms": created_at_ms}
    verdict, because_of = stored_verdict(run)
    return {
        "_id": verdict_id(run.schedule, run.first_ms),
        "v": WRITTEN,
        "schedule": run.schedule,
        "verdict": verdict,
        "first_ms": run.first_ms,
        "last_ms": run.last_ms,
        "count": run.count,
        "because_of": because_of,
        "decided_at_ms": decided_at_ms,
        **made,
    }


def decode_verdict(fields: Document) -> VerdictRun:
    demand_known(fields)
    verdict = fields.get("verdict")
    if not isinstance(verdict, str) or verdict not in set(Verdict):
        raise InvalidInput(("verdict",), f"{str(verdict)[:64]!r} is unknown", " or ".join(Verdict))
    known, because_of = read_verdict(verdict, text_or_none(fields, "because_of"))
    return VerdictRun(
        schedule=text(fields, "schedule"),
        verdict=known,
        first_ms=WallMs(integer(fields, "first_ms")),
        last_ms=WallMs(integer(fields, "last_ms")),
        count=integer(fields, "count"),
        because_of=because_of,
    )


# Leases, journal, replicas


def encode_lease(record: LeaseRecord) -> dict[str, Any]:
    return {
        "_id": record.shard,
        "v": WRITTEN,
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
    demand_known(fields)
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


def readable_lease(id: object, fields: Document) -> LeaseRecord | None:
    """None where somebody has written something else there; one of a later release is an `InvalidInput` still."""
    demand_known(fields)
    try:
        return decode_lease(id, fields)
    except InvalidInput:
        return None


def journal_id(shard: str, seq: int) -> dict[str, Any]:
    return {"shard": shard, "seq": seq}


def encode_journal_head(head: JournalHead) -> dict[str, Any]:
    return {
        "_id": journal_id(head.shard, head.seq),
        "v": WRITTEN,
        "term": head.term,
        "kind": head.kind.value,
        "holder": head.holder,
        "applied_through": head.applied_through,
    }


def decode_journal_head(id: object, fields: Document) -> JournalHead:
    demand_known(fields)
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
        "v": WRITTEN,
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
        "version": status.version,
        "reads": status.reads,
        # As texts: of an array the stream may tell a part, and what is new here is nothing that may fail to be read.
        "marks": " ".join(f"{point}={digest}" for point, digest in status.marks),
        "audited": _encode_audited(status.audited),
    }


def decode_replica(id: object, fields: Document) -> ReplicaStatus:
    demand_known(fields)
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
        version=text_or_none(fields, "version"),
        reads=integer(fields, "reads", default=UNSAID),
        marks=tuple(_pairs(fields.get("marks"))),
        audited=_decode_audited(fields.get("audited")),
    )


def _encode_audited(audited: Audited | None) -> str | None:
    if audited is None:
        return None
    return " ".join([f"at={audited.at_ms}", *(f"{kind}={count}" for kind, count in audited.counts.items())])


def _decode_audited(value: object) -> Audited | None:
    counts = {name: int(text) for name, text in _pairs(value) if text.isascii() and text.isdecimal() and len(text) < 16}
    at_ms = counts.pop("at", None)
    return None if at_ms is None else Audited(WallMs(at_ms), counts)


def _pairs(value: object) -> list[tuple[str, str]]:
    """Of ``name=value name=value``; whatever is something else is left out."""
    words = value.split(" ") if isinstance(value, str) else []
    return [(name, text) for name, is_pair, text in (word.rpartition("=") for word in words) if is_pair]
