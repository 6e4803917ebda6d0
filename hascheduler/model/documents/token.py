"""Stored tokens; ``_id`` is the digest of the secret, so the secret alone finds its token."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.token import Role, Token
from hascheduler.model.values.fields import identifier, instant_or_none, integer, text, text_or_none, wrong
from hascheduler.model.values.instants import WallMs

TOKEN_FIELDS = (
    "v",
    "rev",
    "id",
    "name",
    "role",
    "tenant",
    "created_at_ms",
    "created_by",
    "expires_at_ms",
    "session_of",
)


def encode_token(token: Token) -> dict[str, Any]:
    return {
        "_id": token.digest,
        "v": WRITTEN_VERSION,
        "rev": token.rev,
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "tenant": token.tenant,
        "created_at_ms": token.created_at_ms,
        "created_by": token.created_by,
        "expires_at_ms": token.expires_at_ms,
        # 0.2.0 does not know this field, and takes a session for a token of the same powers, which ends as soon.
        "session_of": token.session_of,
    }


def decode_token(id: object, fields: Mapping[str, Any]) -> Token:
    require_known_version(fields)
    return Token(
        digest=identifier(id),
        rev=integer(fields, "rev"),
        id=text(fields, "id"),
        name=text(fields, "name"),
        role=_decode_role(fields),
        tenant=text(fields, "tenant"),
        created_at_ms=WallMs(integer(fields, "created_at_ms")),
        created_by=text(fields, "created_by"),
        expires_at_ms=instant_or_none(fields, "expires_at_ms"),
        session_of=text_or_none(fields, "session_of"),
    )


def _decode_role(fields: Mapping[str, Any]) -> Role:
    # An unreadable role must never pass for another one: the token is quarantined, and grants nothing.
    role = fields.get("role")
    if not isinstance(role, str) or role not in set(Role):
        raise InvalidInput(("role",), wrong(fields, "role"), " or ".join(Role))
    return Role(role)
