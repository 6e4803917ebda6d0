"""What goes into a step of the core, facts from the mirror and the few things only this process knows, and what comes
out of it."""

from dataclasses import dataclass

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision, Dispatch, Send, Settlement
from hascheduler.mirror.changes import CoreFact, JobGone, JobSeen
from hascheduler.model.job import OCCUPYING, schedule_of
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class TermBegan:
    """This replica leads from here on: its stream has delivered the ``term_began`` entry.

    ``reapplied`` are the decisions of earlier terms that it has just applied again and that the stream has yet to
    confirm; the ledger starts from them.
    """

    term: int
    reapplied: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustLost:
    """Stop deciding. A promise that is not in the journal never happened."""


@dataclass(frozen=True, slots=True)
class Resynced:
    """Forget everything; the facts that follow are a fresh snapshot."""


@dataclass(frozen=True, slots=True)
class AccountsRestored:
    """The accounts of tenants and keys, and the learned costs, as an earlier leader recorded them last."""

    accounts: AccountsSnapshot


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of applying ``decision``."""

    decision: Decision
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class ProcessorLost:
    """The processor's heartbeat has not changed for the heartbeat timeout, on this replica's monotonic clock, or its
    process is proved dead.

    ``beat`` is its last heartbeat: a later one brings the processor back.
    """

    id: str
    beat: int


@dataclass(frozen=True, slots=True)
class ProcessorRests:
    """Only in recordings: the processor had not taken up its last jobs when this one began."""

    id: str
    rest: Rest


@dataclass(frozen=True, slots=True)
class TransportSeen:
    """Whether the broker takes messages. While it does not, nothing is dispatched."""

    accepting: bool


Input = (
    CoreFact | ProcessorLost | ProcessorRests | TransportSeen | TermBegan | TrustLost | Resynced | AccountsRestored
    | Settled
)  # fmt: skip


def can_wait(seen: Input, *, ends_too: bool = False) -> bool:
    """Whether the core may be given ``seen`` a moment later: nothing that is waited for is decided because of it.

    True of how a dispatched job gets on until it ends: it has held its slot since the decision. What it leads to in
    trouble, such as moving a job away from a processor that is gone, has limits of seconds. With ``ends_too``, which is
    for a core that does not await the end of any job (`Dispatcher.awaits_ends`), also of the end of one that was
    submitted; what a schedule does may follow from the ends of its jobs.
    """
    match seen:
        case Settled(Dispatch(), Settlement.DONE):
            return True
        case JobSeen(job):
            return job.state in OCCUPYING and job.cancel_requested_at_ms is None
        case JobGone(job_id):
            return ends_too and schedule_of(job_id) is None
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Step:
    """First ``decisions`` go into the journal, as one entry; then they are applied; then dispatches are published.

    ``retried``: some of them were decided before and did not come back, so applying waits for a majority.
    ``sends`` concern attempts that were promised before, and need no journal.
    ``settled`` decisions have come back, or lost: a journal entry whose decisions are all settled is finished.
    ``refetch`` jobs have another state in the database than the mirror shows: read them again.
    ``wake_at_ms`` is when the next step has something to do even without new inputs; None: it will have nothing.
    """

    decisions: tuple[Decision, ...] = ()
    retried: bool = False
    sends: tuple[Send, ...] = ()
    settled: tuple[Decision, ...] = ()
    refetch: tuple[str, ...] = ()
    wake_at_ms: WallMs | None = None
