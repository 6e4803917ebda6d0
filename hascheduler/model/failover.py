"""A change of leadership, as the new leader saw it."""

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.values.instants import WallMs


class Cause(StrEnum):
    """How the lease became free."""

    FIRST = "first"
    """There was no leader before."""
    RELEASED = "released"
    """The holder released it."""
    DIED = "died"
    """There was proof that the holder's process is dead."""
    STOOD_STILL = "stood_still"
    """Nothing of the holder came by, and its process did not answer; it was followed before its lease ran out."""
    LAPSED = "lapsed"
    """It was not renewed for its duration; or the new leader had held it itself, and no longer trusted it."""
    DELETED = "deleted"
    """The stored lease was deleted by hand."""


@dataclass(frozen=True, slots=True)
class Failover:
    """How ``holder`` came to lead the shard in ``term``.

    ``gap_ms`` ends at ``deciding_at_ms``, when the new leader could decide, and begins with the last sign of the leader
    before; None if no such sign is known. ``first_decision_ms`` is from there to the first decision; None if nothing
    was due.
    """

    shard: str
    term: int
    holder: str
    cause: Cause
    deciding_at_ms: WallMs
    gap_ms: int | None = None
    first_decision_ms: int | None = None
