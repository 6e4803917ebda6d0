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

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.values.instants import WallMs


class OnDuplicate(StrEnum):
    KEEP_FIRST = "keep_first"
    REPLACE = "replace"
    DEBOUNCE = "debounce"


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The key that a new job is to hold, and the rule by which it gets it.

    ``period_ms`` is None for ``replace`` and may be for ``keep_first``; ``max_wait_ms`` is that of ``debounce``.
    ``since_ms`` is when the first job of its row was submitted, of those that it replaces; None: it is the first.
    """

    digest: str
    on_duplicate: OnDuplicate
    period_ms: int | None = None
    max_wait_ms: int | None = None
    since_ms: WallMs | None = None

    @property
    def replaces(self) -> bool:
        """Whether the new job may be in the place of another one."""
        return self.on_duplicate is not OnDuplicate.KEEP_FIRST

    def not_before_ms(self, own_ms: WallMs | None, submitted_at_ms: WallMs) -> WallMs | None:
        """Return when the job may begin that was submitted then; ``own_ms`` is what its submit says."""
        if self.on_duplicate is not OnDuplicate.DEBOUNCE or self.period_ms is None or self.max_wait_ms is None:
            return own_ms
        since_ms = submitted_at_ms if self.since_ms is None else self.since_ms
        return WallMs(max(own_ms or 0, min(submitted_at_ms + self.period_ms, since_ms + self.max_wait_ms)))
