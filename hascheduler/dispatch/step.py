"""What one step of the core hands out, and the order in which its effects must happen."""

from dataclasses import dataclass

from hascheduler.dispatch.decisions import Decision, Send
from hascheduler.model.instants import WallMs


@dataclass(frozen=True, slots=True)
class Step:
    """First ``decisions`` go into the journal, as one entry; then they are applied; then dispatches are published.

    ``retried``: some of them were decided before and did not come back, so applying waits for a majority.
    ``sends`` concern attempts that are long since promised, and need no journal.
    ``settled`` decisions have come back, or lost: a journal entry whose decisions are all settled is done with.
    ``refetch`` jobs were met in another state than the mirror shows: have them read again.
    ``wake_at_ms`` is when the next step has something to do even if nothing is seen before; None: nothing will.
    """

    decisions: tuple[Decision, ...] = ()
    retried: bool = False
    sends: tuple[Send, ...] = ()
    settled: tuple[Decision, ...] = ()
    refetch: tuple[str, ...] = ()
    wake_at_ms: WallMs | None = None
