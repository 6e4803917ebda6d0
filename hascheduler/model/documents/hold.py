"""The stored form of holds."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.hold import Hold
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier, not_negative, positive

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
    """Return the hold; `InvalidInput` if the document is malformed."""
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
