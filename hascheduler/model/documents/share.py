"""The stored shares of caps: each shard's own, and the home's document of what all of them have."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.share import Grant, Share, SharedCap
from hascheduler.model.values.fields import Document, identifier, not_negative, positive

SHARE_FIELDS = ("v", "rev", "limit", "lowered", "released")


def encode_share(share: Share) -> dict[str, Any]:
    return {
        "_id": share.key,
        "v": WRITTEN_VERSION,
        "rev": share.rev,
        "limit": share.limit,
        "lowered": share.lowered,
        "released": share.released,
    }


def decode_share(id: object, fields: Document) -> Share:
    """`InvalidInput` for a document that is malformed."""
    require_known_version(fields)
    lowered = fields.get("lowered")
    if not isinstance(lowered, bool):
        raise InvalidInput(("lowered",), f"{str(lowered)[:64]!r}", "true or false")
    return Share(
        identifier(id),
        positive(fields, "rev"),
        not_negative(fields, "limit"),
        lowered,
        not_negative(fields, "released"),
    )


def encode_shared_cap(cap: SharedCap) -> dict[str, Any]:
    return {
        "_id": cap.key,
        "v": WRITTEN_VERSION,
        "rev": cap.rev,
        "cap": cap.cap,
        "grants": [[grant.granted, grant.target, grant.since] for grant in cap.grants],
    }


def decode_shared_cap(fields: Mapping[str, Any]) -> SharedCap:
    """`InvalidInput` for a document that is malformed."""
    require_known_version(fields)
    rows = fields.get("grants")
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise InvalidInput(("grants",), f"{str(rows)[:64]}", "a list of three numbers for each shard")
    grants = []
    for index, row in enumerate(rows):
        named = dict(zip(("granted", "target", "since"), row, strict=True))
        try:
            grants.append(
                Grant(not_negative(named, "granted"), not_negative(named, "target"), positive(named, "since"))
            )
        except InvalidInput as error:
            raise InvalidInput(("grants", index, *error.path), error.problem, error.expected) from None
    return SharedCap(identifier(fields.get("_id")), positive(fields, "rev"), positive(fields, "cap"), tuple(grants))
