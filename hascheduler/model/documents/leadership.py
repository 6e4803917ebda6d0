"""Stored leases and holds, and the heads of stored journal entries; `hascheduler.dispatch.decisions` has the rest."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.leadership import EntryKind, JournalHead, LeaseRecord
from hascheduler.model.partition import Hold
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier, integer, not_negative, positive, text
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
    """Return the lease, or None for a document that is not one; raise `InvalidInput` if its form is unknown."""
    require_known_version(fields)
    try:
        return decode_lease(id, fields)
    except InvalidInput:
        return None


_KINDS = {kind.value: kind for kind in EntryKind}
JOURNAL_NAME = "shard"
"""The field of the id that holds the name."""
JOURNAL_FIELDS = ("v", "term", "kind", "holder", "applied_through")


def journal_id(name: str, seq: object) -> dict[str, Any]:
    return {JOURNAL_NAME: name, "seq": seq}


def encode_journal_head(head: JournalHead) -> dict[str, Any]:
    return {
        "_id": journal_id(head.name, head.seq),
        "v": WRITTEN_VERSION,
        "term": head.term,
        "kind": head.kind.value,
        "holder": head.holder,
        "applied_through": head.applied_through,
    }


def decode_journal_head(id: object, fields: Document) -> JournalHead:
    require_known_version(fields)
    if not isinstance(id, Mapping):
        raise InvalidInput(("_id",), f"not an object of {JOURNAL_NAME} and seq")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(("kind",), f"{str(kind)[:64]!r} is unknown")
    return JournalHead(
        name=text(id, JOURNAL_NAME),
        seq=integer(id, "seq"),
        term=integer(fields, "term"),
        kind=_KINDS[kind],
        holder=text(fields, "holder"),
        applied_through=integer(fields, "applied_through"),
    )


HOLD_FIELDS = ("v", "rev", "held", "silent", "released")


def encode_hold(hold: Hold) -> dict[str, Any]:
    return {
        "_id": hold.key,
        "v": WRITTEN_VERSION,
        "rev": hold.rev,
        "held": hold.is_held,
        "silent": hold.is_silent,
        "released": hold.released,
    }


def decode_hold(id: object, fields: Document) -> Hold:
    """Return the hold; raise `InvalidInput` if the document is malformed."""
    require_known_version(fields)
    for name in ("held", "silent"):
        if not isinstance(fields.get(name), bool):
            raise InvalidInput((name,), f"{str(fields.get(name))[:64]!r}", "true or false")
    return Hold(
        identifier(id),
        positive(fields, "rev"),
        is_held=bool(fields["held"]),
        is_silent=bool(fields["silent"]),
        released=not_negative(fields, "released"),
    )


def readable_holds(documents: Iterable[Mapping[str, Any]]) -> Mapping[str, Hold]:
    """Return the holds by their keys, without those that can't be read."""
    holds = {}
    for document in documents:
        with suppress(InvalidInput):
            hold = decode_hold(document.get("_id"), document)
            holds[hold.key] = hold
    return holds
