"""An access token: the powers of its holder, and for which tenant.

::

    role        what it may do (powers)
    ---------   -----------------------------------------------------------
    viewer      read
    submitter   read, submit
    operator    read, submit, operate
    admin       read, submit, operate, administer; and work, for all tenants
    worker      work

Each route demands a power, and the tenant bounds its reach: to a token of one tenant, the data of others do not exist.
Only tokens for all tenants change what belongs to no tenant (definitions, lanes, the cluster itself).

The secret is shown once, when it is made. Only its SHA-256 is stored: the secret has 256 random bits, so it can't be
guessed, and the digests in the database give no access.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.instants import WallMs

ALL_TENANTS = "*"
SECRET_PREFIX = "hsk_"  # noqa: S105  # so that secrets can be recognized wherever they turn up
PUBLISHED_PREFIX = "development-only-"
"""The prefix of every password and token in the repository; generated ones never have it."""
SECRET_BYTES = 32
SECRET = re.compile(r"hsk_[A-Za-z0-9_-]{43}")


class Power(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    """Jobs: submit and cancel. Schedules: trigger."""
    OPERATE = "operate"
    """Schedules: write. Jobs: retry, reprioritize."""
    ADMINISTER = "administer"
    """Tokens and the audit log; lanes and tenants."""
    WORK = "work"
    """Take jobs of all tenants and end them."""


class Role(StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"

    def may(self, power: Power) -> bool:
        return power in POWERS[self]


POWERS: Mapping[Role, frozenset[Power]] = {
    Role.VIEWER: frozenset({Power.READ}),
    Role.SUBMITTER: frozenset({Power.READ, Power.SUBMIT}),
    Role.OPERATOR: frozenset({Power.READ, Power.SUBMIT, Power.OPERATE}),
    Role.ADMIN: frozenset(Power),
    Role.WORKER: frozenset({Power.WORK}),
}


@dataclass(frozen=True, slots=True)
class Token:
    """``id`` is public, ``digest`` what the secret hashes to; ``tenant`` may be `ALL_TENANTS`.

    Names need not be unique: to rotate a secret, create the next token of that name before revoking this one.
    """

    digest: str
    id: str
    name: str
    role: Role
    tenant: str
    created_at_ms: WallMs
    created_by: str
    expires_at_ms: WallMs | None = None
    rev: int = 1

    def has_expired(self, now: WallMs) -> bool:
        return self.expires_at_ms is not None and now >= self.expires_at_ms


def digest_of(secret: str) -> str:
    """The SHA-256 that is stored instead of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
