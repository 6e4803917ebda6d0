"""Who watches the changes of leadership, without a hand in them.

The leader names each transition to one `LeadershipObserver`, in this order for a term that decides::

    challenged ─► won ─► began ─► reapplied ─► deciding ─► journaled, applied (for each batch) ─► ended
"""

from collections.abc import Sequence
from typing import Protocol

from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.model.journal import JournalHead
from hascheduler.model.lease import LeaseRecord


class LeadershipObserver(Protocol):
    """No method awaits, does I/O or raises: nothing here can hold a takeover up.

    What concerns a term names it, as its loops may report something after its end. ``live``: the stream is not behind.
    """

    def lease_known(self, record: LeaseRecord | None, *, live: bool) -> None:
        """The newest version of the lease that this replica knows; it may be the same as before."""
        ...

    def journal_seen(self, head: JournalHead, *, live: bool) -> None:
        """The stream has delivered that entry."""
        ...

    def holder_died(self, holder: str) -> None:
        """The leader's process is proved dead."""
        ...

    def holder_stands_still(self, holder: str) -> None:
        """The leader is suspected to stand still; its lease may be challenged unless it renews."""
        ...

    def challenged(self, expected: LeaseRecord | None) -> None:
        """This replica is about to take the lease, if it still is as ``expected``."""
        ...

    def won(self, term: int) -> None:
        """The lease is this replica's, with that term."""
        ...

    def began(self, head: JournalHead) -> None:
        """The journal has this ``term_began``."""
        ...

    def reapplied(self, term: int, entries: int, decisions: int) -> None:
        """What earlier terms may have left undone is carried out."""
        ...

    def deciding(self, term: int) -> None:
        """The stream has delivered the ``term_began``: the core decides from now on."""
        ...

    def journaled(self, term: int) -> None:
        """A batch of decisions is in the journal."""
        ...

    def applied(self, term: int, pairs: Sequence[tuple[Decision, Settlement]]) -> None:
        """That batch is carried out; ``pairs`` are those decisions that are settled for the first time."""
        ...

    def ended(self, term: int) -> None:
        """The term is over, for whatever reason."""
        ...


class _Unobserved:
    def lease_known(self, record: LeaseRecord | None, *, live: bool) -> None: ...

    def journal_seen(self, head: JournalHead, *, live: bool) -> None: ...

    def holder_died(self, holder: str) -> None: ...

    def holder_stands_still(self, holder: str) -> None: ...

    def challenged(self, expected: LeaseRecord | None) -> None: ...

    def won(self, term: int) -> None: ...

    def began(self, head: JournalHead) -> None: ...

    def reapplied(self, term: int, entries: int, decisions: int) -> None: ...

    def deciding(self, term: int) -> None: ...

    def journaled(self, term: int) -> None: ...

    def applied(self, term: int, pairs: Sequence[tuple[Decision, Settlement]]) -> None: ...

    def ended(self, term: int) -> None: ...


UNOBSERVED: LeadershipObserver = _Unobserved()
