"""The heads of stored journal entries; the decisions in an entry are encoded by `hascheduler.dispatch.decisions`."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    Document,
    integer,
    text,
)

_KINDS = {kind.value: kind for kind in EntryKind}
JOURNAL_NAME = "shard"
"""The field of the id that has the name."""
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
