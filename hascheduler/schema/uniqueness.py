"""The rule by which submitted jobs of a definition are duplicates of each other; see `hascheduler.model.limit_keys`."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict

from hascheduler.model.limit_keys import (
    KEY_CHARACTERS_MAX,
    LIMIT_KEY_PATTERN,
    LimitKeys,
    OnDuplicate,
    UniqueKey,
    checked_limit_key,
)
from hascheduler.schema.forms import WEEK_MS, Listed, checked, each_once, span, written_span
from hascheduler.schema.noun import Part, together

UNIQUE_KEYS_MAX = 4
"""The most keys of one definition."""
MAX_WAIT_PERIODS = 10
"""The longest wait of a debounced job, in periods, unless its definition sets it."""


LimitKey = Annotated[
    str,
    AfterValidator(lambda key: checked(checked_limit_key, key)),
    Field(json_schema_extra={"pattern": f"^({LIMIT_KEY_PATTERN})$", "maxLength": KEY_CHARACTERS_MAX}),
]


class Uniqueness(Part):
    """When submitted jobs of one tenant are duplicates of each other, and what happens to a duplicate.

    Fires, triggers, backfills and retries are exempt.
    """

    always_stored = ("by", "on_duplicate")

    by: Annotated[tuple[LimitKey, ...], Listed, AfterValidator(each_once)] = Field(
        default=(), max_length=UNIQUE_KEYS_MAX, examples=[["payload.customer"]]
    )
    """The keys at which duplicates have equal values: `payload.<field>`, `label.<key>` or `target`, as in
    `key_limits`; an empty list: all jobs of the definition are duplicates"""
    on_duplicate: Annotated[OnDuplicate, Strict(False)] = Field(default=OnDuplicate.KEEP_FIRST, examples=["debounce"])
    """keep_first: the existing job is returned; replace: the new job replaces the existing one, which is cancelled
    if it was never dispatched; debounce: as replace, and the new job waits for `period`"""
    period_ms: Annotated[int, span(1, WEEK_MS)] | None = Field(default=None, examples=["30s"])
    """keep_first: how long after its submission a job has duplicates, even if it has ended; null: until it has
    ended. debounce: how long no duplicate must arrive before the job may start"""
    max_wait_ms: Annotated[int, span(1, MAX_WAIT_PERIODS * WEEK_MS)] | None = Field(default=None, examples=["5m"])
    """debounce: how long duplicates may delay a job at most; null: 10 periods"""

    def check_request(self, given: Mapping[str, Any]) -> None:
        kind = self.on_duplicate
        if kind is OnDuplicate.REPLACE and self.period_ms is not None:
            raise together(("period",), type(self), "has no effect with replace", "null, or debounce")
        if kind is not OnDuplicate.DEBOUNCE and self.max_wait_ms is not None:
            raise together(("max_wait",), type(self), f"has no effect with {kind}", "null, or debounce")
        if kind is OnDuplicate.DEBOUNCE and self.period_ms is None:
            raise together(("period",), type(self), "is required for debounce", 'a span such as "30s"')
        if self.max_wait_ms is not None and self.period_ms is not None and self.max_wait_ms < self.period_ms:
            longest = written_span(given, "max_wait", self.max_wait_ms)
            period = written_span(given, "period", self.period_ms)
            problem = f"the max_wait {longest} is shorter than the period {period}"
            raise together(("max_wait",), type(self), problem, "a max_wait at least as long")

    def completed(self) -> "Uniqueness":
        if self.on_duplicate is not OnDuplicate.DEBOUNCE or self.max_wait_ms is not None or self.period_ms is None:
            return self
        return self.model_copy(update={"max_wait_ms": self.period_ms * MAX_WAIT_PERIODS})

    def key(self, tenant: str, definition: str, values: LimitKeys) -> UniqueKey:
        """Return the key of a job that has these values at the keys of ``by``."""
        # Escaped as in JSON: a value may hold half a surrogate pair.
        digest = sha256(json.dumps([tenant, definition, sorted(values)]).encode()).hexdigest()
        return UniqueKey(digest, self.on_duplicate, self.period_ms, self.max_wait_ms)
