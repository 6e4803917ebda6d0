"""The rights of an access token (`hascheduler.schema.token`): the powers of its holder, and their tenant.

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

A *session* of the dashboard is a token that ends and that names its parent, the token that its holder logged in with::

    parent   ``token-3f9a0c11d2e4``                    valid until it is revoked or expires
    session  ``session-3f9a0c11d2e4-5b1e…``            valid until then, and until it ends itself

It may do what its parent may, for as long as the parent is valid. Its secret is the value of a cookie, and opens
nothing in an ``Authorization`` header; the parent's opens nothing in a cookie.
"""

import hashlib
import re
from collections.abc import Mapping
from enum import StrEnum

ALL_TENANTS = "*"
SECRET_PREFIX = "hsk_"  # noqa: S105  # so that secrets can be recognized wherever they turn up
PUBLISHED_PREFIX = "development-only-"
"""The prefix of every password and token in the repository; generated ones never have it."""
SECRET_BYTES = 32
SECRET = re.compile(r"hsk_[A-Za-z0-9_-]{43}")
SETTINGS_TOKEN_ID = "settings"  # noqa: S105  # a public id
"""The public id of the admin token in the settings, which is stored nowhere."""
_SESSION = "session-"


class Power(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    """Submit and cancel jobs, trigger schedules."""
    OPERATE = "operate"
    """Write schedules, retry and reprioritize jobs."""
    ADMINISTER = "administer"
    """Manage tokens, lanes and tenants, and read the audit log."""
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


def digest_of(secret: str) -> str:
    """Return the SHA-256 that is stored instead of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def session_id(parent: str, random: str) -> str:
    """Return the public id of a session of the token with the public id ``parent``; ``random`` holds no ``-``."""
    return f"{_SESSION}{parent.removeprefix('token-')}-{random}"


def sessions_of(id: str) -> str:
    """Return the common beginning of the ids of all sessions with the parent of session ``id``; other ids as is."""
    return f"{id.rpartition('-')[0]}-" if id.startswith(_SESSION) else id
