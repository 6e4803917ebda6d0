"""Stored definitions; and the rate limits that definitions and tenants hold."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, ConflictScope, Definition, KeyLimit, RateLimit
from hascheduler.model.limit_keys import KEY_LIMITS_MAX, checked_limit_key
from hascheduler.model.resources import decode_resources, encode_resources
from hascheduler.model.retry import (
    ATTEMPTS_MAX_DEFAULT,
    BACKOFF_FACTOR_DEFAULT,
    BACKOFF_MAX_MS_DEFAULT,
    BACKOFF_MS_DEFAULT,
    LOST_AS_FAILED,
    RetryPolicy,
)
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.uniqueness import UNIQUE_KEYS_MAX, OnDuplicate, Uniqueness
from hascheduler.model.values.fields import (
    Document,
    identifier,
    integer,
    not_negative,
    positive,
    positive_or_none,
    text_or_none,
)

DEFINITION_FIELDS = (
    "v", "rev", "max_concurrency", "attempts_max", "default_cost_ms", "conflict_group", "tier", "rate_limit",
    "resources", "backoff_ms", "backoff_factor", "backoff_max_ms", "timeout_ms", "total_timeout_ms",
    "conflict_scope", "lost_attempts_max", "owner", "key_limits", "unique",
)  # fmt: skip


def encode_definition(definition: Definition) -> dict[str, Any]:
    retry = definition.retry
    return {
        "_id": definition.name,
        "v": WRITTEN_VERSION,
        "rev": definition.rev,
        "max_concurrency": definition.max_concurrency,
        "attempts_max": retry.attempts_max,
        "default_cost_ms": definition.default_cost_ms,
        "conflict_group": definition.conflict_group,
        "conflict_scope": definition.conflict_scope.value,
        "tier": definition.tier,
        "rate_limit": encode_rate_limit(definition.rate_limit),
        "resources": encode_resources(definition.resources),
        "lost_attempts_max": retry.lost_attempts_max,
        "backoff_ms": retry.backoff_ms,
        "backoff_factor": retry.backoff_factor,
        "backoff_max_ms": retry.backoff_max_ms,
        "timeout_ms": definition.timeout_ms,
        "total_timeout_ms": definition.total_timeout_ms,
        "owner": definition.owner,
        "key_limits": [_encode_key_limit(limit) for limit in definition.key_limits],
        "unique": _encode_unique(definition.unique),
    }


def decode_definition(id: object, fields: Document) -> Definition:
    require_known_version(fields)
    return Definition(
        name=identifier(id),
        rev=integer(fields, "rev"),
        max_concurrency=positive_or_none(fields, "max_concurrency"),
        default_cost_ms=not_negative(fields, "default_cost_ms", default=DEFAULT_COST_MS_DEFAULT),
        conflict_group=text_or_none(fields, "conflict_group"),
        tier=positive_or_none(fields, "tier"),
        rate_limit=decode_rate_limit(fields, "rate_limit"),
        resources=decode_resources(fields.get("resources")),
        retry=RetryPolicy(
            attempts_max=integer(fields, "attempts_max", default=ATTEMPTS_MAX_DEFAULT),
            backoff_ms=not_negative(fields, "backoff_ms", default=BACKOFF_MS_DEFAULT),
            backoff_factor=not_negative(fields, "backoff_factor", default=BACKOFF_FACTOR_DEFAULT),
            backoff_max_ms=not_negative(fields, "backoff_max_ms", default=BACKOFF_MAX_MS_DEFAULT),
            lost_attempts_max=not_negative(fields, "lost_attempts_max", default=LOST_AS_FAILED),
        ),
        timeout_ms=positive_or_none(fields, "timeout_ms"),
        total_timeout_ms=positive_or_none(fields, "total_timeout_ms"),
        conflict_scope=_decode_conflict_scope(fields),
        owner=text_or_none(fields, "owner"),
        key_limits=_decode_key_limits(fields),
        unique=_decode_unique(fields.get("unique")),
    )


def _decode_conflict_scope(fields: Document) -> ConflictScope:
    scope = fields.get("conflict_scope")
    if scope is None:
        return ConflictScope.SHARED
    if not isinstance(scope, str) or scope not in set(ConflictScope):
        raise InvalidInput(("conflict_scope",), f"{str(scope)[:64]!r} is unknown", " or ".join(ConflictScope))
    return ConflictScope(scope)


def _encode_key_limit(limit: KeyLimit) -> dict[str, Any]:
    rate_limit = encode_rate_limit(limit.rate_limit)
    return {"key": limit.key, "max_concurrency": limit.max_concurrency, "rate_limit": rate_limit}


def _decode_key_limits(fields: Document) -> tuple[KeyLimit, ...]:
    rows = fields.get("key_limits")
    if rows is None:
        return ()
    if not isinstance(rows, list) or len(rows) > KEY_LIMITS_MAX or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput(("key_limits",), f"{str(rows)[:64]!r}", f"a list of at most {KEY_LIMITS_MAX} objects")
    limits = []
    for place, row in enumerate(rows):
        try:
            key = checked_limit_key(row.get("key"))
            limits.append(KeyLimit(key, positive_or_none(row, "max_concurrency"), decode_rate_limit(row, "rate_limit")))
        except InvalidInput as error:
            path = ("key_limits", place, *(error.path or ("key",)))
            raise InvalidInput(path, error.problem, error.expected) from None
    if len({limit.key for limit in limits}) < len(limits):
        raise InvalidInput(("key_limits",), "a key is there twice", "each key once")
    return tuple(limits)


def _encode_unique(unique: Uniqueness | None) -> dict[str, Any] | None:
    if unique is None:
        return None
    return {
        "by": list(unique.by),
        "on_duplicate": unique.on_duplicate.value,
        "period_ms": unique.period_ms,
        "max_wait_ms": unique.max_wait_ms,
    }


def _decode_unique(fields: object) -> Uniqueness | None:
    if fields is None:
        return None
    if not isinstance(fields, Mapping):
        raise InvalidInput(("unique",), f"a {type(fields).__name__}", "an object")
    keys, on_duplicate = fields.get("by"), fields.get("on_duplicate")
    if not isinstance(keys, list) or len(keys) > UNIQUE_KEYS_MAX:
        raise InvalidInput(("unique", "by"), f"{str(keys)[:64]!r}", f"a list of at most {UNIQUE_KEYS_MAX} keys")
    if not isinstance(on_duplicate, str) or on_duplicate not in set(OnDuplicate):
        raise InvalidInput(
            ("unique", "on_duplicate"), f"{str(on_duplicate)[:64]!r} is unknown", " or ".join(OnDuplicate)
        )
    try:
        by = tuple(checked_limit_key(key) for key in keys)
        period_ms, max_wait_ms = positive_or_none(fields, "period_ms"), positive_or_none(fields, "max_wait_ms")
    except InvalidInput as error:
        raise InvalidInput(("unique", *(error.path or ("by",))), error.problem, error.expected) from None
    return Uniqueness(by, OnDuplicate(on_duplicate), period_ms, max_wait_ms)


def encode_rate_limit(limit: RateLimit | None) -> dict[str, int] | None:
    return None if limit is None else {"count": limit.count, "per_ms": limit.per_ms}


def decode_rate_limit(fields: Document, name: str) -> RateLimit | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidInput((name,), f"a {type(value).__name__}", "an object of count and per_ms")
    return RateLimit(positive(value, "count"), positive(value, "per_ms"))
