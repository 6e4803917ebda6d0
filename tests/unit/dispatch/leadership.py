"""One leadership after another over the database in memory: mirror, core, journal and pipeline, as the daemon has them.

Nothing here waits: its driver says when a batch of the stream arrives, when an entry is journaled, when and
with what luck it is applied, and when a leader dies between any two of these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeGuard

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import (
    CountFailures,
    Decision,
    Dispatch,
    Fire,
    Publish,
    RecordVerdict,
    Send,
    Settlement,
)
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, Resynced, Settled, Step, TermBegan, TrustLost
from hascheduler.dispatch.settlements import is_carried_out, riding
from hascheduler.mirror.changes import Quarantined, Seen
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from tests.unit.dispatch.database import Database


class Luck(Enum):
    """How the application of an entry goes."""

    GOOD = "good"
    UNANSWERED = "carried out, but no answer came"
    LOST_ON_THE_WAY = "not carried out, and no answer came"
    ROLLED_BACK = "answered, and then lost with the primary"


@dataclass(frozen=True)
class Entry:
    seq: int
    decisions: tuple[Decision, ...]
    majority: bool
    applied_through: int


@dataclass
class Term:
    """The pipeline and the account of one term, as `hascheduler.daemon.loop.committer` keeps them."""

    number: int
    last_seq: int
    to_journal: list[tuple[tuple[Decision, ...], bool]] = field(default_factory=list)
    to_apply: list[Entry] = field(default_factory=list)
    open: dict[int, set[Decision]] = field(default_factory=dict)

    @property
    def applied_through(self) -> int:
        return next(iter(self.open), self.last_seq + 1) - 1

    def settle(self, decisions: Sequence[Decision]) -> None:
        for seq in list(self.open):
            self.open[seq] -= set(decisions)
            if not self.open[seq]:
                del self.open[seq]


class Leadership:
    def __init__(self, database: Database, publish: Callable[[Send], None]) -> None:
        self.database = database
        self._publish = publish
        self.journal: list[Entry] = []
        self.paused: list[list[Entry]] = []
        """What old leaders had journaled and not applied when they lost the term; they may still try."""
        self.term: Term | None = None
        self._began: tuple[int, tuple[Decision, ...]] | None = None
        self.inputs: list[Input] = []
        self.start_over(0)

    # The stream

    def start_over(self, overlap: int) -> None:
        """A fresh replica: a snapshot of now, and a stream that begins up to ``overlap`` events before it."""
        self.core = Dispatcher(DispatchConfig())
        self._read_all(overlap)

    def resync(self, overlap: int) -> None:
        self.lose_term()
        self.inputs.append(Resynced())
        self._read_all(overlap)

    def _read_all(self, overlap: int) -> None:
        self.mirror = Mirror()
        self.place = max(len(self.database.stream) - overlap, 0)
        self._take(self.mirror.fold(self.database.snapshot()).facts)

    def deliver(self, count: int) -> None:
        self._take(self.mirror.fold(self.database.stream[self.place : self.place + count]).facts)
        self.place = min(self.place + count, len(self.database.stream))

    def fetch(self) -> None:
        wanted = self.mirror.fold([]).wanted
        self._take(self.mirror.fold_fetched(wanted, [self.database.read(*key) for key in wanted]).facts)

    def _take(self, facts: Sequence[Seen]) -> None:
        assert not any(isinstance(fact, Quarantined) for fact in facts)
        self.inputs += facts  # type: ignore[arg-type]  # the others concern the daemon, and there are none

    # The term

    @property
    def taking_over(self) -> bool:
        return self._began is not None

    def lose_term(self) -> None:
        """Trust is lost: what is journaled may be applied late, what is not never happened."""
        if self.term is not None and self.term.to_apply:
            self.paused.append(list(self.term.to_apply))
        self.term = self._began = None
        self.inputs.append(TrustLost())

    def crash(self, overlap: int) -> None:
        self.lose_term()
        self.inputs = []
        self.start_over(overlap)

    def take_over(self, now: WallMs) -> None:
        """Insert ``term_began`` and apply again whatever may be undone; `begin` waits for the stream."""
        barrier = len(self.database.stream)
        applied_through = self.journal[-1].applied_through if self.journal else 0
        reapplied: list[Decision] = []
        for entry in self.journal[applied_through:]:
            batch = _Batch(self.database, entry.decisions)
            over = (Settlement.DONE, Settlement.REFUSED)
            reapplied += [each for each in batch.in_order if batch.apply(each, now) in over]
        self.journal.append(Entry(len(self.journal) + 1, (), True, applied_through))
        self._began = (barrier, tuple(reapplied))

    @property
    def may_begin(self) -> bool:
        return self._began is not None and self.place >= self._began[0]

    def begin(self) -> None:
        assert self._began is not None
        self.term = Term(number=len(self.journal), last_seq=len(self.journal))
        self.inputs.append(TermBegan(len(self.journal), self._began[1]))
        self._began = None

    # Deciding and carrying out

    @property
    def has_room(self) -> bool:
        """One batch may be on its way into the journal, and one more wait for it."""
        return self.term is None or len(self.term.to_journal) < 2

    def step(self, now: WallMs) -> Step:
        inputs, self.inputs = self.inputs, []
        step = self.core.step(now, inputs)
        for job_id in step.refetch:
            self.mirror.want(Collection.JOBS, job_id)
        if self.term is None:
            assert not step.decisions
            assert not step.sends
            return step
        self.term.settle(step.settled)
        if step.decisions:
            self.term.to_journal.append((step.decisions, step.retried))
        for send in step.sends:
            self._publish(send)
        return step

    def write_journal(self) -> None:
        assert self.term is not None
        decisions, majority = self.term.to_journal.pop(0)
        entry = Entry(len(self.journal) + 1, decisions, majority, self.term.applied_through)
        self.journal.append(entry)
        self.term.last_seq = entry.seq
        self.term.open[entry.seq] = set(decisions)
        self.term.to_apply.append(entry)

    def carry_out(self, now: WallMs, luck: Luck, from_place: int = 0) -> None:
        """Apply the next entry; bad luck strikes its decisions from ``from_place`` on."""
        assert self.term is not None
        entry = self.term.to_apply.pop(0)
        if entry.majority and luck is Luck.ROLLED_BACK:
            luck = Luck.GOOD
        batch = _Batch(self.database, entry.decisions)
        struck_by: dict[str, Luck] = {}
        for place, decision in enumerate(batch.in_order):
            struck = luck if place >= from_place else Luck.GOOD
            if isinstance(decision, Fire):
                struck_by[decision.job_id] = struck
            elif batch.rides(decision):
                struck = struck_by[decision.job_id]  # one insert carries out both
            settlement = Settlement.UNKNOWN
            if struck in (Luck.GOOD, Luck.UNANSWERED):
                carried_out = batch.apply(decision, now)
                settlement = carried_out if struck is Luck.GOOD else settlement
            elif struck is Luck.ROLLED_BACK:
                settlement = Settlement.DONE
                if isinstance(decision, RecordVerdict):
                    self.database.apply(decision, now)  # these wait for a majority
            self.inputs.append(Settled(decision, settlement))
            if isinstance(decision, Dispatch) and settlement is Settlement.DONE:
                self._publish(Publish(decision.job_id, decision.attempt, decision.processor))

    def resume_paused(self, which: int, now: WallMs) -> None:
        """An old leader wakes up and applies the next thing it had in hand."""
        entries = self.paused[which]
        batch = _Batch(self.database, entries.pop(0).decisions)
        for decision in batch.in_order:
            batch.apply(decision, now)
        if not entries:
            del self.paused[which]


class _Batch:
    """The decisions of one entry, as the claim store applies them: the fires first, and with each what rides on it."""

    def __init__(self, database: Database, decisions: Sequence[Decision]) -> None:
        self._database = database
        self._riding = riding(decisions)
        self._met = {id for id in self._riding if id in database.jobs}
        self.in_order = sorted(
            decisions, key=lambda decision: not isinstance(decision, Fire | RecordVerdict | CountFailures)
        )

    def rides(self, decision: Decision) -> TypeGuard[Dispatch]:
        return isinstance(decision, Dispatch) and self._riding.get(decision.job_id) == decision

    def apply(self, decision: Decision, now: WallMs) -> Settlement:
        if self.rides(decision) and decision.job_id in self._met:
            is_done = is_carried_out(decision, self._database.jobs[decision.job_id])
            return Settlement.DONE if is_done else Settlement.LOST
        return self._database.apply(decision, now)
