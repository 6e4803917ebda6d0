"""Stored pauses."""

from typing import Any

from hascheduler.model.pause import StandingPause
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier, integer, not_negative, text, text_or_none
from hascheduler.model.values.instants import WallMs

PAUSE_FIELDS = ("v", "rev", "since_ms", "by", "because", "schedules_only")


def encode_pause(pause: StandingPause) -> dict[str, Any]:
    return {
        "_id": pause.id,
        "v": WRITTEN_VERSION,
        "rev": pause.rev,
        "since_ms": pause.since_ms,
        "by": pause.by,
        "because": pause.because,
        "schedules_only": pause.schedules_only,
    }


def decode_pause(id: object, fields: Document) -> StandingPause:
    require_known_version(fields)
    return StandingPause(
        id=identifier(id),
        rev=integer(fields, "rev"),
        since_ms=WallMs(not_negative(fields, "since_ms")),
        by=text(fields, "by"),
        because=text_or_none(fields, "because"),
        schedules_only=bool(fields.get("schedules_only")),
    )
