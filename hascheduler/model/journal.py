"""The head of a journal entry: what mirrors and candidates need of it, without the decisions themselves."""

from dataclasses import dataclass
from enum import StrEnum


class EntryKind(StrEnum):
    TERM_BEGAN = "term_began"
    DECISIONS = "decisions"


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
