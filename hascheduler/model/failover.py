"""A change of leadership, as the new leader saw it: how long nobody decided, why, and what came late because of it.

::

    last sign ──► detected ──► won ──► began ──► deciding ──► first decision ──► told
     of the old    the lease    the     term_began  the stream    in the journal      the backlog
     leader        is free      lease   is written  delivered it  (if one was due)    is decided

Every instant is on the wall clock of the replica that took over, and their distances are those of its monotonic clock,
whatever was done to the wall clock meanwhile. One is not: ``last_decision_at_ms`` is what the old leader's own clock
said when it wrote its last decision, and ``gap_ms``, which begins there, is as true as the two clocks are equal.
"""

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.instants import WallMs


class Cause(StrEnum):
    """How the lease became free."""

    FIRST = "first"
    """Nobody had led before."""
    RELEASED = "released"
    """The holder gave it back."""
    DIED = "died"
    """There was proof that the holder's process is dead."""
    LAPSED = "lapsed"
    """It was not renewed for its duration; or the new leader had held it itself, and lost trust in it."""
    DELETED = "deleted"
    """Somebody removed it."""


class FailoverEnd(StrEnum):
    """Why the account was closed."""

    CAUGHT_UP = "caught_up"
    """All that had come due while nobody decided was decided."""
    STILL_BEHIND = "still_behind"
    """That took too long to wait for; the counts are those so far."""
    TERM_ENDED = "term_ended"
    """The term was over before."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What became of all that was due when the new leader could decide.

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
    entry before; None where there was none. ``last_sign_at_ms`` is when a renewal or decision of theirs last arrived
    here; None where this replica was not there to see it. ``deciding_at_ms`` is None where the term ended before;
    ``first_decision_at_ms`` and ``first_dispatch_at_ms`` are where nothing was due, or nothing could run.
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
        """From the old leader's last sign of life to knowing that the lease is free.

        Where this replica saw no sign: from its last decision, by its clock.
        """
        since_ms = self.last_decision_at_ms if self.last_sign_at_ms is None else self.last_sign_at_ms
        return _span(since_ms, self.detected_at_ms)

    @property
    def takeover_ms(self) -> int | None:
        """From knowing to deciding."""
        return _span(self.detected_at_ms, self.deciding_at_ms)

    @property
    def first_decision_ms(self) -> int | None:
        """From deciding to having decided something that was due."""
        return _span(self.deciding_at_ms, self.first_decision_at_ms)

    @property
    def gap_ms(self) -> int | None:
        """From the last decision before to the first one after."""
        return _span(self.last_decision_at_ms, self.first_decision_at_ms)


def _span(from_ms: int | None, to_ms: int | None) -> int | None:
    """Never negative, which the clocks of two machines could make it."""
    return None if from_ms is None or to_ms is None else max(to_ms - from_ms, 0)
