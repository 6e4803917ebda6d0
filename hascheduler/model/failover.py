"""A change of leadership, as the new leader saw it: how long no leader decided, why, and what came late because of it.

::

    last sign ──► detected ──► won ──► began ──► deciding ──► first decision ──► told
     of the old    the lease    the     term_began  the stream    in the journal      the backlog
     leader        is free      lease   is written  delivered it  (if one was due)    is decided

All instants but one are on the wall clock of the replica that took over, and their distances are those of its monotonic
clock, even if the wall clock was set meanwhile. Only ``last_decision_at_ms`` is by the old leader's clock, and
``gap_ms``, which begins there, is as exact as the two clocks agree.
"""

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.values.instants import WallMs


class Cause(StrEnum):
    """How the lease became free."""

    FIRST = "first"
    """There was no leader before."""
    RELEASED = "released"
    """The holder released it."""
    DIED = "died"
    """There was proof that the holder's process is dead."""
    STOOD_STILL = "stood_still"
    """Nothing of the holder came by, and its process did not answer; it was followed before its lease ran out."""
    LAPSED = "lapsed"
    """It was not renewed for its duration; or the new leader had held it itself, and no longer trusted it."""
    DELETED = "deleted"
    """The stored lease was deleted by hand."""


class FailoverEnd(StrEnum):
    """Why the report of a failover was completed."""

    CAUGHT_UP = "caught_up"
    """Everything that came due while no leader decided is decided."""
    STILL_BEHIND = "still_behind"
    """The backlog was not decided within the time limit; the counts are those so far."""
    TERM_ENDED = "term_ended"
    """The term ended first."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The outcome of everything that was due when the new leader could decide.

    ``fires_late`` fired, the worst of them ``worst_lag_ms`` after it was due; nominal times were ``coalesced`` into a
    later fire, ``missed`` their misfire grace or were ``skipped`` as a job was in the way; ``requeued`` attempts were
    taken from their processors.
    """

    fires_late: int = 0
    worst_lag_ms: int = 0
    coalesced: int = 0
    missed: int = 0
    skipped: int = 0
    requeued: int = 0


NO_BACKLOG = Backlog()


@dataclass(frozen=True, slots=True)
class Failover:
    """How ``holder`` came to lead the shard in ``term``.

    ``began_seq`` is where the journal has the ``term_began``, ``previous_term`` and ``previous_holder`` are of the
    entry before; None if there was none. ``last_sign_at_ms`` is when a renewal or decision of that leader last arrived
    here; None if this replica was not running then. ``deciding_at_ms`` is None if the term ended before;
    ``first_decision_at_ms`` and ``first_dispatch_at_ms`` are None if nothing was due, or nothing could run.
    """

    shard: str
    term: int
    holder: str
    cause: Cause
    detected_at_ms: WallMs
    won_at_ms: WallMs
    began_at_ms: WallMs
    began_seq: int
    told_at_ms: WallMs
    ended: FailoverEnd
    previous_term: int | None = None
    previous_holder: str | None = None
    last_sign_at_ms: WallMs | None = None
    last_decision_at_ms: WallMs | None = None
    deciding_at_ms: WallMs | None = None
    first_decision_at_ms: WallMs | None = None
    first_dispatch_at_ms: WallMs | None = None
    reapplied_entries: int = 0
    reapplied_decisions: int = 0
    backlog: Backlog = NO_BACKLOG

    @property
    def detection_ms(self) -> int | None:
        """From the old leader's last sign of life to the detection that the lease is free.

        If this replica saw no sign: from the old leader's last decision, by the old leader's clock.
        """
        since_ms = self.last_decision_at_ms if self.last_sign_at_ms is None else self.last_sign_at_ms
        return _span(since_ms, self.detected_at_ms)

    @property
    def takeover_ms(self) -> int | None:
        """From the detection to the first moment when the new leader could decide."""
        return _span(self.detected_at_ms, self.deciding_at_ms)

    @property
    def first_decision_ms(self) -> int | None:
        """From the first moment when it could decide to its first decision about something due."""
        return _span(self.deciding_at_ms, self.first_decision_at_ms)

    @property
    def gap_ms(self) -> int | None:
        """From the last decision of the old leader to the first one of the new leader."""
        return _span(self.last_decision_at_ms, self.first_decision_at_ms)


def _span(from_ms: int | None, to_ms: int | None) -> int | None:
    """Never negative, even if the clocks of two machines disagree."""
    return None if from_ms is None or to_ms is None else max(to_ms - from_ms, 0)
