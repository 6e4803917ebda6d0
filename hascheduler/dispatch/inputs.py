"""The inputs of a step of the core (facts from the mirror, and the few that only this process knows) and its result."""

from dataclasses import dataclass

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision, Dispatch, Send, Settlement
from hascheduler.mirror.changes import CoreFact, JobGone, JobSeen
from hascheduler.model.job import OCCUPYING, schedule_of
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class TermBegan:
    """The replica leads from here on: its stream has delivered the ``term_began`` entry.

    ``reapplied`` are the decisions of earlier terms that it has just applied again and that the stream has yet to
    confirm; the ledger starts from them.
    """

    term: int
    reapplied: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustLost:
    """The order to stop deciding. A promise that is not in the journal never happened."""


@dataclass(frozen=True, slots=True)
class Resynced:
    """The order to forget everything; the facts that follow are a fresh snapshot."""


@dataclass(frozen=True, slots=True)
class AccountsRestored:
    """The accounts of tenants and keys, and the learned costs, as an earlier leader last recorded them."""

    accounts: AccountsSnapshot


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of applying ``decision``."""

    decision: Decision
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class ProcessorLost:
    """The loss of a processor: its heartbeat has not changed for the timeout, or its process is proved dead.

    The timeout counts on this replica's monotonic clock. ``beat`` is the last heartbeat: a later one brings the
    processor back.
    """

    id: str
    beat: int


@dataclass(frozen=True, slots=True)
class ProcessorRests:
    """The rest of a processor that had not started its last jobs when a recording began; only in recordings."""

    id: str
    rest: Rest


@dataclass(frozen=True, slots=True)
class TransportSeen:
    """The state of the broker: while it does not accept messages, nothing is dispatched."""

    accepting: bool


Input = (
    CoreFact | ProcessorLost | ProcessorRests | TransportSeen | TermBegan | TrustLost | Resynced | AccountsRestored
    | Settled
)  # fmt: skip


def can_wait(seen: Input, *, ends_too: bool = False) -> bool:
    """Return True if the core may be given ``seen`` a moment later, as no decision that anyone awaits depends on it.

    That is true of how a dispatched job proceeds until it ends: it has held its slot since the decision. What follows
    from it in trouble, such as moving a job away from a processor that is gone, has limits of seconds. With
    ``ends_too``, for a core that does not await the end of any job (`Dispatcher.awaits_ends`), it is also true of the
    end of a submitted job; not of a schedule's job, as what the schedule does may follow from the ends of its jobs.
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
    """The result of a step: ``decisions`` go into the journal as one entry, then are applied, then published.

    ``retried`` if some of them were decided before and did not come back, so applying waits for a majority.
    ``sends`` concern attempts that were promised before, and need no journal.
    ``settled`` decisions have come back, or lost: a journal entry whose decisions are all settled is finished.
    ``refetch`` jobs have another state in the database than the mirror shows: read them again.
    ``wake_at_ms`` is when the next step has something to do even without new inputs; None if it never has.
    """

    decisions: tuple[Decision, ...] = ()
    retried: bool = False
    sends: tuple[Send, ...] = ()
    settled: tuple[Decision, ...] = ()
    refetch: tuple[str, ...] = ()
    wake_at_ms: WallMs | None = None
