"""Tokens as requests ask for them and answers show them."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.shown import instant_text
from hascheduler.api.texts import NAME, DurationMs, Name, Strict, wrong
from hascheduler.model.instants import LATEST_MS, WallMs
from hascheduler.model.repr_limits import quoted
from hascheduler.model.token import ALL_TENANTS, Role, Token

_LIFE_MS_MIN = 1_000
_LIFE_MS_MAX = 10 * 366 * 86_400_000


def _tenant(text: str) -> str:
    if text != ALL_TENANTS and not NAME.match(text):
        raise wrong(f"{quoted(text)} is no tenant", f"a tenant's name, or {ALL_TENANTS} for all of them")
    return text


def _role(text: str) -> Role:
    if text not in set(Role):
        raise wrong(f"{quoted(text)} is unknown", " or ".join(Role))
    return Role(text)


class CreateTokenBody(Strict):
    """Who is to have it, what it may do, and for whom."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "nightly-import", "role": "submitter", "tenant": "acme", "expires_in": "720h"}]
        }
    )

    name: Name = Field(description="Who has it, for people; several may have one name", examples=["nightly-import"])
    role: Annotated[str, AfterValidator(_role)] = Field(
        description="viewer < submitter < operator < admin; worker: `/v1/work`, for all tenants",
        json_schema_extra={"enum": [role.value for role in Role]},
    )
    tenant: Annotated[str, AfterValidator(_tenant)] = Field(description=f"Whose; `{ALL_TENANTS}`: of all tenants")
    expires_in: Annotated[DurationMs, Field(ge=_LIFE_MS_MIN, le=_LIFE_MS_MAX)] | None = Field(
        default=None,
        description="For how long it is good, at most as long as the token that makes it; null: as long as that one",
        examples=["720h"],
    )

    def expires_at_ms(self, now: WallMs) -> WallMs | None:
        return None if self.expires_in is None else WallMs(min(now + self.expires_in, LATEST_MS))


_EXAMPLE: JsonDict = {
    "id": "token-3f9a0c11d2e4",
    "name": "nightly-import",
    "role": "submitter",
    "tenant": "acme",
    "created_at": "2030-01-01T00:00:00.000Z",
    "created_by": "HASCHEDULER_ADMIN_TOKEN",
    "expires_at": "2030-01-31T00:00:00.000Z",
    "expired": False,
}


class TokenResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str = Field(description="Public: it opens nothing")
    name: str
    role: Role
    tenant: str = Field(description=f"`{ALL_TENANTS}`: all tenants")
    created_at: str
    created_by: str = Field(description="The name of the token that made it")
    expires_at: str | None = Field(description="Null: never")
    expired: bool


class NewTokenResponse(TokenResponse):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_EXAMPLE, "token": "hsk_Zk0mV9xQ2rT7uW1yB4nE6pL8sD3fG5hJ0kC-aXvNzMo"}]}
    )

    token: str = Field(description="The secret: shown this once, and stored nowhere")


def show_token(token: Token, now: WallMs) -> TokenResponse:
    return TokenResponse(
        id=token.id,
        name=token.name,
        role=token.role,
        tenant=token.tenant,
        created_at=instant_text(token.created_at_ms),
        created_by=token.created_by,
        expires_at=None if token.expires_at_ms is None else instant_text(token.expires_at_ms),
        expired=token.has_expired(now),
    )
