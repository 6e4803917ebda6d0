"""The documents of a tenant that move from one database to another: their keys and versions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from hascheduler.model.job import LIVE, JobState
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import WallMs, from_datetime, to_datetime

MARK = "copy"
"""The field of a copied document that names the copy; later writes to the document keep it."""
VERSION_FIELDS: Mapping[str, Sequence[str]] = {
    "jobs": ("submitted_at_ms", "rev", "state", "idempotency_key", "unique_key", MARK),
    "schedules": ("created_at_ms", "rev", "cursor_ms", "failures", MARK),
    "verdicts": ("schedule_created_at_ms", "last_ms", MARK),
    "buckets": ("at", MARK),
}
"""The collections, and the fields that `version_of` reads."""
KEYS = ("idempotency_key", "unique_key")
"""The fields of a job that no other job may have with the same value."""


class Key(NamedTuple):
    """A document: its collection (one of `VERSION_FIELDS`) and its id."""

    collection: str
    id: str


class Version(NamedTuple):
    """How new a document is: by its creation (a name can be used again), then by ``rev``, then by ``cursor_ms``.

    ``rest`` stands for what changes without any of these. ``mark`` names the copy that the document is; 0 for none.
    """

    made_ms: int
    rev: int
    cursor_ms: int
    rest: int
    is_live: bool
    mark: int = 0

    def is_after(self, other: "Version | None") -> bool:
        return other is None or self[:3] > other[:3]

    def is_same(self, other: "Version | None") -> bool:
        return other is not None and self[:4] == other[:4]


def version_of(collection: str, document: Mapping[str, Any]) -> Version:
    """Return the version of a stored document, whatever people wrote into it."""
    number = {name: _number(document.get(name)) for name in VERSION_FIELDS[collection]}
    mark = number[MARK]
    match collection:
        case "jobs":
            keys = sum(place for place, name in enumerate(KEYS, 1) if document.get(name))
            return Version(number["submitted_at_ms"], number["rev"], 0, keys, document.get("state") in LIVE, mark)
        case "schedules":
            age = number["created_at_ms"], number["rev"], number["cursor_ms"]
            return Version(*age, number["failures"], True, mark)
        case "verdicts":
            return Version(number["schedule_created_at_ms"], 0, 0, number["last_ms"], False, mark)
        case _:
            at = document.get("at")
            return Version(0, 0, from_datetime(at) if isinstance(at, datetime) else 0, 0, False, mark)


def marked(document: Mapping[str, Any], mark: int) -> dict[str, Any]:
    """Return the document as that copy, or as no copy if ``mark`` is 0."""
    unmarked = {name: value for name, value in document.items() if name != MARK}
    return {**unmarked, MARK: mark} if mark else unmarked


def without_keys(job: Mapping[str, Any], job_retention_ms: int) -> dict[str, Any]:
    """Return a job as it is stored if another job has its key: cancelled, as of its submission."""
    at_ms = WallMs(_number(job.get("submitted_at_ms")))
    return {
        **{name: value for name, value in job.items() if name not in KEYS},
        "state": JobState.CANCELLED.value,
        "rev": _number(job.get("rev")) + 1,
        "error": "another job has its key",
        "finished_at_ms": at_ms,
        "expire_at": to_datetime(at_ms + job_retention_ms),
    }


def _number(value: object) -> int:
    return value if is_integer(value) else 0
