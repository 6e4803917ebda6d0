"""Stored reports of changes of leadership, one document for each term of a shard."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.failover import Cause, Failover
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import integer, not_negative, text
from hascheduler.model.values.instants import WallMs


def encode_failover(failover: Failover) -> dict[str, Any]:
    return {
        "_id": {"shard": failover.shard, "term": failover.term},
        "v": WRITTEN_VERSION,
        "holder": failover.holder,
        "cause": failover.cause.value,
        "deciding_at_ms": failover.deciding_at_ms,
        "gap_ms": failover.gap_ms,
        "first_decision_ms": failover.first_decision_ms,
    }


def decode_failover(fields: Mapping[str, Any]) -> Failover:
    """Return a report, without its spans if 0.2.0 wrote it; `InvalidInput` for a malformed document."""
    require_known_version(fields)
    id, cause = fields.get("_id"), text(fields, "cause")
    if not isinstance(id, Mapping) or cause not in set(Cause):
        raise InvalidInput(("cause",), f"{cause!r} of {id!r}", "a cause that this release knows")
    gap_ms, first_decision_ms = (
        None if fields.get(name) is None else not_negative(fields, name) for name in ("gap_ms", "first_decision_ms")
    )
    return Failover(
        text(id, "shard"),
        integer(id, "term"),
        text(fields, "holder"),
        Cause(cause),
        WallMs(integer(fields, "deciding_at_ms")),
        gap_ms,
        first_decision_ms,
    )
