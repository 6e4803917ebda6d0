"""Get the lease, begin a term, keep it, and give it up in good order.

A takeover, step by step: win the lease with the next term; insert ``term_began`` behind the journal's newest entry
(`Fence.begin`); apply again what earlier terms may have left unapplied; wait until this replica's own stream has
delivered that ``term_began``, so that everything committed before it is in the mirror; only then let the core decide.
Meanwhile the lease is renewed.

The leader gives up if it must (the renew deadline passes, the journal shows another term, the mirror is stale) or on
request: then the core stops first, everything in flight is finished, and the lease is released, so that the next leader
has nothing left to repair.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import structlog
from structlog.contextvars import bind_contextvars

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.fence import Deposed, Fence
from hascheduler.daemon.loop.committer import Committer, apply_until_known
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import Decision, Fire, Settlement
from hascheduler.dispatch.inputs import TermBegan, TrustLost
from hascheduler.election.elector import Elector, LeaseAnswer, LeaseAttempt
from hascheduler.errors import InvalidInput, StoreOverloaded, StoreUnavailable
from hascheduler.lifecycle import in_time
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ClaimStore, Clock, Journal, LeaseStore
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_TRIM_EVERY_S = 60.0
_HANDOVER_S = 2.0
_HANDED_OVER = "handed over"
_CANNOT_LEAD_PAUSE_MS = 100
"""The completion of the mirror wakes nothing here, and a leaderless system should not wait long for it."""


@dataclass
class Leader:
    """Owner of the elector and of the present term.

    ``can_lead`` returns True if the mirror is complete and fresh and the clock trusted; ``clock_trusted`` checks only
    the clock, before each decision. ``hurry`` is called when this replica begins to wait for the stream.
    """

    config: ReplicaConfig
    elector: Elector
    _: KW_ONLY
    leases: LeaseStore
    journal: Journal
    claims: ClaimStore
    inbox: Inbox
    publisher: Publisher
    clock: Clock
    can_lead: Callable[[], bool]
    clock_trusted: Callable[[], bool]
    hurry: Callable[[], None]
    due_ms: Callable[[Fire], int]
    metrics: ReplicaMetrics
    observer: FailoverReporter

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._barrier = asyncio.Event()
        self._delivered_seq = 0
        self._committer: Committer | None = None
        self._term: asyncio.Task[None] | None = None
        self._must_end = ""
        self._resigning = False
        self._handing_over = False
        self._handed_over = asyncio.Event()
        self._answered_at = self.clock.mono_ms()
        self._unanswered = False

    # State for other parts, and reports from them

    @property
    def lease(self) -> LeaseRecord | None:
        return self.elector.record

    def leads(self) -> bool:
        """Return True if this replica decides now."""
        return self.active_committer() is not None

    def deciding_term(self) -> int | None:
        """Return the present term while this replica decides, else None."""
        return self.elector.term if self.leads() else None

    @property
    def in_term(self) -> bool:
        """Return True if a term is held here, or is about to begin."""
        return self._term is not None

    def is_out_of_touch(self) -> bool:
        """Return True if the store of leases has not answered a leader's writes for as long as a leader may be silent.

        It counts only while the lease is this replica's, as far as it knows. Attempts that were not made do not count:
        a replica without CPU is not cut off.
        """
        lease, patience_ms = self.elector.record, self.config.standstill_after_ms
        return (
            patience_ms > 0
            and self._unanswered
            and lease is not None
            and lease.holder == self.config.replica_id
            and self.clock.mono_ms() - self._answered_at >= patience_ms
        )

    def leave_first_try_ms(self, delay_ms: int) -> None:
        """Leave a free lease to other candidates for this long, as they are preferred."""
        self.elector.challenge_delay_ms = delay_ms

    def active_committer(self) -> Committer | None:
        """Return the present term's committer; None once the lease can't be trusted, for the rest of the term."""
        if self._committer is not None and not (self._trusted() and self.clock_trusted()):
            # The core stops now, and must not stay stopped in a term that a late renewal revives.
            self._committer = None
            self._must_end = "lease lapsed" if self.clock_trusted() else "clock not trusted"
            self._news.set()
        return self._committer

    def lease_seen(self, record: LeaseRecord | None) -> None:
        self._observe(record)
        self._news.set()

    def journal_seen(self, head: JournalHead) -> None:
        """Note that the stream has delivered that entry."""
        self.observer.journal_seen(head, live=self.can_lead())
        self.elector.observe_term(head.term)
        self._delivered_seq = max(self._delivered_seq, head.seq)
        self._barrier.set()

    def holder_died(self, holder: str) -> None:
        self.observer.holder_died(holder)
        self.elector.holder_died(holder, self.clock.mono_ms())
        self.hurry()
        self._news.set()

    def holder_stalled(self, holder: str) -> None:
        """Note the suspicion: unless the holder renews, its lease may be challenged now."""
        self.observer.holder_stalled(holder)
        self.elector.holder_stalled(holder, self.clock.mono_ms())
        self.hurry()
        self._news.set()

    def loop_hangs(self) -> None:
        """Note that the deciding loop hangs: another replica should lead, and need not wait for the lease."""
        if self._term is not None:
            self._must_end = "dispatch loop stalled"
            self._news.set()

    def restarted(self) -> None:
        """Note that the mirror is a new one: a term that was built on the old one must end."""
        self._delivered_seq = 0
        self._must_end = "resync"
        self._news.set()

    # The loop

    async def run(self, progressing: Callable[[], bool]) -> None:
        """Get and keep the lease until cancelled; renew it only while the deciding loop is ``progressing``."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._turn(tasks, progressing)
                await self._pause()

    async def _turn(self, tasks: asyncio.TaskGroup, progressing: Callable[[], bool]) -> None:
        handing_over, self._handing_over = self._handing_over, False
        if self._term is not None:
            reason = (
                self._must_end
                or (_HANDED_OVER if handing_over else "")
                or ("" if self.can_lead() else "mirror stale")
                or ("" if self._trusted() else "lease lost")
            )
            if self._term.done() or reason:
                await self._end_term(self._term, reason)
                await self._release()
        self._must_end = ""
        if handing_over:
            self._handed_over.set()
        if self._resigning or not self.can_lead() or not progressing():
            # A replica that can't lead does not renew: the lease runs out, or was released above.
            return
        attempt = self.elector.next_attempt(self.clock.mono_ms(), self.clock.wall_ms())
        if attempt is not None:
            await self._try(attempt)
        if self._term is None and self._trusted():
            self._term = tasks.create_task(self._lead(self.elector.term), name=f"term-{self.elector.term}")
            self.hurry()

    async def _try(self, attempt: LeaseAttempt) -> None:
        if attempt.expected is None or attempt.expected.term != attempt.proposed.term:
            self.observer.challenged(attempt.expected)
        began = self.clock.mono_ms()
        answer, overloaded = LeaseAnswer.UNKNOWN, False
        try:
            async with asyncio.timeout(self.config.retry_period_ms / 1000):
                if attempt.expected is None:
                    won = await self.leases.create(attempt.proposed)
                else:
                    won = await self.leases.update(attempt.expected, attempt.proposed)
                answer = LeaseAnswer.WON if won else LeaseAnswer.LOST
                if not won:
                    self._observe(await self.leases.get(self.config.scheduler))
        except InvalidInput as error:  # a lease written by hand must not end all replicas, one after the other
            log.error("lease_read_failed", error=str(error))
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("lease_write_unknown", term=attempt.proposed.term, error=str(error) or "no answer in time")
            overloaded = isinstance(error, StoreOverloaded)
        self.elector.concluded(attempt, answer, began, self.clock.mono_ms())
        # A refusal is an answer: who is refused is not cut off, and goes on greeting.
        self._unanswered = answer is LeaseAnswer.UNKNOWN and not overloaded
        if not self._unanswered:
            self._answered_at = began

    async def _pause(self) -> None:
        now = self.clock.mono_ms()
        pause_ms = max(self.elector.wake_at_ms(now) - now, 0) if self.can_lead() else _CANNOT_LEAD_PAUSE_MS
        await in_time(self._news.wait(), min(max(pause_ms, 5), self.config.retry_period_ms) / 1000)
        self._news.clear()
        if not self.elector.observed:
            await self._first_read()

    async def _first_read(self) -> None:
        """Read the lease if the snapshot had none: make sure that there is none, rather than wait for one."""
        if not self.can_lead():
            return
        try:
            self._observe(await self.leases.get(self.config.scheduler))
        except (StoreUnavailable, InvalidInput) as error:
            log.warning("lease_read_failed", error=str(error))

    def _observe(self, record: LeaseRecord | None) -> None:
        self.elector.observe(record, self.clock.mono_ms())
        self.observer.lease_known(self.elector.record, live=self.can_lead())

    # One term

    async def _lead(self, term: int) -> None:
        # A task of its own, so the term is in the log lines of this term and of no other.
        bind_contextvars(term=term)
        try:
            await self._begin_and_hold(term)
        except* StoreUnavailable as group:
            log.warning("term_failed", term=term, error=str(group.exceptions[0]))
        finally:
            self._committer = None
            self.inbox.put_now(TrustLost())
            self.elector.step_down()
            self.observer.ended(term)
            self._news.set()

    async def _begin_and_hold(self, term: int) -> None:
        won_at = self.clock.mono_ms()
        fence = await Fence.begin(
            self.journal,
            name=self.config.scheduler,
            term=term,
            holder=self.config.replica_id,
            now=self.clock.wall_ms(),
            trusted=self._trusted,
        )
        if isinstance(fence, Deposed):
            self._deposed(term, fence)
            return
        reapplied = await self._reapply(fence)
        await self._delivered(fence.began.seq)
        committer = Committer(
            fence,
            claims=self.claims,
            publisher=self.publisher,
            inbox=self.inbox,
            clock=self.clock,
            trusted=self._trusted,
            metrics=self.metrics,
            due_ms=self.due_ms,
            observer=self.observer,
        )
        self._committer = committer
        self.observer.deciding(term)
        self.inbox.put_now(TermBegan(term, reapplied))
        self.metrics.takeover.set((self.clock.mono_ms() - won_at) / 1_000)
        log.info(
            "leading", term=term, seq=fence.began.seq, reapplied=len(reapplied), took_ms=self.clock.mono_ms() - won_at
        )
        async with asyncio.TaskGroup() as tasks:
            trimming = tasks.create_task(self._trim(committer), name="trim")
            deposed = await committer.run()
            trimming.cancel()
        self._deposed(term, deposed)

    async def _reapply(self, fence: Fence) -> tuple[Decision, ...]:
        """Apply decisions of earlier terms that may not have been applied, and return those that are done."""
        began = fence.began
        done: list[Decision] = []
        for entry in await self.journal.read(began.name, began.applied_through, began.seq):
            settlements = await apply_until_known(self.claims, entry, majority=True)
            if Settlement.UNKNOWN in settlements:
                raise StoreUnavailable(f"entry {entry.head.seq} could not be applied again")
            done += [
                decision
                for decision, settlement in zip(entry.decisions, settlements, strict=True)
                if settlement in (Settlement.DONE, Settlement.REFUSED)
            ]
        return tuple(done)

    async def _delivered(self, seq: int) -> None:
        """Wait until the stream has delivered that entry: everything committed before it is then in the mirror."""
        while self._delivered_seq < seq:
            self._barrier.clear()
            await self._barrier.wait()

    async def _trim(self, committer: Committer) -> None:
        while True:
            await asyncio.sleep(_TRIM_EVERY_S)
            before_ms = WallMs(self.clock.wall_ms() - self.config.journal_retention_ms)
            try:
                # The newest entry stays in any case: the next leader's seq and term follow from it.
                await self.journal.trim(self.config.scheduler, committer.account.applied_through - 1, before_ms)
            except StoreUnavailable as error:
                log.info("journal_trim_failed", error=str(error))

    def _deposed(self, term: int, deposed: Deposed) -> None:
        log.warning("leader_deposed", term=term, by_term=deposed.term)
        self.elector.observe_term(deposed.term)

    async def _end_term(self, term: asyncio.Task[None], reason: str) -> None:
        if not term.done():
            write = log.info if reason == _HANDED_OVER else log.warning
            write("term_ended", term=self.elector.term, reason=reason)
            term.cancel()
            await asyncio.wait({term}, timeout=_HANDOVER_S)
        self._term = None

    # Giving up

    async def resign(self) -> None:
        """Stop deciding, finish what is in flight, release the lease. For SIGTERM; bounded."""
        self._resigning = True
        await self.hand_over()

    async def hand_over(self) -> None:
        """Give up as `resign` does, but go on as a follower after a pause; the next leader need not wait for the lease.

        `run` ends the term, and it alone writes the lease: a release during a renewal could lose to it, and the renewal
        would keep a term in which nothing decides.
        """
        committer, self._committer = self._committer, None
        self.inbox.wake()
        try:
            if committer is not None:
                done = await committer.drained(_HANDOVER_S) and await self.publisher.drained(_HANDOVER_S)
                log.info("handover_started", term=self.elector.term, in_flight_finished=done)
        finally:
            self._handed_over.clear()
            self._handing_over = True
            self._news.set()
        # A renewal without an answer, the end of the term, and a release without an answer.
        await in_time(self._handed_over.wait(), 2 * self.config.retry_period_ms / 1000 + _HANDOVER_S)

    async def _release(self) -> None:
        attempt = self.elector.release(self.clock.mono_ms(), self.clock.wall_ms())
        if attempt is None or attempt.expected is None:
            return
        try:
            async with asyncio.timeout(self.config.retry_period_ms / 1000):
                if await self.leases.update(attempt.expected, attempt.proposed):
                    self._observe(attempt.proposed)
        except (StoreUnavailable, TimeoutError) as error:
            log.info("lease_release_failed", term=attempt.proposed.term, error=str(error) or "no answer in time")

    def _trusted(self) -> bool:
        return self.elector.leads(self.clock.mono_ms())
