"""Stored reports of changes of leadership, one document for each term of a shard."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.failover import Backlog, Cause, Failover, FailoverEnd
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import instant_or_none, integer, not_negative, text, text_or_none, wrong
from hascheduler.model.values.instants import WallMs

Word = TypeVar("Word", bound=StrEnum)

_BACKLOG = ("fires_late", "worst_lag_ms", "coalesced", "missed", "skipped", "requeued")


def failover_id(shard: str, term: int) -> dict[str, Any]:
    return {"shard": shard, "term": term}


def encode_failover(failover: Failover) -> dict[str, Any]:
    fields = asdict(failover)
    backlog = fields.pop("backlog")
    id = failover_id(fields.pop("shard"), fields.pop("term"))
    return {
        "_id": id,
        "v": WRITTEN_VERSION,
        **fields,
        # Releases before 0.3.0 read no cause that they don't know; to them such a lease has lapsed.
        "cause": (Cause.LAPSED if failover.cause is Cause.STOOD_STILL else failover.cause).value,
        "stood_still": failover.cause is Cause.STOOD_STILL,
        "ended": failover.ended.value,
        **backlog,
    }


def decode_failover(fields: Mapping[str, Any]) -> Failover:
    """`InvalidInput` for a malformed document, or one of a form that this release does not know."""
    require_known_version(fields)
    id = fields.get("_id")
    if not isinstance(id, Mapping):
        raise InvalidInput(("_id",), "not an object of shard and term")
    return Failover(
        shard=text(id, "shard"),
        term=integer(id, "term"),
        holder=text(fields, "holder"),
        cause=Cause.STOOD_STILL if fields.get("stood_still") is True else _word(fields, "cause", Cause),
        detected_at_ms=WallMs(integer(fields, "detected_at_ms")),
        won_at_ms=WallMs(integer(fields, "won_at_ms")),
        began_at_ms=WallMs(integer(fields, "began_at_ms")),
        began_seq=integer(fields, "began_seq"),
        told_at_ms=WallMs(integer(fields, "told_at_ms")),
        ended=_word(fields, "ended", FailoverEnd),
        previous_term=None if fields.get("previous_term") is None else integer(fields, "previous_term"),
        previous_holder=text_or_none(fields, "previous_holder"),
        last_sign_at_ms=instant_or_none(fields, "last_sign_at_ms"),
        last_decision_at_ms=instant_or_none(fields, "last_decision_at_ms"),
        deciding_at_ms=instant_or_none(fields, "deciding_at_ms"),
        first_decision_at_ms=instant_or_none(fields, "first_decision_at_ms"),
        first_dispatch_at_ms=instant_or_none(fields, "first_dispatch_at_ms"),
        reapplied_entries=not_negative(fields, "reapplied_entries"),
        reapplied_decisions=not_negative(fields, "reapplied_decisions"),
        backlog=Backlog(*(not_negative(fields, name) for name in _BACKLOG)),
    )


def _word(fields: Mapping[str, Any], name: str, words: type[Word]) -> Word:
    value = fields.get(name)
    if not isinstance(value, str) or value not in set(words):
        raise InvalidInput((name,), wrong(fields, name), " or ".join(words))
    return words(value)
