"""``/v1/whoami``: who the replica takes the caller for."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hascheduler.api.access import Caller, Known
from hascheduler.api.services import Services
from hascheduler.model.token import Power, Role

router = APIRouter(tags=["access"])


class WhoamiResponse(BaseModel):
    name: str = Field(description="Of the token; `anonymous` without one")
    token: str | None = Field(description="The token's public id")
    role: Role
    tenant: str = Field(description="`*`: all tenants")
    may: list[Power] = Field(description="What the role may do")
    tokens_demanded: bool = Field(description="Whether this replica lets in nobody without a token")


@router.get("/whoami")
async def whoami(services: Services, caller: Known) -> WhoamiResponse:
    """Who you are to this replica, and what you may do. Any token may ask."""
    return WhoamiResponse(
        name=caller.name,
        token=caller.id,
        role=caller.role,
        tenant=caller.tenant,
        may=[power for power in Power if _may(caller, power)],
        tokens_demanded=services.lock.demanded,
    )


def _may(caller: Caller, power: Power) -> bool:
    # Work is that of all tenants.
    return caller.role.may(power) and (power is not Power.WORK or caller.only is None)
