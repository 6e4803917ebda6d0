"""A token: who may ask this cluster for what, and for which tenant.

::

    role        what it may do (powers)
    ---------   -----------------------------------------------------------
    viewer      read
    submitter   read, submit
    operator    read, submit, operate
    admin       read, submit, operate, administer; and work, for all tenants
    worker      work

A power is demanded by each route, a tenant bounds what it reaches: a token of one tenant meets nothing of another's.
What belongs to no tenant (definitions, lanes, the cluster itself) is changed by tokens for all tenants alone.

The secret is shown once, when it is made. Stored is its SHA-256 alone: it has 256 random bits, so nobody guesses it,
and whoever reads the database can't ask for anything with what is there.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.instants import WallMs

ALL_TENANTS = "*"
SECRET_PREFIX = "hsk_"  # noqa: S105  # so that a secret is known as one wherever it turns up
PUBLISHED_PREFIX = "development-only-"
"""What every password and token begins with that stands in the repository; none of anybody's own does."""
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

    Names need not be unique: to change a secret, the next token of that name is made before this one is revoked.
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
    """What is stored instead of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
