"""Since when the lease is free, and why, by what this replica sees of the lease and of its holder.

::

                      no lease, an empty holder, proof of death, a holder
                      that stands still, a challenge by this replica's own clock
        ┌──────┐ ─────────────────────────────────────────────▶ ┌────────┐
        │ held │                                                │ vacant │   since its first reason;
        └──────┘ ◀───────────────────────────────────────────── └────────┘   its cause is the latest
                      another replica renews or takes it

This replica's own name in the lease is no holder: a term that has not begun in the journal is none, whichever replica
won it.
"""

from dataclasses import dataclass

from hascheduler.model.failover import Cause
from hascheduler.model.journal import JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.values.instants import MonoMs


@dataclass(frozen=True, slots=True)
class LeaderlessInterval:
    """``last_sign_at`` is when a leader before last showed life here; None: never since this replica's start."""

    cause: Cause
    since: MonoMs
    last_sign_at: MonoMs | None


class LeaderlessTracker:
    """Owner of why the lease is free, as far as known. ``live``: the stream is not behind, what it brings is new."""

    def __init__(self, replica_id: str) -> None:
        self._replica_id = replica_id
        self._lease: LeaseRecord | None = None
        self._head: JournalHead | None = None
        self._before: JournalHead | None = None
        self._dead = ""
        self._cause: Cause | None = None
        self._since = MonoMs(0)
        self._last_sign_at: MonoMs | None = None

    # What this replica sees

    def lease_known(self, record: LeaseRecord | None, now: MonoMs, *, live: bool) -> None:
        """The newest version that is known here; it may be the same as before."""
        before, self._lease = self._lease, record
        if record is None:
            self._open(Cause.DELETED, now)
        elif not record.holder:
            self._open(Cause.RELEASED, now)
        elif record.holder == self._dead:
            self._open(Cause.DIED, now)
        elif record != before:
            if record.holder != self._replica_id:
                self._cause = None
            self._sign(now, live=live and before is not None)

    def journal_seen(self, head: JournalHead, now: MonoMs, *, live: bool) -> None:
        before = self._head
        if before is not None and head.seq <= before.seq:
            return
        self._head = head
        if before is not None and before.term < head.term:
            self._before = before
        self._sign(now, live=live and before is not None)

    def holder_died(self, holder: str, now: MonoMs) -> None:
        self._dead = holder
        if self._lease is not None and self._lease.holder == holder:
            self._open(Cause.DIED, now)

    def holder_stands_still(self, holder: str, now: MonoMs) -> None:
        if self._lease is not None and self._lease.holder == holder and self._cause is None:
            self._open(Cause.STOOD_STILL, now)

    # What this replica does

    def challenged(self, expected: LeaseRecord | None, now: MonoMs) -> None:
        """It is about to take the lease, which is as ``expected``."""
        if expected is None:
            self._open(Cause.DELETED, now)
        elif not expected.holder:
            self._open(Cause.RELEASED, now)
        elif expected.holder == self._dead:
            self._open(Cause.DIED, now)
        elif self._cause is None:
            self._open(Cause.LAPSED, now)

    def won(self) -> LeaderlessInterval:
        """What its challenge has ended, if the term begins."""
        is_first = self._cause is Cause.DELETED and self._head is None
        return LeaderlessInterval(
            Cause.FIRST if is_first else self._cause or Cause.LAPSED, self._since, self._last_sign_at
        )

    def filled(self) -> None:
        """The term has begun."""
        self._cause = None

    def gave_up(self, now: MonoMs) -> None:
        """The term is over."""
        if self._lease is not None and self._lease.holder == self._replica_id:
            self._open(Cause.LAPSED, now)

    def before(self, term: int) -> JournalHead | None:
        """The newest entry of the term before that one, as far as the stream has delivered."""
        return self._head if self._head is not None and self._head.term < term else self._before

    def _open(self, cause: Cause, now: MonoMs) -> None:
        if self._cause is None:
            self._since = now
        self._cause = cause

    def _sign(self, now: MonoMs, *, live: bool) -> None:
        if live and self._cause is None:
            self._last_sign_at = now
