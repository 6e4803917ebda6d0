"""Tokens as the API makes and revokes them, and the log of who changed what.

No request reads a token here: they are mirrored, see `hascheduler.ports.ClusterView.token`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hascheduler.model.instants import WallMs
from hascheduler.model.token import Token
from hascheduler.ports.resources import StoredDocument


class TokenStore(Protocol):
    async def create(self, token: Token) -> None:
        """Insert; a repeat after an unknown answer is harmless."""
        ...

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """By id, those after ``after``, of that tenant or of all."""
        ...

    async def revoke(self, id: str, tenant: str | None) -> bool:
        """Delete; False when there is none by that id (and of that tenant, where one is given)."""
        ...


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request that was to change something, whether it did or not. Of its body the reason alone, never a secret.

    ``id`` sorts by time. ``token_id``, ``role`` and ``tenant`` are None where the caller was not identified.
    """

    id: str
    at_ms: WallMs
    who: str
    """The name of the token, or ``anonymous``."""
    token_id: str | None
    role: str | None
    tenant: str | None
    """Of the caller, not of what it changed; ``*`` is all."""
    address: str
    method: str
    path: str
    route: str | None
    """The pattern that the path matched."""
    target: str | None
    """The id or name of what it was about, where it was about one thing."""
    status: int
    request_id: str
    left_out: int = 0
    """How many refusals of the same caller before this one were not recorded."""
    because: str | None = None
    """Why, as the caller said, who paused something."""


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
        ...

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """The newest first, those before the id ``after``."""
        ...

    async def trim(self, records_max: int) -> int:
        """Delete the oldest beyond ``records_max``, some thousands at most; how many. Where several do it at once, a
        few more may go."""
        ...


def encode_audit_record(record: AuditRecord) -> dict[str, Any]:
    """Its stored form, without the instant at which the database forgets it."""
    return {
        "_id": record.id,
        "at_ms": record.at_ms,
        "who": record.who,
        "token_id": record.token_id,
        "role": record.role,
        "tenant": record.tenant,
        "address": record.address,
        "method": record.method,
        "path": record.path,
        "route": record.route,
        "target": record.target,
        "status": record.status,
        "request_id": record.request_id,
        **({"left_out": record.left_out} if record.left_out else {}),
        **({} if record.because is None else {"because": record.because}),
    }


def audit_id(at_ms: int, count: int, process: str) -> str:
    """Sorts by time: instants have thirteen digits until 2286."""
    return f"{at_ms:013d}.{count % 1_000_000:06d}.{process}"
