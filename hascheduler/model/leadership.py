"""Leadership: the lease names the leader and its term, and serves liveness only; the journal is the fence.

The head of a journal entry has what mirrors and candidates need, without the decisions.
"""

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """One version of a lease. ``(holder, term, renewals)`` identifies it: every write changes one of them.

    ``holder`` is a candidate id, unique per process start, or empty once released. ``endpoint`` is the
    ``host:port`` where the holder proves that its process lives. The times are the holder's wall clock and for
    people only; no decision compares them.
    """

    name: str
    holder: str
    term: int
    renewals: int
    endpoint: str
    acquired_at_ms: WallMs
    renewed_at_ms: WallMs
    lease_duration_ms: int
    transitions: int


class EntryKind(StrEnum):
    TERM_BEGAN = "term_began"
    """The first entry of a term, without decisions."""
    DECISIONS = "decisions"
    """The decisions of one step."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """Entry ``seq`` of the journal of that name, written in ``term`` by ``holder``.

    Everything up to ``applied_through`` has been applied and has come back in the leader's stream.
    """

    name: str
    seq: int
    term: int
    kind: EntryKind
    holder: str
    applied_through: int
