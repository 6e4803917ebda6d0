"""The output of one step of the core, and the order in which its effects must happen."""

from dataclasses import dataclass

from hascheduler.dispatch.decisions import Decision, Send
from hascheduler.model.values.instants import WallMs


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
