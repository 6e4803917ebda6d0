"""Tokens as the API makes and revokes them, and the log of who changed what.

No request reads a token here: they are mirrored, see `hascheduler.ports.ClusterView.token`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hascheduler.model.values.instants import WallMs
from hascheduler.ports.resources import StoredDocument
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.token import Token


class TokenStore(Protocol):
    async def create(self, token: Token) -> None:
        """Insert; a repeat after an unknown answer is harmless."""

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """By id, those after ``after``, of that tenant or of all."""

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        """Insert; then of the sessions with ids like it delete those that have expired by ``now``, and of its parent's
        the oldest where more than ``living_max`` are left. A repeat after an unknown answer is harmless.

        Where several begin at once, there may be more for a moment; after the last of them there are not.
        """

    async def revoke(self, id: str, tenant: str | None) -> bool:
        """Delete, with all its sessions; False when there is none by that id (and of that tenant, where one is given).

        The sessions go first: after a failure in between another call finds the token, and finishes.
        """


def ended_sessions(stored: Iterable[StoredDocument], parent: str | None, living_max: int, now: WallMs) -> Sequence[str]:
    """The digests of the ``stored`` sessions to be deleted: what has expired by ``now``, and of the
    ``parent`` the oldest of more than ``living_max``."""
    expired: list[StoredDocument] = []
    living: list[StoredDocument] = []
    for each in stored:
        (expired if _instant(each.get("expires_at_ms")) <= now else living).append(each)
    own = [each for each in living if each["session_of"] == parent]
    own.sort(key=lambda each: (_instant(each.get("created_at_ms")), each["id"]), reverse=True)
    return [each["_id"] for each in (*expired, *own[living_max:])]


def _instant(stored: object) -> int:
    """A session that ends at no readable time has ended: none is made so."""
    return stored if isinstance(stored, int) else 0


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """All that is given must hold. ``who`` is the name or the id of a token; ``path`` is what paths begin with."""

    who: str | None = None
    tenant: str | None = None
    path: str | None = None
    since_ms: WallMs | None = None


class AuditStore(Protocol):
    async def append(self, records: Sequence[AuditRecord]) -> None:
        """Insert those that are not there yet, so that a repeat after an unknown answer is harmless."""

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """The newest first, those before the id ``after``."""

    async def trim(self, records_max: int) -> int:
        """Delete the oldest beyond ``records_max``, some thousands at most; how many. Where several do it at once, a
        few more may go."""


def audit_id(at_ms: int, count: int, process: str) -> str:
    """Sorts by time: instants have thirteen digits until 2286."""
    return f"{at_ms:013d}.{count % 1_000_000:06d}.{process}"
