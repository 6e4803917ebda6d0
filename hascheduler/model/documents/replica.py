"""Stored heartbeats of replicas."""

from typing import Any

from hascheduler.model.replica import LastCheck, ReplicaStatus
from hascheduler.model.schema_version import INDEX_GENERATION, UNSTATED_VERSION, WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    Document,
    identifier,
    integer,
    text,
    text_or_none,
)
from hascheduler.model.values.instants import WallMs

REPLICA_FIELDS = (
    "v", "name", "beat", "started_at_ms", "http_endpoint", "liveness_endpoint", "ready", "stream_lag_ms",
    "position", "digest", "quarantined", "version", "reads", "marks", "audited",
    "decision_lag_ms", "zone_data",
)  # fmt: skip


def encode_replica(status: ReplicaStatus) -> dict[str, Any]:
    return {
        "_id": status.id,
        "v": WRITTEN_VERSION,
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
        "indexes": INDEX_GENERATION,  # no mirror has it: `hascheduler migrate` asks
        # As a text: the stream may deliver a part of an array, and a new field must never make the document unreadable.
        "marks": " ".join(f"{point}={digest}" for point, digest in status.marks),
        "audited": _encode_last_check(status.last_check),
        "decision_lag_ms": status.decision_lag_ms,
        "zone_data": status.zone_data,
    }


def decode_replica(id: object, fields: Document) -> ReplicaStatus:
    require_known_version(fields)
    lag, decision_lag = fields.get("stream_lag_ms"), fields.get("decision_lag_ms")
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
        reads=integer(fields, "reads", default=UNSTATED_VERSION),
        marks=tuple(_pairs(fields.get("marks"))),
        last_check=_decode_last_check(fields.get("audited")),
        decision_lag_ms=None if decision_lag is None else integer(fields, "decision_lag_ms"),
        zone_data=text_or_none(fields, "zone_data"),
    )


def _encode_last_check(last_check: LastCheck | None) -> str | None:
    if last_check is None:
        return None
    return " ".join([f"at={last_check.at_ms}", *(f"{kind}={count}" for kind, count in last_check.counts.items())])


def _decode_last_check(value: object) -> LastCheck | None:
    counts = {name: int(text) for name, text in _pairs(value) if text.isascii() and text.isdecimal() and len(text) < 16}
    at_ms = counts.pop("at", None)
    return None if at_ms is None else LastCheck(WallMs(at_ms), counts)


def _pairs(value: object) -> list[tuple[str, str]]:
    """The pairs of ``name=value name=value``; malformed words are left out."""
    words = value.split(" ") if isinstance(value, str) else []
    return [(name, text) for name, is_pair, text in (word.rpartition("=") for word in words) if is_pair]
