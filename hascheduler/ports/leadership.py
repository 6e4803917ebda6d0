"""The lease, the journal and how its decisions are applied, and what leaders and movers keep for later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.partition import Hold
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.schema.failover import Failover
from hascheduler.schema.replica import ReplicaStatus


class Clock(Protocol):
    def wall_ms(self) -> WallMs:
        """Return milliseconds since the Unix epoch; may jump."""

    def mono_ms(self) -> MonoMs:
        """Return milliseconds that only grow."""


class LeaseStore(Protocol):
    """Who leads, by name. Every write is one compare-and-set, acknowledged by a majority."""

    async def get(self, name: str) -> LeaseRecord | None:
        """Return the newest majority-committed record."""

    async def create(self, record: LeaseRecord) -> bool:
        """Insert the first record of its name; False if there is one."""

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        """Replace ``expected`` (same holder, term and renewals) by ``proposed``; False if it has changed."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry: its head, when it was written (the leader's wall clock, for people) and what was decided."""

    head: JournalHead
    at_ms: WallMs
    decisions: tuple[Decision, ...] = ()


class Journal(Protocol):
    """The ordered record of every decision: one entry per (name, seq), written once, never changed."""

    async def tail(self, name: str) -> JournalHead | None:
        """Return the head of the newest entry, read so that no earlier acknowledged insert can be missing."""

    async def insert(self, entry: JournalEntry) -> bool:
        """Insert the entry, acknowledged by a majority; False if anybody has already written that seq."""

    async def get(self, name: str, seq: int) -> JournalEntry | None: ...

    async def read(self, name: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        """Return the entries strictly between, in order."""

    async def trim(self, name: str, through_seq: int, before_ms: WallMs) -> int:
        """Delete entries up to ``through_seq`` that are older than ``before_ms``, and return how many."""


class ClaimStore(Protocol):
    """Applies decisions to the database, in groups."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        """Apply the decisions and return one settlement each, in order; a repeat returns the same settlements.

        Fires come before dispatches of the jobs they insert. A dispatch requires ``pending`` and the attempt before
        it; a requeue or fail requires its attempt. A fire whose job is too large to store is REFUSED: its time is
        recorded as unstorable, and the cursor passes it. If the database does not answer, the settlement is UNKNOWN,
        not an exception.
        """


class AccountStore(Protocol):
    async def save(self, name: str, term: int, accounts: AccountsSnapshot) -> bool:
        """Replace the stored accounts; False if a later term has stored some. They need not survive a failover."""

    async def load(self, name: str) -> AccountsSnapshot:
        """Return the accounts saved last, or empty ones; raise `InvalidInput` if they can't be read."""


class ReplicaBoard(Protocol):
    """The replicas' own records; one that is not renewed for a minute disappears."""

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        """Write the record, and return the database's clock at that write if it tells."""

    async def remove(self, replica_id: str) -> None: ...


FAILOVERS_MAX = 20
"""How many failovers are kept of each name."""


class FailoverStore(Protocol):
    """The newest `FAILOVERS_MAX` failovers of each name. No decision depends on them."""

    async def save(self, failover: Failover) -> None:
        """Store it in place of one of the same term, and delete those that are too old. May be repeated."""

    async def newest(self, name: str, limit: int) -> Sequence[Failover]:
        """Return the newest ``limit``, the latest term first; leave out those that can't be read."""


class HoldStore(Protocol):
    async def get(self, key: str) -> Hold | None:
        """Return the newest majority-committed hold of that key; `InvalidInput` if it can't be read."""

    async def all(self) -> Mapping[str, Hold]:
        """Return all readable holds by their keys."""

    async def put(self, hold: Hold) -> bool:
        """Insert the hold or replace one of an earlier revision, acknowledged by a majority.

        False if the stored one has this revision or a later one.
        """
