"""The journal as a fence: how a leadership begins, and how it may write.

A leader acts only through the journal, and the journal takes one entry per seq. A takeover is the insert of a
``term_began`` entry right after the newest entry. From then on the old leader's next insert finds its seq taken, and so
the old leader learns that it is deposed, whatever its clock shows and after a pause of an hour::

    seq    41          42          43               44
         decisions   decisions   term_began (8)   decisions
         term 7      term 7      term 8           term 8
                                   ▲
                                   └─ term 7, awake again, inserts its 43: a duplicate key, and that was its last act

Guarantees
----------
1. *One order.* The decisions of all leaders are one sequence without gaps.
2. *One term after the other.* After a ``term_began`` there is no entry of an older term.
3. *No decision is lost.* Every later leader finds each acknowledged entry, and before it decides, it applies again the
   entries that may not have been applied (``applied_through`` marks where they begin).
4. *No decision on partial knowledge.* A term decides once its own stream has delivered its ``term_began``: everything
   committed before is then in its mirror.

The assumptions: an insert that a majority acknowledged stays (MongoDB's ``w: majority`` with journaling); ``_id`` is
unique. Nothing is assumed about clocks, delays, pauses or the lease; if everybody held the lease at once, leaders would
depose each other in turn, and 1 to 4 would hold.

Not guaranteed: that the writes an old leader has in flight arrive before the new one decides. They may come later, and
do no harm, because each is a compare-and-set on state and attempt or the insert of a deterministic id
(`hascheduler.ports.ClaimStore`): a late write is one that the new leader has applied again already, or its job has
moved on and the write is lost. Nor is it guaranteed that handlers run once: delivery is at least once; for their own
side effects the job's id is the key and the attempt the fencing token.

The rules, each of which a test breaks on purpose:

- An entry follows a tail that was read with a term not above one's own; a higher term means that the lease was wrong.
- An insert without an answer is repeated with the same seq. If this very term and holder have written the seq, the
  first insert had succeeded.
- Any other entry at that seq means deposed. There is no way back into the same term.

No transaction is held open, so a paused leader blocks nobody. ``make cluster-sim`` and ``tests/mutants`` show the
failures that all this survives.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from hascheduler.dispatch.decisions import Decision
from hascheduler.errors import StoreUnavailable
from hascheduler.model.leadership import EntryKind, JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Journal, JournalEntry

_BEGIN_TRIES = 100
"""An old leader that is alive and fast may insert entries between our read and our insert."""
_INSERT_TRIES = 50


@dataclass(frozen=True, slots=True)
class Deposed:
    """The journal holds an entry of another leader; ``term`` is its term."""

    term: int


class Fence:
    """The right to append in one term. Made by `begin`; useless for ever once `append` has returned `Deposed`."""

    def __init__(self, journal: Journal, began: JournalHead) -> None:
        self._journal = journal
        self._last = began
        self.began = began

    @classmethod
    async def begin(
        cls, journal: Journal, *, name: str, term: int, holder: str, now: WallMs, trusted: Callable[[], bool]
    ) -> "Fence | Deposed":
        """Insert the ``term_began`` entry; raise `StoreUnavailable` if there was no answer while ``trusted``."""
        for _ in range(_BEGIN_TRIES):
            tail = await journal.tail(name)
            if tail is not None and tail.term >= term:
                return Deposed(tail.term)
            head = JournalHead(
                name=name,
                seq=1 if tail is None else tail.seq + 1,
                term=term,
                kind=EntryKind.TERM_BEGAN,
                holder=holder,
                applied_through=0 if tail is None else tail.applied_through,
            )
            if _is_own(await _written(journal, JournalEntry(head, now), trusted), head):
                return cls(journal, head)
        raise StoreUnavailable(f"the journal's tail moved {_BEGIN_TRIES} times while term {term} tried to begin")

    @property
    def term(self) -> int:
        return self.began.term

    async def append(
        self, decisions: tuple[Decision, ...], applied_through: int, now: WallMs, trusted: Callable[[], bool]
    ) -> JournalEntry | Deposed:
        """Insert the next entry; raise `StoreUnavailable` if there was no answer while ``trusted``."""
        head = JournalHead(
            name=self._last.name,
            seq=self._last.seq + 1,
            term=self.term,
            kind=EntryKind.DECISIONS,
            holder=self._last.holder,
            applied_through=applied_through,
        )
        entry = JournalEntry(head, now, decisions)
        stored = await _written(self._journal, entry, trusted)
        if not _is_own(stored, head):
            return Deposed(stored.term)
        self._last = head
        return entry


def _is_own(stored: JournalHead, head: JournalHead) -> bool:
    # The holder too: if its lease is deleted by hand twice, two holders could get the same term before it begins.
    return (stored.term, stored.holder) == (head.term, head.holder)


async def _written(journal: Journal, entry: JournalEntry, trusted: Callable[[], bool]) -> JournalHead:
    """Try to insert ``entry``, and return the head of the entry that is then at its seq."""
    try:
        return await _tried(journal, entry)
    except StoreUnavailable as error:
        failed = error
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_random_exponential(multiplier=0.05, max=1),
        stop=lambda state: state.attempt_number >= _INSERT_TRIES or not trusted(),
        reraise=True,
    ):
        with attempt:
            if attempt.retry_state.attempt_number == 1:
                raise failed
            return await _tried(journal, entry)
    raise AssertionError("unreachable: the retrying either returns or raises")


async def _tried(journal: Journal, entry: JournalEntry) -> JournalHead:
    if await journal.insert(entry):
        return entry.head
    stored = await journal.get(entry.head.name, entry.head.seq)
    if stored is None:
        # Just written and gone: it was trimmed, or deleted by hand. Do not build on it.
        raise StoreUnavailable(f"journal entry {entry.head.seq} is neither free nor readable")
    return stored.head
