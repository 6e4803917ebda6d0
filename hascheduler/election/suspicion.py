"""Judge whether the leader has stalled for so long that others need not wait for its lease. Pure: signs and time in.

::

    followed ── silent for a part of the threshold ──▶ doubted ── for all of it, by two witnesses ──▶ its lease is
        ▲                                                 │                                            challenged
        └──────────────────── any sign of it ─────────────┘

The two witnesses:

1. *The stream.* It brought nothing of the leader (beats, renewals, journal entries), though it has brought all that was
   written up to a threshold after its last sign: a beat of this replica that was sent then has come back. A replica
   that is cut off, starved or paused itself sends no beat, or sees none come back, so it proves nothing; if its own
   beats were interrupted, the count begins again.
2. *Its process.* It has greeted this replica before, and now leaves one connection after the other without a greeting.

The threshold grows with how late the leaders' signs were recently: a machine that is short of CPU gets more patience.

A wrong suspicion is harmless, as the journal fences the old leader, and is bounded all the same. Each replica counts
every early takeover that it sees, its own or another's. If the old leader is back before it was silent for another
threshold, and beats of any replica were late around that time, the suspicion was wrong: the replica suspects no leader
for ten minutes, after the next wrong suspicion for twenty, up to two hours and forty minutes. If only the leader
stalled while all else was on time, the suspicion was right, however soon the leader is back; after three of those in
ten minutes it counts as wrong too. An old leader does not suspect its successor for a minute, so no two replicas depose
each other in a circle.

Owner: `LeaderSuspicion` of the signs, the lateness and the budget. All instants are of this replica's monotonic clock.
"""

from collections import deque
from enum import StrEnum

from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs

SIGNS_MIN = 3
"""The silence of a leader counts only after this many signs of it."""
UNANSWERED_MIN = 2
"""How many connections in a row must go without a greeting: a single one may have come at a moment without CPU."""
_LATE_NUM, _LATE_DEN = 3, 2
"""A sign is late after one and a half retry periods: beats and renewals come once in each."""
_PATIENCE_NUM, _PATIENCE_DEN = 7, 4
"""The threshold is at least this many times the retry period, and the longest recent time between two signs."""
_DOUBT_NUM, _DOUBT_DEN = 5, 8
"""The part of the threshold after which both witnesses are asked; beats on time never reach it."""
_RECENT_MS = 600_000
_REST_MS = 600_000
_REST_DOUBLINGS_MAX = 4
_BACK_AT_ONCE_MAX = 3
_PROBATION_MS = 60_000
_SPARED_MS = 60_000


class Comeback(StrEnum):
    """The judgement on a suspicion, once the old leader is soon back."""

    RIGHT = "right"
    WRONG = "wrong"


class LeaderSuspicion:
    """Owner of the signs of one leader and of the budget of suspicions; ``standstill_after_ms`` 0 suspects nothing."""

    def __init__(self, candidate_id: str, standstill_after_ms: int, retry_period_ms: int) -> None:
        self._candidate_id = candidate_id
        self._after_ms = standstill_after_ms
        self._retry_ms = retry_period_ms
        self._lease: LeaseRecord | None = None
        self._lease_changed_at = MonoMs(0)
        self._signs = 0
        self._last_sign_at = MonoMs(0)
        self._silent_since = MonoMs(0)
        self._seen_through: MonoMs | None = None
        self._greeted = False
        self._unanswered = 0
        # The longest times between two signs, newest last, each shorter than those before it.
        self._gaps: deque[tuple[MonoMs, int]] = deque()
        self._beat_at: dict[str, MonoMs] = {}
        self._late_at: MonoMs | None = None
        # Of early takeovers: the last, and when leaders were back soon after theirs.
        self._followed = ""
        self._followed_at = MonoMs(0)
        self._back_at: deque[MonoMs] = deque()
        self._on_probation = False
        self._wrong = 0
        self._rest_until = MonoMs(0)
        self._spared = ""
        self._spared_until = MonoMs(0)

    # What is seen

    def lease_seen(self, lease: LeaseRecord | None, now: MonoMs) -> None:
        """Take the newest known version of the lease; it may be the same as before."""
        before, self._lease = self._lease, lease
        if lease == before:
            return
        holder_before = before.holder if before else ""
        before_term = before.term if before else 0
        holder = lease.holder if lease else ""
        if holder == holder_before:
            self._sign(now)
        else:
            if before is not None and lease is not None and self._is_early(before, lease, now):
                self._followed, self._followed_at = before.holder, now
            if holder_before == self._candidate_id and lease is not None and lease.term > before_term:
                self._spared, self._spared_until = holder, MonoMs(now + _SPARED_MS)
            self._signs, self._greeted, self._unanswered = 0, False, 0
            self._last_sign_at = self._silent_since = now
        self._lease_changed_at = now

    def sign_seen(self, replica_id: str, now: MonoMs) -> Comeback | None:
        """Take a beat or a journal entry of that replica from the stream.

        Return a judgement if this brings an old leader back, or corrects the judgement made when it came back.
        """
        if self._lease is not None and replica_id == self._lease.holder:
            self._sign(now)
        before = self._beat_at.get(replica_id)
        self._beat_at[replica_id] = now
        if replica_id == self._followed:
            self._followed = ""
            return self._came_back(now) if now - self._followed_at <= self.threshold_ms(now) else None
        if before is None or now - before <= self._late_after_ms or not self._is_live(now):
            return None
        self._late_at = now
        if self._on_probation and now - self._back_at[-1] <= _PROBATION_MS:
            self._was_wrong(now)
            return Comeback.WRONG
        return None

    def gone(self, replica_id: str) -> None:
        """Forget a replica that has left, or whose record has expired."""
        self._beat_at.pop(replica_id, None)

    def stream_seen(self, seen_through_ms: MonoMs | None, now: MonoMs) -> None:
        """Take how far the stream is complete: everything written before ``seen_through_ms`` has been seen."""
        known, self._seen_through = self._seen_through, seen_through_ms
        if seen_through_ms is not None and (known is None or seen_through_ms - known > self._late_after_ms):
            # This replica's own beats were interrupted: the same may have interrupted the leader's.
            self._silent_since = now

    def restarted(self) -> None:
        """Forget the signs, as a snapshot follows: what it brings is old."""
        self._signs = 0
        self._beat_at.clear()
        self._followed = ""
        self._seen_through = None

    def greeted(self) -> None:
        """Count a connection that the leader's process answered."""
        self._greeted, self._unanswered = True, 0

    def unanswered(self) -> None:
        """Count a connection to the leader's process that got no greeting in time."""
        self._unanswered += 1

    # The judgement

    @property
    def has_greeted(self) -> bool:
        return self._greeted

    def is_watching(self, now: MonoMs) -> bool:
        """Return True if there is a leader that may be suspected, now or later."""
        lease = self._lease
        return (
            self._after_ms > 0
            and lease is not None
            and lease.holder not in ("", self._candidate_id)
            and bool(lease.endpoint)
            and not (lease.holder == self._spared and now < self._spared_until)
            and now >= self._rest_until
        )

    def doubtful_in_ms(self, now: MonoMs) -> int | None:
        """Return how soon its silence is long enough to ask both witnesses; None if not as things stand."""
        if not self.is_watching(now) or self._signs < SIGNS_MIN:
            return None
        return max(self._silent_since + self.threshold_ms(now) * _DOUBT_NUM // _DOUBT_DEN - now, 0)

    def suspicious_in_ms(self, now: MonoMs) -> int:
        """Return how soon it has been silent for the whole threshold, if it stays silent."""
        return max(self._silent_since + self.threshold_ms(now) - now, 0)

    def is_stalled(self, now: MonoMs) -> bool:
        """Return True if both witnesses agree: the lease may be challenged, if it has not changed since."""
        return (
            self.doubtful_in_ms(now) == 0
            and self._seen_through is not None
            and self._seen_through - self._silent_since >= self.threshold_ms(now)
            and self._greeted
            and self._unanswered >= UNANSWERED_MIN
        )

    def silent_ms(self, now: MonoMs) -> int:
        """Return the time since the last sign of the leader."""
        return now - self._last_sign_at

    def threshold_ms(self, now: MonoMs) -> int:
        """Return how long a leader has to be silent to be suspected."""
        while self._gaps and now - self._gaps[0][0] > _RECENT_MS:
            self._gaps.popleft()
        longest_ms = max(self._retry_ms, self._gaps[0][1] if self._gaps else 0)
        return max(self._after_ms, longest_ms * _PATIENCE_NUM // _PATIENCE_DEN)

    def resting_ms(self, now: MonoMs) -> int:
        """Return for how long no leader is suspected any more, after wrong suspicions."""
        return max(self._rest_until - now, 0)

    # How it comes to that

    @property
    def _late_after_ms(self) -> int:
        return self._retry_ms * _LATE_NUM // _LATE_DEN

    def _is_live(self, now: MonoMs) -> bool:
        """Return True if the stream is current: after a pause, a whole past arrives in one moment."""
        return self._seen_through is not None and now - self._seen_through <= self._late_after_ms

    def _sign(self, now: MonoMs) -> None:
        gap_ms = now - self._last_sign_at
        if self._signs and self._is_live(now):
            # An interruption of this replica's own beats says nothing about the leader.
            self._note(min(gap_ms, now - self._silent_since), now)
        self._signs = min(self._signs + 1, SIGNS_MIN)
        self._last_sign_at = self._silent_since = now
        self._unanswered = 0

    def _note(self, gap_ms: int, now: MonoMs) -> None:
        while self._gaps and self._gaps[-1][1] <= gap_ms:
            self._gaps.pop()
        self._gaps.append((now, gap_ms))

    def _is_early(self, before: LeaseRecord, lease: LeaseRecord, now: MonoMs) -> bool:
        """Return True if the lease was taken from a holder that had neither released it nor let it run out."""
        return (
            self._is_live(now)
            and bool(before.holder)
            and lease.term > before.term
            # Otherwise there was a version in between, and it may have been the release.
            and lease.renewals == before.renewals + 1
            and now - self._lease_changed_at < before.lease_duration_ms
        )

    def _came_back(self, now: MonoMs) -> Comeback:
        while self._back_at and now - self._back_at[0] > _RECENT_MS:
            self._back_at.popleft()
        self._back_at.append(now)
        is_late = self._late_at is not None and now - self._late_at <= _RECENT_MS
        if is_late or len(self._back_at) > _BACK_AT_ONCE_MAX:
            self._was_wrong(now)
            return Comeback.WRONG
        self._on_probation = True
        return Comeback.RIGHT

    def _was_wrong(self, now: MonoMs) -> None:
        self._on_probation = False
        self._rest_until = MonoMs(now + _REST_MS * 2 ** min(self._wrong, _REST_DOUBLINGS_MAX))
        self._wrong += 1
