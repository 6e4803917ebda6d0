"""Has the leader stood still for so long that its lease need not be waited for? A pure judgement over signs and time.

::

    followed ── silent for a part of the threshold ──▶ doubted ── for all of it, by two witnesses ──▶ its lease is
        ▲                                                 │                                            challenged
        └──────────────────── any sign of it ─────────────┘

The two witnesses:

1. *The stream.* Nothing of the leader came by (its beats, renewals, journal entries), though everything did that was
   written up to a threshold after its last sign: a beat of this replica that was sent then has come back. A replica
   that is cut off, starved or paused itself sends no beat, or sees none come back, so it proves nothing; and where its
   own beats were interrupted, the count begins again.
2. *Its process.* It has greeted this replica before, and now leaves one connection after the other without a greeting.

The threshold grows with how late the leaders' signs were lately, so a machine that is short of CPU teaches patience.

A wrong suspicion is harmless, as the journal fences the leader that was followed, and is bounded all the same. Each
replica keeps count of every early takeover that it sees, its own or another's. Where the leader that was followed is
back before it was silent for another threshold, and beats of any replica were late around that time, the suspicion was
wrong: the replica suspects no leader for ten minutes, after the next one for twenty, up to two hours and forty minutes.
A leader that stood still alone, while all else was on time, was followed rightly, however soon it is back; after three
of those in ten minutes it counts as wrong too. And a leader that was followed does not suspect its successor for a
minute, so no two replicas depose each other in a circle.

Owner: `LeaderSuspicion` of the signs, the lateness and the budget. All instants are of this replica's monotonic clock.
"""

from collections import deque
from enum import StrEnum

from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs

SIGNS_MIN = 3
"""So many signs of a leader have come before its silence means anything."""
UNANSWERED_MIN = 2
"""So many connections in a row have stayed without a greeting: one may have met a moment without CPU."""
_LATE_NUM, _LATE_DEN = 3, 2
"""A sign is late after one and a half retry periods: beats and renewals come once in each."""
_PATIENCE_NUM, _PATIENCE_DEN = 7, 4
"""The threshold is at least so many times the retry period, and the longest time between two signs lately."""
_DOUBT_NUM, _DOUBT_DEN = 5, 8
"""The part of the threshold after which both witnesses are asked; beats that are on time never reach it."""
_LATELY_MS = 600_000
_REST_MS = 600_000
_REST_DOUBLINGS_MAX = 4
_BACK_AT_ONCE_MAX = 3
_PROBATION_MS = 60_000
_SPARED_MS = 60_000


class Comeback(StrEnum):
    """The judgement on a suspicion, when the leader that was followed for it is soon back."""

    RIGHT = "right"
    WRONG = "wrong"


class LeaderSuspicion:
    """``standstill_after_ms`` 0: nothing is ever suspected."""

    def __init__(self, candidate_id: str, standstill_after_ms: int, retry_period_ms: int) -> None:
        self._candidate_id = candidate_id
        self._after_ms = standstill_after_ms
        self._retry_ms = retry_period_ms
        self._lease: LeaseRecord | None = None
        self._lease_changed_at = MonoMs(0)
        self._signs = 0
        self._last_sign_at = MonoMs(0)
        self._silent_since = MonoMs(0)
        self._heard: MonoMs | None = None
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
        """The newest version of the lease that is known here; it may be the same as before."""
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
        """The stream brought a beat or a journal entry of that replica.

        Not None: a leader that was followed early is back, or what was said when it came back has to be taken back.
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
        """That replica has left, or its record has expired."""
        self._beat_at.pop(replica_id, None)

    def heard(self, heard_ms: MonoMs | None, now: MonoMs) -> None:
        """Everything that was written before ``heard_ms`` has come by, as a beat of this replica shows."""
        known, self._heard = self._heard, heard_ms
        if heard_ms is not None and (known is None or heard_ms - known > self._late_after_ms):
            # This replica's own beats were interrupted: the leader's may have been by the same.
            self._silent_since = now

    def restarted(self) -> None:
        """A snapshot follows: what it brings is no sign of now."""
        self._signs = 0
        self._beat_at.clear()
        self._followed = ""
        self._heard = None

    def greeted(self) -> None:
        """The leader's process answered a connection."""
        self._greeted, self._unanswered = True, 0

    def unanswered(self) -> None:
        """The leader's process took or left a connection without a greeting in time."""
        self._unanswered += 1

    # The judgement

    @property
    def has_greeted(self) -> bool:
        return self._greeted

    def is_watching(self, now: MonoMs) -> bool:
        """Whether there is a leader that may be suspected, now or later."""
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
        """When it will have been silent for so long that both witnesses should be asked; None: not as things stand."""
        if not self.is_watching(now) or self._signs < SIGNS_MIN:
            return None
        return max(self._silent_since + self.threshold_ms(now) * _DOUBT_NUM // _DOUBT_DEN - now, 0)

    def suspicious_in_ms(self, now: MonoMs) -> int:
        """When it will have been silent for the whole threshold, if it stays so."""
        return max(self._silent_since + self.threshold_ms(now) - now, 0)

    def is_standing_still(self, now: MonoMs) -> bool:
        """Whether both witnesses have spoken: the lease may be challenged, if it still is as it was seen."""
        return (
            self.doubtful_in_ms(now) == 0
            and self._heard is not None
            and self._heard - self._silent_since >= self.threshold_ms(now)
            and self._greeted
            and self._unanswered >= UNANSWERED_MIN
        )

    def silent_ms(self, now: MonoMs) -> int:
        """Since the last sign of the leader."""
        return now - self._last_sign_at

    def threshold_ms(self, now: MonoMs) -> int:
        """How long a leader has to be silent."""
        while self._gaps and now - self._gaps[0][0] > _LATELY_MS:
            self._gaps.popleft()
        longest_ms = max(self._retry_ms, self._gaps[0][1] if self._gaps else 0)
        return max(self._after_ms, longest_ms * _PATIENCE_NUM // _PATIENCE_DEN)

    def resting_ms(self, now: MonoMs) -> int:
        """For how long no leader is suspected, after suspicions that were wrong."""
        return max(self._rest_until - now, 0)

    # How it comes to that

    @property
    def _late_after_ms(self) -> int:
        return self._retry_ms * _LATE_NUM // _LATE_DEN

    def _is_live(self, now: MonoMs) -> bool:
        """Whether what comes by was written just now: a replica that was paused hears a whole past in one moment."""
        return self._heard is not None and now - self._heard <= self._late_after_ms

    def _sign(self, now: MonoMs) -> None:
        gap_ms = now - self._last_sign_at
        if self._signs and self._is_live(now):
            # An interruption of this replica's own beats says nothing of the leader.
            self._note(min(gap_ms, now - self._silent_since), now)
        self._signs = min(self._signs + 1, SIGNS_MIN)
        self._last_sign_at = self._silent_since = now
        self._unanswered = 0

    def _note(self, gap_ms: int, now: MonoMs) -> None:
        while self._gaps and self._gaps[-1][1] <= gap_ms:
            self._gaps.pop()
        self._gaps.append((now, gap_ms))

    def _is_early(self, before: LeaseRecord, lease: LeaseRecord, now: MonoMs) -> bool:
        """Whether the lease was taken from a holder that had neither released it nor let it run out."""
        return (
            self._is_live(now)
            and bool(before.holder)
            and lease.term > before.term
            # Otherwise there was a version in between, and it may have been the release.
            and lease.renewals == before.renewals + 1
            and now - self._lease_changed_at < before.lease_duration_ms
        )

    def _came_back(self, now: MonoMs) -> Comeback:
        while self._back_at and now - self._back_at[0] > _LATELY_MS:
            self._back_at.popleft()
        self._back_at.append(now)
        is_late = self._late_at is not None and now - self._late_at <= _LATELY_MS
        if is_late or len(self._back_at) > _BACK_AT_ONCE_MAX:
            self._was_wrong(now)
            return Comeback.WRONG
        self._on_probation = True
        return Comeback.RIGHT

    def _was_wrong(self, now: MonoMs) -> None:
        self._on_probation = False
        self._rest_until = MonoMs(now + _REST_MS * 2 ** min(self._wrong, _REST_DOUBLINGS_MAX))
        self._wrong += 1
