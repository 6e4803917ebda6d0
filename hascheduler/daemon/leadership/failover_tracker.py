"""Follows a takeover by its transitions, and gives one `Failover` for each term that begins here.

::

    won ─► began ─► reapplied ─► deciding ─► stepped ─► journaled ─► applied ─┬─► caught up ─┐
     └────────────────────────── ended ───────────────────────────────────────┴─► too long ──┴─► reported

*Caught up* is the first moment at which all is carried out that was decided up to the first step after which the core
had nothing more to do at once. Then, when that takes longer than `BEHIND_MAX_MS`, or when the term ends, the failover
is reported. A term that never began in the journal has none: it left no trace in the world.

See `LeadershipObserver`: no await, no I/O, no exception.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hascheduler.daemon.leadership.leaderless_interval import LeaderlessInterval, LeaderlessTracker
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, RecordVerdict, Requeue, Settlement
from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.dispatch.step import Step
from hascheduler.model.failover import NO_BACKLOG, Backlog, Failover, FailoverEnd
from hascheduler.model.journal import JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.ports import Clock

BEHIND_MAX_MS = 60_000

_COUNTED = {Verdict.COALESCED: "coalesced", Verdict.MISSED: "missed", Verdict.SKIPPED: "skipped"}


@dataclass(slots=True)
class _Takeover:
    """One term so far; instants are of the monotonic clock, but for what was due by ``due_by_ms``."""

    term: int
    vacancy: LeaderlessInterval
    won_at: MonoMs
    began: JournalHead | None = None
    began_at: MonoMs | None = None
    deciding_at: MonoMs | None = None
    due_by_ms: WallMs | None = None
    first_decision_at: MonoMs | None = None
    first_dispatch_at: MonoMs | None = None
    reapplied_entries: int = 0
    reapplied_decisions: int = 0
    has_stepped: bool = False
    submitted: int = 0
    carried_out: int = 0
    caught_up_after: int | None = None
    """How many batches have to be carried out before the backlog counts as decided."""
    backlog: Backlog = NO_BACKLOG


class FailoverTracker:
    """A `LeadershipObserver`. Owner of the takeover of the present term, until it is reported to ``report``.

    What concerns a term names it, as its loops may have something to say after its end.
    """

    def __init__(
        self,
        shard: str,
        replica_id: str,
        clock: Clock,
        report: Callable[[Failover], None],
        due_ms: Callable[[Fire], int] = lambda fire: fire.nominal_ms,
    ) -> None:
        self._shard = shard
        self._replica_id = replica_id
        self._clock = clock
        self._report = report
        self._due_ms = due_ms
        self._watch = LeaderlessTracker(replica_id)
        self._takeover: _Takeover | None = None

    # What is seen; ``live``: the stream is not behind

    def lease_known(self, record: LeaseRecord | None, *, live: bool) -> None:
        self._watch.lease_known(record, self._clock.mono_ms(), live=live)

    def journal_seen(self, head: JournalHead, *, live: bool) -> None:
        self._watch.journal_seen(head, self._clock.mono_ms(), live=live)

    def holder_died(self, holder: str) -> None:
        self._watch.holder_died(holder, self._clock.mono_ms())

    def holder_stands_still(self, holder: str) -> None:
        self._watch.holder_stands_still(holder, self._clock.mono_ms())

    # Taking over

    def challenged(self, expected: LeaseRecord | None) -> None:
        """The lease is about to be taken, if it still is as ``expected``."""
        self._watch.challenged(expected, self._clock.mono_ms())

    def won(self, term: int) -> None:
        self._takeover = _Takeover(term, self._watch.won(), self._clock.mono_ms())

    def began(self, head: JournalHead) -> None:
        """The journal has this ``term_began``."""
        takeover = self._of(head.term)
        if takeover is not None:
            takeover.began, takeover.began_at = head, self._clock.mono_ms()
            self._watch.filled()

    def reapplied(self, term: int, entries: int, decisions: int) -> None:
        takeover = self._of(term)
        if takeover is not None:
            takeover.reapplied_entries, takeover.reapplied_decisions = entries, decisions

    def deciding(self, term: int) -> None:
        """The stream has delivered the ``term_began``."""
        takeover = self._of(term)
        if takeover is not None:
            takeover.deciding_at, takeover.due_by_ms = self._clock.mono_ms(), self._clock.wall_ms()

    # Deciding

    def stepped(self, inputs: Iterable[Input], step: Step, now: WallMs) -> None:
        """The core took that step while this replica decides, and its decisions are submitted as one batch."""
        takeover = self._takeover
        if takeover is None or takeover.deciding_at is None:
            return
        takeover.has_stepped = takeover.has_stepped or any(isinstance(seen, TermBegan) for seen in inputs)
        if not takeover.has_stepped:
            return
        takeover.submitted += bool(step.decisions)
        is_behind = step.wake_at_ms is not None and step.wake_at_ms <= now
        if not is_behind and takeover.caught_up_after is None:
            takeover.caught_up_after = takeover.submitted
        self._close_if_over(takeover)

    def journaled(self, term: int) -> None:
        """A batch of decisions is in the journal."""
        takeover = self._of(term)
        if takeover is not None and takeover.first_decision_at is None:
            takeover.first_decision_at = self._clock.mono_ms()

    def applied(self, term: int, pairs: Iterable[tuple[Decision, Settlement]]) -> None:
        """That batch is carried out; ``pairs`` are those of it that were not before."""
        takeover = self._of(term)
        if takeover is None or takeover.due_by_ms is None:
            return
        now = self._clock.wall_ms()
        for decision, settlement in pairs:
            if settlement is Settlement.DONE:
                self._count(takeover, takeover.due_by_ms, decision, now)
        takeover.carried_out += 1
        self._close_if_over(takeover)

    def ended(self, term: int) -> None:
        takeover = self._of(term)
        if takeover is not None:
            self._close(takeover, FailoverEnd.TERM_ENDED)
        self._watch.gave_up(self._clock.mono_ms())

    def close_if_over(self) -> None:
        """To be called about once a second: a takeover is not followed for ever."""
        if self._takeover is not None:
            self._close_if_over(self._takeover)

    # Counting and closing

    def _of(self, term: int) -> _Takeover | None:
        return self._takeover if self._takeover is not None and self._takeover.term == term else None

    def _count(self, takeover: _Takeover, due_by_ms: int, decision: Decision, now: WallMs) -> None:
        backlog = takeover.backlog
        match decision:
            case Fire() if (due_ms := self._due_ms(decision)) <= due_by_ms:
                worst_ms = max(backlog.worst_lag_ms, now - due_ms)
                takeover.backlog = replace(backlog, fires_late=backlog.fires_late + 1, worst_lag_ms=worst_ms)
            case RecordVerdict(run) if run.verdict in _COUNTED and run.last_ms <= due_by_ms:
                name = _COUNTED[run.verdict]
                takeover.backlog = replace(backlog, **{name: getattr(backlog, name) + run.count})
            case Dispatch() if takeover.first_dispatch_at is None:
                takeover.first_dispatch_at = self._clock.mono_ms()
            case Requeue():
                takeover.backlog = replace(backlog, requeued=backlog.requeued + 1)
            case _:
                pass

    def _close_if_over(self, takeover: _Takeover) -> None:
        if takeover.caught_up_after is not None and takeover.carried_out >= takeover.caught_up_after:
            self._close(takeover, FailoverEnd.CAUGHT_UP)
        elif takeover.deciding_at is not None and self._clock.mono_ms() - takeover.deciding_at >= BEHIND_MAX_MS:
            self._close(takeover, FailoverEnd.STILL_BEHIND)

    def _close(self, takeover: _Takeover, ended: FailoverEnd) -> None:
        self._takeover = None
        if takeover.began is None or takeover.began_at is None:
            return
        now = self._clock.mono_ms()
        # Distances are those of the monotonic clock, whatever was done to the wall clock meanwhile.
        if takeover.deciding_at is not None and takeover.due_by_ms is not None:
            wall_ahead_ms = takeover.due_by_ms - takeover.deciding_at
        else:
            wall_ahead_ms = self._clock.wall_ms() - now
        before = self._watch.before(takeover.term)

        def wall(at: MonoMs) -> WallMs:
            return WallMs(at + wall_ahead_ms)

        def wall_or_none(at: MonoMs | None) -> WallMs | None:
            return None if at is None else wall(at)

        self._report(
            Failover(
                shard=self._shard,
                term=takeover.term,
                holder=self._replica_id,
                cause=takeover.vacancy.cause,
                detected_at_ms=wall(takeover.vacancy.since),
                won_at_ms=wall(takeover.won_at),
                began_at_ms=wall(takeover.began_at),
                began_seq=takeover.began.seq,
                told_at_ms=wall(now),
                ended=ended,
                previous_term=None if before is None else before.term,
                previous_holder=None if before is None else before.holder,
                last_sign_at_ms=wall_or_none(takeover.vacancy.last_sign_at),
                deciding_at_ms=wall_or_none(takeover.deciding_at),
                first_decision_at_ms=wall_or_none(takeover.first_decision_at),
                first_dispatch_at_ms=wall_or_none(takeover.first_dispatch_at),
                reapplied_entries=takeover.reapplied_entries,
                reapplied_decisions=takeover.reapplied_decisions,
                backlog=takeover.backlog,
            )
        )
