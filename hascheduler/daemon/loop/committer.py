"""Commit decisions in one term: into the journal, then applied, then handed to the publisher.

::

    stepper ─submit─► [journal] ─► [apply] ─► publisher
                       N + 2        N + 1       N            consecutive batches overlap

Both stages keep the order, so a later entry never overtakes the insert of a job it moves. One batch may wait in front
of each stage; while it does, decisions gather in the core and the next batch is larger. There is no other
back-pressure.

It also keeps the account of settled decisions: ``applied_through`` is the last entry before the first with a decision
that has neither come back in the stream nor lost.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

import structlog
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_attempt, wait_random_exponential

from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.fence import Deposed, Fence
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Publish, RecordVerdict, Settlement
from hascheduler.dispatch.inputs import Settled
from hascheduler.lifecycle import in_time
from hascheduler.model.verdict import Verdict
from hascheduler.ports import ClaimStore, Clock, JournalEntry
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_READY_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class _SubmittedBatch:
    decisions: tuple[Decision, ...]
    majority: bool


@dataclass
class Committer:
    """Owner of one term's pipeline. `run` ends when the term does: deposed, or cancelled by the leader.

    ``due_ms`` returns when a fire was due, for the metrics. ``observer`` is notified of each batch once it is in the
    journal.
    """

    fence: Fence
    _: KW_ONLY
    claims: ClaimStore
    publisher: Publisher
    inbox: Inbox
    clock: Clock
    trusted: Callable[[], bool]
    metrics: ReplicaMetrics = field(default_factory=ReplicaMetrics)
    due_ms: Callable[[Fire], int] = lambda fire: fire.nominal_ms
    observer: FailoverReporter | None = None

    def __post_init__(self) -> None:
        self._unsure: set[Decision] = set()
        self._unstorable = 0
        self._to_journal: asyncio.Queue[_SubmittedBatch] = asyncio.Queue(maxsize=1)
        self._to_apply: asyncio.Queue[tuple[JournalEntry, bool, frozenset[Decision]]] = asyncio.Queue(maxsize=1)
        self._room = asyncio.Event()
        self._room.set()
        self.account = OpenEntries(self.fence.began.seq)

    async def ready(self) -> bool:
        """Wait, for a bounded time, until `submit` has room, and return True if it has."""
        return self._room.is_set() or await in_time(self._room.wait(), _READY_TIMEOUT_S)

    def submit(self, decisions: tuple[Decision, ...], *, majority: bool) -> None:
        """Take a batch. The caller is the only one that submits, and `ready` has just returned True."""
        self._to_journal.put_nowait(_SubmittedBatch(decisions, majority))
        self._room.clear()

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything submitted has been applied and handed on, and return True if that happened in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._to_journal.join()
                await self._to_apply.join()
        except TimeoutError:
            return False
        return True

    async def run(self) -> Deposed:
        """Run both stages until the journal holds another leader's entry."""
        async with asyncio.TaskGroup() as stages:
            applying = stages.create_task(self._applying(), name="apply")
            deposed = await self._journaling()
            applying.cancel()
        return deposed

    async def _journaling(self) -> Deposed:
        while True:
            work = await self._to_journal.get()
            self._room.set()
            with self.metrics.journal_append_seconds.time():
                answer = await self.fence.append(
                    work.decisions, self.account.applied_through, self.clock.wall_ms(), self.trusted
                )
            if isinstance(answer, Deposed):
                return answer
            new = self.account.open(answer)
            self.metrics.journaled(new)
            if self.observer is not None:
                self.observer.journaled(self.fence.term)
            await self._to_apply.put((answer, work.majority, new))
            self._to_journal.task_done()

    async def _applying(self) -> None:
        while True:
            entry, majority, new = await self._to_apply.get()
            with self.metrics.journal_apply_seconds.time():
                settlements = await apply_until_known(self.claims, entry, majority=majority)
            pairs = list(zip(entry.decisions, settlements, strict=True))
            self._count(pairs, new)
            self.inbox.put_now(*(Settled(decision, settlement) for decision, settlement in pairs))
            self.publisher.offer(
                Publish(decision.job_id, decision.attempt, decision.processor)
                for decision, settlement in pairs
                if isinstance(decision, Dispatch) and settlement is Settlement.DONE
            )
            self._to_apply.task_done()

    def _count(self, pairs: Sequence[tuple[Decision, Settlement]], new: frozenset[Decision]) -> None:
        """Count each decision once, however often it is applied."""
        now = self.clock.wall_ms()
        first = [pair for pair in pairs if pair[0] in new or pair[0] in self._unsure]
        self._unsure.difference_update(decision for decision, _ in first)
        self._unsure.update(decision for decision, settlement in first if settlement is Settlement.UNKNOWN)
        self.metrics.settled(first)
        for decision, settlement in first:
            if settlement is Settlement.REFUSED and isinstance(decision, Fire):
                self._count_unstorable(decision)
            if settlement is not Settlement.DONE:
                continue
            if isinstance(decision, Fire):
                self.metrics.verdicts.labels(Verdict.FIRED.value).inc()
                self.metrics.fire_lag.observe(max(now - self.due_ms(decision), 0) / 1_000)
            elif isinstance(decision, RecordVerdict):
                self.metrics.verdicts.labels(decision.run.verdict.value).inc(decision.run.count)

    def _count_unstorable(self, fire: Fire) -> None:
        self.metrics.verdicts.labels(Verdict.UNSTORABLE.value).inc()
        self._unstorable += 1
        if self._unstorable.bit_count() == 1:  # the 1st, 2nd, 4th, 8th …
            reason = "the job is too large to store; check the payload of its schedule"
            log.error("fire_rejected", job=fire.job_id, count=self._unstorable, reason=reason)


async def apply_until_known(claims: ClaimStore, entry: JournalEntry, *, majority: bool) -> list[Settlement]:
    """Apply the entry, and repeat while an answer is missing; the stream or a later repeat settles the rest."""
    answers = [await claims.apply(entry.decisions, entry.at_ms, majority=majority)]
    if Settlement.UNKNOWN not in answers[0]:
        return answers[0]  # nearly always: the machinery for repeats costs as much as the commit's own part of an entry

    async def apply() -> list[Settlement]:
        return answers.pop() if answers else await claims.apply(entry.decisions, entry.at_ms, majority=majority)

    try:
        return await AsyncRetrying(
            retry=retry_if_result(lambda settlements: Settlement.UNKNOWN in settlements),
            wait=wait_random_exponential(multiplier=0.05, max=1),
            stop=stop_after_attempt(5),
        )(apply)
    except RetryError as error:
        settlements: list[Settlement] = error.last_attempt.result()
        log.warning("apply_unknown", seq=entry.head.seq, unknown=settlements.count(Settlement.UNKNOWN))
        return settlements


class OpenEntries:
    """Owner of the entries that still have unsettled decisions."""

    def __init__(self, began_seq: int) -> None:
        self._last_seq = began_seq
        self._open: dict[int, set[Decision]] = {}
        self._entries_of: dict[Decision, list[int]] = {}

    @property
    def applied_through(self) -> int:
        return next(iter(self._open), self._last_seq + 1) - 1

    def open(self, entry: JournalEntry) -> frozenset[Decision]:
        """Open the entry, and return its decisions that no earlier open entry has."""
        self._last_seq = entry.head.seq
        new = frozenset(decision for decision in entry.decisions if decision not in self._entries_of)
        if entry.decisions:
            self._open[entry.head.seq] = set(entry.decisions)
        for decision in entry.decisions:
            self._entries_of.setdefault(decision, []).append(entry.head.seq)
        return new

    def settle(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            for seq in self._entries_of.pop(decision, ()):
                unsettled = self._open[seq]
                unsettled.discard(decision)
                if not unsettled:
                    del self._open[seq]
