"""Stored leases."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    Document,
    identifier,
    integer,
    text,
)
from hascheduler.model.values.instants import WallMs

LEASE_FIELDS = (
    "v", "holder", "term", "renewals", "endpoint", "acquired_at_ms", "renewed_at_ms", "lease_duration_ms",
    "transitions",
)  # fmt: skip


def encode_lease(record: LeaseRecord) -> dict[str, Any]:
    return {"_id": record.name, "v": WRITTEN_VERSION, **{name: getattr(record, name) for name in LEASE_FIELDS[1:]}}


def decode_lease(id: object, fields: Document) -> LeaseRecord:
    require_known_version(fields)
    return LeaseRecord(
        name=identifier(id),
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
    """None for a document that is no lease; one of an unknown form is still an `InvalidInput`."""
    require_known_version(fields)
    try:
        return decode_lease(id, fields)
    except InvalidInput:
        return None
