"""What makes submitted jobs of a definition duplicates of each other, and what becomes of a duplicate.

Jobs of one tenant and definition that have the same values at all keys of ``by`` (the keys of
`hascheduler.model.limit_keys`) have one *unique key*; the job that holds it is stored with it. A later submit under it
meets that holder:

============== ======================================== ==========================================================
on_duplicate   the holder keeps its key                 else
============== ======================================== ==========================================================
``keep_first`` until it has ended, and with a           it gives the key away, and the new job is submitted
               ``period`` so long after its submission
``replace``    never                                    never dispatched: it is cancelled, the new job is in its
                                                        place; else it goes on, and the new job waits beside it
``debounce``   never                                    as ``replace``, and the new job waits for a ``period``;
                                                        once a row of such jobs has waited for ``max_wait``, the
                                                        holder goes on, and the new job begins another row
============== ======================================== ==========================================================

The key is released lazily, by the submit that takes it: no move of a job touches it.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from hascheduler.model.limit_keys import LimitKeys
from hascheduler.model.values.instants import WallMs

UNIQUE_KEYS_MAX = 4
"""The most keys of one definition."""
MAX_WAIT_PERIODS = 10
"""The longest wait of a debounced job, unless its definition says it, in periods."""


class OnDuplicate(StrEnum):
    KEEP_FIRST = "keep_first"
    REPLACE = "replace"
    DEBOUNCE = "debounce"


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """``by`` empty: there is one such job of a tenant. ``period_ms`` is None for ``replace`` and may be for
    ``keep_first``; ``max_wait_ms`` is that of ``debounce``."""

    by: tuple[str, ...] = ()
    on_duplicate: OnDuplicate = OnDuplicate.KEEP_FIRST
    period_ms: int | None = None
    max_wait_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The key that a new job is to hold, and the rule by which it gets it.

    ``since_ms`` is when the first job of its row was submitted, of those that it replaces; None: it is the first.
    """

    digest: str
    rule: Uniqueness
    since_ms: WallMs | None = None

    @property
    def replaces(self) -> bool:
        """Whether the new job may be in the place of another one."""
        return self.rule.on_duplicate is not OnDuplicate.KEEP_FIRST

    def not_before_ms(self, own_ms: WallMs | None, submitted_at_ms: WallMs) -> WallMs | None:
        """When the job may begin that was submitted then; ``own_ms`` is what its submit says."""
        rule = self.rule
        if rule.on_duplicate is not OnDuplicate.DEBOUNCE or rule.period_ms is None or rule.max_wait_ms is None:
            return own_ms
        since_ms = submitted_at_ms if self.since_ms is None else self.since_ms
        return WallMs(max(own_ms or 0, min(submitted_at_ms + rule.period_ms, since_ms + rule.max_wait_ms)))


def unique_key(rule: Uniqueness, tenant: str, definition: str, values: LimitKeys) -> UniqueKey:
    """The key of a job that has these values at the keys of ``rule``."""
    # Escaped, as json does: a value may hold half of a surrogate pair.
    return UniqueKey(sha256(json.dumps([tenant, definition, sorted(values)]).encode()).hexdigest(), rule)
