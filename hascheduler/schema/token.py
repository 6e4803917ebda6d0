"""An access token as it is requested, stored and shown; `hascheduler.model.token` defines the rights of its role.

``_id`` of its document is the digest of the secret, so the secret alone finds its token.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, Strict
from pydantic import ValidationInfo as Info

from hascheduler.model.token import ALL_TENANTS, Role
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.forms import NAME, REQUEST, Instant, Integer, Name, span, wrong
from hascheduler.schema.noun import Noun, Part

_LIFE_MS_MIN = 1_000
_LIFE_MS_MAX = 10 * 366 * 86_400_000


def _tenant(text: str, info: Info) -> str:
    if info.context is REQUEST and text != ALL_TENANTS and not NAME.match(text):
        raise wrong(f"{quoted(text)} is not a tenant", f"a tenant's name, or {ALL_TENANTS} for all of them")
    return text


_Role = Annotated[Role, Strict(False)]
_Stated = Annotated[str, Field(min_length=1)]


class CreateTokenBody(Part):
    """The name, role, tenant and lifetime of a new token."""

    name: Name = Field(examples=["nightly-import"])
    """The holder of the token; several tokens may have the same name"""
    role: _Role = Field(examples=["submitter"])
    """viewer < submitter < operator < admin; worker: `/v1/work`, for all tenants"""
    tenant: Annotated[str, AfterValidator(_tenant)] = Field(examples=["acme"])
    """The tenant it acts for; `*`: all tenants"""
    expires_in_ms: Annotated[int, span(_LIFE_MS_MIN, _LIFE_MS_MAX)] | None = Field(default=None, examples=["720h"])
    """How long it is valid, at most as long as the token that makes it; null: as long as that one"""

    def expires_at_ms(self, now: WallMs) -> WallMs | None:
        return None if self.expires_in_ms is None else WallMs(min(now + self.expires_in_ms, LATEST_MS))


class TokenFields(Part):
    """What is stored of a token and shown."""

    id: _Stated = Field(examples=["token-3f9a0c11d2e4"])
    """The public id; it grants nothing"""
    name: _Stated = Field(examples=["nightly-import"])
    """The holder of the token"""
    role: _Role = Field(examples=["submitter"])
    """The role: viewer < submitter < operator < admin; worker: `/v1/work`"""
    tenant: _Stated = Field(examples=["acme"])
    """The tenant it acts for; `*`: all tenants"""
    created_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When it was created"""
    created_by: _Stated = Field(examples=["HASCHEDULER_ADMIN_TOKEN"])
    """The name of the token that created it"""
    expires_at_ms: Instant | None = Field(default=None, examples=["2030-01-31T00:00:00.000Z"])
    """When it expires; null: never"""


class Token(TokenFields, Noun):
    """A stored token or session; ``digest`` is the hash of its secret, ``tenant`` may be `ALL_TENANTS`.

    Names need not be unique: to rotate a secret, create the next token of that name before revoking this one. A token
    with an unreadable role grants nothing.
    """

    id_field = "digest"

    digest: _Stated
    rev: Integer = 1
    session_of: _Stated | None = None
    """The digest of a session's parent, or of the admin token in the settings; None for a token. 0.2.0 ignores the
    field and treats a session as a token with the same powers and the same end."""

    @property
    def is_session(self) -> bool:
        return self.session_of is not None

    def has_expired(self, now: WallMs) -> bool:
        return self.expires_at_ms is not None and now >= self.expires_at_ms


class TokenResponse(TokenFields):
    """A token without its secret."""

    expired: bool = Field(examples=[False])
    """True if it has expired"""
    session: bool = Field(examples=[False])
    """True if it is a session of the dashboard, which is valid only there"""


class NewTokenResponse(TokenResponse):
    """A token with its secret."""

    token: str = Field(examples=["hsk_Zk0mV9xQ2rT7uW1yB4nE6pL8sD3fG5hJ0kC-aXvNzMo"])
    """The secret, shown only once and not stored"""


def show_token(token: Token, now: WallMs) -> TokenResponse:
    shown = {field: getattr(token, field) for field in TokenFields.model_fields}
    return TokenResponse(**shown, expired=token.has_expired(now), session=token.is_session)
