"""Fold changes into the live version of every document that this replica knows, and own it.

Invariants: at any point of the stream the live documents are exactly those whose newest majority-committed version is
readable and live; `digest` is equal on replicas that have folded the same stream to the same position; the quarantine
is bounded, and a document leaves it when it is repaired or deleted; events are in the order of the stream.

While a partition is held silently (`hascheduler.model.partition`), its jobs and schedules are copies that another
database counts: changes to them make no events, and live ones are not counted here.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.mirror.changes import BatchSeen, Change, JournalSeen, NounSeen, Operation, Quarantined, Seen
from hascheduler.mirror.events import events_of, events_of_schedule
from hascheduler.mirror.sums import Digest, LiveCounts
from hascheduler.mirror.tables import TABLES, Table
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_journal_head
from hascheduler.model.event import Event
from hascheduler.model.job import JobState, is_batch
from hascheduler.model.leadership import JournalHead
from hascheduler.model.partition import partition_in, partition_of, partition_of_key

QUARANTINE_MAX = 1_000
MARKED_EVERY = 4
"""How many beats of one replica lie between two marks; each mark is a point of the stream that all mirrors pass."""
# Looking up an enum member costs 0.1 µs, and every change needs these.
_JOBS, _SCHEDULES, _JOURNAL, _REPLICAS, _HOLDS = (
    Collection.JOBS, Collection.SCHEDULES, Collection.JOURNAL, Collection.REPLICAS, Collection.HOLDS
)  # fmt: skip
_OF_TENANTS = frozenset({_JOBS, _SCHEDULES})
_PUT, _DELETE = Operation.PUT, Operation.DELETE
_UNDIGESTED = frozenset({Collection.PROCESSORS, Collection.LEASES, _REPLICAS, Collection.META, Collection.HOLDS})
"""Left out of the digest, which people compare by eye: they change with every heartbeat. Replicas of neighbouring
releases have equal digests only if all of them mirror every collection that is digested."""
_DIGESTED = {collection: f"{collection}/" for collection in TABLES if collection not in _UNDIGESTED}
"""The prefix of a document's id in the digest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The digest at one point of the stream, which has the same name in every mirror.

    ``ahead`` is the mirror's at that point; ``is_settled``: no document was waiting to be read.
    """

    point: str
    digest: str
    ahead: int
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of one fold.

    ``facts`` are the changes of live documents, in order; old versions and repeats give none.
    ``events`` are what happened to jobs, and what schedules missed, in order; snapshots and fetches give none. An event
    without a tenant is of a job that is not read yet, or was not read before it ended.
    ``marks`` are the digests at the points of the stream that these changes passed.
    ``wanted`` are the documents to read whole; pass the answer to `Mirror.fold_fetched`, however late. A document that
    was wanted before and not answered is wanted again, so that a failed read is not forgotten.
    """

    facts: list[Seen]
    events: list[Event]
    marks: list[Mark]
    wanted: list[tuple[Collection, str]]


class Mirror:
    def __init__(self) -> None:
        self._nouns: dict[Collection, dict[str, Any]] = {collection: {} for collection in TABLES}
        self._journal: dict[str, JournalHead] = {}
        self.quarantine: OrderedDict[tuple[Collection, str], str] = OrderedDict()
        """Why each unreadable document is left out, oldest first; at most `QUARANTINE_MAX`."""
        self._wanted: dict[tuple[Collection, str], None] = {}
        self._fetching: dict[tuple[Collection, str], None] = {}
        self._digest = Digest()
        self.silent_partitions: frozenset[int] = frozenset()
        """The partitions held silently."""
        self._events: list[Event] = []
        self._marks: list[Mark] = []
        self._live_counts = LiveCounts()
        self.ahead = 0
        """How many documents were folded that may be ahead of the stream."""

    # State

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        """Return the live nouns of a collection by id; read only."""
        return self._nouns[collection]

    def journal_head(self, name: str) -> JournalHead | None:
        """Return the newest journal entry that the stream has delivered."""
        return self._journal.get(name)

    @property
    def live_counts(self) -> LiveCounts:
        """Return the counts of live documents, to be read before the next fold."""
        return self._live_counts.added_up()

    @property
    def digest(self) -> str:
        return str(self._digest)

    # Folding

    def fold(self, changes: Iterable[Change]) -> Folded:
        return self._folded(self._fold_all(changes))

    def want(self, collection: Collection, id: str) -> None:
        """Have the document read again, as the database has it in a state other than the one known here."""
        self._wanted[(collection, id)] = None

    def fold_fetched(self, asked: Iterable[tuple[Collection, str]], changes: Sequence[Change]) -> Folded:
        """Fold an answer that may be ahead of the stream, or behind it if a delete overtook it."""
        self.ahead += 1
        current = [change for change in changes if (change.collection, change.id) in self._fetching]
        facts = self._fold_all(current)
        for key in asked:
            self._fetching.pop(key, None)
        return self._folded(facts)

    def _fold_all(self, changes: Iterable[Change]) -> list[Seen]:
        facts: list[Seen] = []
        for change in changes:
            if change.collection is _JOURNAL:
                self._fold_journal(change, facts)
            else:
                self._fold_document(change, facts)
        return facts

    def _folded(self, facts: list[Seen]) -> Folded:
        # What was wanted while an answer was on its way stays wanted: it may be newer than the answer.
        self._fetching |= self._wanted
        self._wanted.clear()
        events, self._events = self._events, []
        marks, self._marks = self._marks, []
        return Folded(facts, events, marks, list(self._fetching))

    def _fold_journal(self, change: Change, facts: list[Seen]) -> None:
        try:
            head = decode_journal_head(change.id, change.fields)
        except InvalidInput as error:
            self._set_aside(change, str(error), facts)
            return
        known = self._journal.get(head.name)
        if known is None or head.seq > known.seq:
            self._journal[head.name] = head
            facts.append(JournalSeen(head))

    def _fold_document(self, change: Change, facts: list[Seen]) -> None:
        collection, operation = change.collection, change.operation
        table = TABLES[collection]
        if not isinstance(change.id, str) or not change.id:
            if operation is _DELETE:
                self.quarantine.pop((collection, _shown(change.id)), None)
            else:
                self._set_aside(change, f"_id: a {type(change.id).__name__}; expected a text", facts)
            return
        if collection is _JOBS and not change.position and is_batch(change.id):
            facts.append(_batch_seen(change.id, change.fields))
            return
        key = (collection, change.id)
        self.ahead += change.ahead
        if self.silent_partitions and self._is_of_silent(change):
            pass  # the database it comes from has told its events
        elif collection is _JOBS and change.position:
            self._events += events_of(change, self._nouns[_JOBS].get(change.id))
        elif collection is _SCHEDULES and change.position:
            self._events += events_of_schedule(change, self._nouns[_SCHEDULES].get(change.id))
        try:
            if operation is _DELETE:
                self._drop(table, key, facts)
            elif operation is _PUT:
                if self._fetching:
                    # Newer than any read under way, whose answer must not undo it.
                    self._fetching.pop(key, None)
                self._put(table, key, change.fields, facts)
            elif table.advanced is None or not self._advance(table, key, change.fields, facts):
                known = self._follows(table, key, change.fields, facts)
                if known is not None:
                    self._patch(table, key, change.fields, known, facts)
        except InvalidInput as error:
            self._drop(table, key, facts)
            self._set_aside(change, str(error), facts)
        if collection is _HOLDS:
            self._apply_holds()
        if collection is _REPLICAS and change.position:
            self._mark(change)

    # Silence

    def _apply_holds(self) -> None:
        holds = self._nouns[_HOLDS].values()
        silent = frozenset(
            partition
            for hold in holds
            if hold.is_held and hold.is_silent and (partition := partition_of_key(hold.key)) is not None
        )
        changed, self.silent_partitions = self.silent_partitions ^ silent, silent
        for collection in (_JOBS, _SCHEDULES) if changed else ():
            for noun in self._nouns[collection].values():
                partition = partition_of(_tenant_of(collection, noun))
                if partition in silent & changed:
                    self._live_counts.replaced(collection, noun, None)
                elif partition in changed:
                    self._live_counts.replaced(collection, None, noun)

    def _is_of_silent(self, change: Change) -> bool:
        """Return True if the change is of a job or schedule in a partition held silently, as far as it tells."""
        collection = change.collection
        if collection not in _OF_TENANTS or not isinstance(change.id, str):
            return False
        known = self._nouns[collection].get(change.id)
        tenant = change.fields.get("tenant") if known is None else _tenant_of(collection, known)
        return (partition_of(tenant) if isinstance(tenant, str) else partition_in(change.id)) in self.silent_partitions

    def _count(self, collection: Collection, before: Any | None, after: Any | None) -> None:
        if self.silent_partitions and collection in _OF_TENANTS:
            before, after = (
                None if noun is None or partition_of(_tenant_of(collection, noun)) in self.silent_partitions else noun
                for noun in (before, after)
            )
        self._live_counts.replaced(collection, before, after)

    def _mark(self, change: Change) -> None:
        replica = self._nouns[_REPLICAS].get(str(change.id))
        if replica is not None and replica.beat == change.fields.get("beat") and replica.beat % MARKED_EVERY == 0:
            is_settled = not self._wanted and not self._fetching
            self._marks.append(Mark(f"{replica.id}/{replica.beat}", self.digest, self.ahead, is_settled))

    def _follows(
        self, table: Table, key: tuple[Collection, str], patch: Mapping[str, Any], facts: list[Seen]
    ) -> Any | None:
        """Return the noun that ``patch`` changes, or None if the patch is old or the document must be read."""
        known = self._nouns[key[0]].get(key[1])
        if known is None:
            if table.ends(patch):
                self._drop(table, key, facts, patch)
            else:
                self._wanted[key] = None
            return None
        if table.revised and not patch.keys() <= table.unnumbered:
            rev = patch.get(table.revised)
            if rev is None:
                # Written by hand. Only the document itself shows whether this is older than what is known.
                self._wanted[key] = None
                return None
            if isinstance(rev, int) and rev != known.rev + 1:
                if rev > known.rev:
                    self._wanted[key] = None
                return None
        return known

    def _patch(
        self, table: Table, key: tuple[Collection, str], patch: Mapping[str, Any], known: Any, facts: list[Seen]
    ) -> None:
        if table.ends(patch):
            self._drop(table, key, facts, patch)  # the rest of the patch does not matter any more
            return
        decoded = table.decode_patch(patch)
        if decoded is None:
            self._put(table, key, {**table.encode(known), **patch}, facts)
        else:
            self._accept(table, key, known, table.patched(known, decoded), facts)

    def _advance(self, table: Table, key: tuple[Collection, str], patch: Mapping[str, Any], facts: list[Seen]) -> bool:
        """Fold a patch of unnumbered fields alone, which is frequent; return False if it is another patch."""
        known = self._nouns[key[0]].get(key[1])
        if known is None or table.advanced is None or not patch.keys() <= table.unnumbered:
            return False
        noun = table.advanced(known, patch)
        if noun != known and table.revision(noun) >= table.revision(known):
            self._nouns[key[0]][key[1]] = noun
            facts.append(_arrived(table, key, noun))
        return True

    def _put(self, table: Table, key: tuple[Collection, str], fields: Mapping[str, Any], facts: list[Seen]) -> None:
        collection, id = key
        noun = table.decode(id, fields)
        if self.quarantine:
            self.quarantine.pop(key, None)
        nouns = self._nouns[collection]
        known = nouns.get(id)
        if known is not None and (table.revision(noun) < table.revision(known) or noun == known):
            return
        if table.ends(fields):
            self._drop(table, key, facts, fields)
            return
        self._accept(table, key, known, noun, facts)

    def _accept(self, table: Table, key: tuple[Collection, str], known: Any, noun: Any, facts: list[Seen]) -> None:
        collection, id = key
        self._digested(key, known, noun)
        self._nouns[collection][id] = noun
        self._count(collection, known, noun)
        facts.append(_arrived(table, key, noun))

    def _digested(self, key: tuple[Collection, str], before: Any, after: Any) -> None:
        # A schedule's cursor is left out: only its edits are numbered.
        prefix = _DIGESTED.get(key[0])
        if prefix is not None:
            self._digest.replace(
                prefix + key[1], None if before is None else before.rev, None if after is None else after.rev
            )

    def _drop(
        self, table: Table, key: tuple[Collection, str], facts: list[Seen], last: Mapping[str, Any] | None = None
    ) -> None:
        """Drop a document that was deleted, or ended as ``last`` says.

        Report it even if it was never seen: the core may have promised it.
        """
        self.quarantine.pop(key, None)
        self._wanted.pop(key, None)
        # A read that began before this must not bring the document back.
        self._fetching.pop(key, None)
        known = self._nouns[key[0]].pop(key[1], None)
        self._count(key[0], known, None)
        if known is not None:
            self._digested(key, known, None)
        facts.append(NounSeen(*key) if table.left is None else table.left(key[1], last or {}))

    def _set_aside(self, change: Change, reason: str, facts: list[Seen]) -> None:
        id = _shown(change.id)
        self.quarantine[(change.collection, id)] = reason
        while len(self.quarantine) > QUARANTINE_MAX:
            self.quarantine.popitem(last=False)
        facts.append(Quarantined(change.collection, id, reason))


def _arrived(table: Table, key: tuple[Collection, str], noun: Any) -> Seen:
    return NounSeen(*key, noun) if table.arrived is None else table.arrived(noun)


def _batch_seen(batch: str, read: Mapping[str, Any]) -> BatchSeen:
    failed = read["failed"]
    return BatchSeen(batch, read["is_live"], None if failed is None else (failed[0], JobState(failed[1])))


def _tenant_of(collection: Collection, noun: Any) -> str:
    tenant: str = noun.tenant if collection is _JOBS else noun.template.tenant
    return tenant


def _shown(id: object) -> str:
    return id if isinstance(id, str) else repr(id)[:200]
