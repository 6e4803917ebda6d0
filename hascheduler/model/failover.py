"""A change of leadership, as the new leader saw it, and its stored form: one document for each term."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import instant_or_none, integer, not_negative, text, wrong
from hascheduler.model.values.instants import WallMs


class Cause(StrEnum):
    """How the lease became free."""

    FIRST = "first"  # there was no leader before
    RELEASED = "released"  # the holder gave it back
    DIED = "died"  # there was proof that the holder's process is dead
    STOOD_STILL = "stood_still"  # no sign of the holder, and its process did not answer: followed before it lapsed
    LAPSED = "lapsed"  # it was not renewed in time, or its holder no longer trusted it and took it again
    DELETED = "deleted"  # it was deleted by hand


@dataclass(frozen=True, slots=True)
class Failover:
    """How ``holder`` came to lead in ``term``.

    ``gap_ms`` is from the last sign of the leader before to ``deciding_at_ms``, when the new one could decide; None if
    no such sign is known. Its first decision comes when something is due; None until then.
    """

    name: str
    term: int
    holder: str
    cause: Cause
    deciding_at_ms: WallMs
    gap_ms: int | None = None
    first_decision_at_ms: WallMs | None = None


def failover_id(name: str, term: object) -> dict[str, Any]:
    return {"shard": name, "term": term}


def encode_failover(failover: Failover) -> dict[str, Any]:
    fields = {**asdict(failover), "v": WRITTEN_VERSION, "cause": failover.cause.value}
    return {"_id": failover_id(fields.pop("name"), fields.pop("term")), **fields}


def decode_failover(fields: Mapping[str, Any]) -> Failover:
    """Return a report, without its gap if 0.2.0 wrote it; `InvalidInput` for a malformed document."""
    require_known_version(fields)
    id, cause = fields.get("_id"), text(fields, "cause")
    if not isinstance(id, Mapping) or cause not in set(Cause):
        raise InvalidInput(("cause",), wrong(fields, "cause"), " or ".join(Cause))
    gap_ms = None if fields.get("gap_ms") is None else not_negative(fields, "gap_ms")
    at_ms, first_ms = WallMs(integer(fields, "deciding_at_ms")), instant_or_none(fields, "first_decision_at_ms")
    name, term, holder = text(id, "shard"), integer(id, "term"), text(fields, "holder")
    return Failover(name, term, holder, Cause(cause), at_ms, gap_ms, first_ms)


def readable_failovers(documents: Iterable[Mapping[str, Any]]) -> list[Failover]:
    """Leave out what can't be read."""
    found: list[Failover] = []
    for document in documents:
        with suppress(InvalidInput):
            found.append(decode_failover(document))
    return found
