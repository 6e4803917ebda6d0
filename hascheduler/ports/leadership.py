"""Who leads, what was decided and how it is carried out, and what leaders and movers keep for later."""

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
        """Milliseconds since the Unix epoch; may jump."""

    def mono_ms(self) -> MonoMs:
        """Milliseconds that only grow."""


class LeaseStore(Protocol):
    """Who leads, by name. Every write is one compare-and-set, acknowledged by a majority."""

    async def get(self, name: str) -> LeaseRecord | None:
        """The newest majority-committed record."""

    async def create(self, record: LeaseRecord) -> bool:
        """Insert the first record of its name; False if there is one."""

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        """Replace ``expected`` (same holder, term and renewals) by ``proposed``; False when it is no longer that."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry: its head, when it was written (the leader's wall clock, for people) and what was decided."""

    head: JournalHead
    at_ms: WallMs
    decisions: tuple[Decision, ...] = ()


class Journal(Protocol):
    """The ordered record of every decision: one entry per (name, seq), written once, never changed."""

    async def tail(self, name: str) -> JournalHead | None:
        """The head of the newest entry, read so that no earlier acknowledged insert can be missing."""

    async def insert(self, entry: JournalEntry) -> bool:
        """Insert, acknowledged by a majority; False when that seq is already written (by whomever)."""

    async def get(self, name: str, seq: int) -> JournalEntry | None: ...

    async def read(self, name: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        """The entries strictly between, in order."""

    async def trim(self, name: str, through_seq: int, before_ms: WallMs) -> int:
        """Delete entries up to ``through_seq`` that are older than ``before_ms``; how many."""


class ClaimStore(Protocol):
    """Carries decisions out, in groups."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        """One settlement for each decision, in their order; applying a decision twice settles it alike twice.

        Fires come before dispatches of the jobs they insert. A dispatch demands ``pending`` and the attempt before
        it; a requeue or fail demands its attempt. A fire whose job no database can hold is REFUSED: its time is
        recorded as unstorable, and the cursor passes it. No exception for the database's absence: that is UNKNOWN.
        """


class AccountStore(Protocol):
    async def save(self, name: str, term: int, accounts: AccountsSnapshot) -> bool:
        """Replace what is stored; False when a later term has stored something. Need not survive a fail-over."""

    async def load(self, name: str) -> AccountsSnapshot:
        """What was saved last, or empty accounts; `InvalidInput` when that can't be read."""


class ReplicaBoard(Protocol):
    """Where each replica writes its own record; one that is not renewed for a minute disappears."""

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        """What the database's clock said at that write, where it tells."""

    async def remove(self, replica_id: str) -> None: ...


FAILOVERS_MAX = 20
"""How many are kept of each name."""


class FailoverStore(Protocol):
    """The newest `FAILOVERS_MAX` of each name. Nothing that is decided rests on them."""

    async def save(self, failover: Failover) -> None:
        """Keep it, in the place of one of the same term, and forget those that are too old. May be repeated."""

    async def newest(self, name: str, limit: int) -> Sequence[Failover]:
        """The newest ``limit``, the latest term first; those that can't be read are left out."""


class HoldStore(Protocol):
    async def get(self, key: str) -> Hold | None:
        """Return the newest majority-committed hold of that key; `InvalidInput` if it can't be read."""

    async def all(self) -> Mapping[str, Hold]:
        """Return all readable holds by their keys."""

    async def put(self, hold: Hold) -> bool:
        """Insert the hold or replace one of an earlier revision, acknowledged by a majority; False if the stored one
        has this revision or a later one."""
