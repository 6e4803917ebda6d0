"""Who asks, and what they may: every route says here what it demands.

A route takes one of the callers below; who has not the power gets 403. Who they are is settled before, at
`hascheduler.api.access_door`, which lets nobody in whose token is missing or wrong.

==================  ==================================================================================
demands             for what
==================  ==================================================================================
`Known`             asking who one is
`Viewer`            reading: jobs, schedules, events, the own tenant; definitions, lanes and the cluster
`Submitter`         submitting and cancelling jobs, triggering schedules
`Operator`          writing schedules, pausing and backfilling them; retrying and reprioritizing jobs
`Admin`             tokens, the audit log
`Worker`            ``/v1/work``
`ViewerOfAll`       processors, metrics: they tell of the jobs of all tenants
`OperatorOfAll`     writing definitions, processors, recordings
`AdminOfAll`        writing lanes and tenants
==================  ==================================================================================

Those ``…OfAll`` demand a token for all tenants. A token of one tenant sees and touches that tenant's jobs and
schedules only; all others are to it as if they did not exist. Without tokens (see the setting AUTH) everybody is an
admin of all tenants.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer as BearerModel
from fastapi.security.base import SecurityBase

from hascheduler.api.problems import FieldError, Path, Refusal
from hascheduler.model.instants import WallMs
from hascheduler.model.repr_limits import quoted
from hascheduler.model.tenant import DEFAULT_TENANT
from hascheduler.model.token import ALL_TENANTS, POWERS, Power, Role


@dataclass(frozen=True, slots=True)
class Caller:
    """``id`` is the public id of the token, None where there is none; ``name`` is for people and the audit log.

    ``expires_at_ms`` is when the token does; None: never.
    """

    role: Role
    tenant: str
    name: str
    id: str | None = None
    expires_at_ms: WallMs | None = None

    @property
    def only(self) -> str | None:
        """The tenant that lists are filtered by; None: all of them."""
        return None if self.tenant == ALL_TENANTS else self.tenant

    def sees(self, tenant: object) -> bool:
        """Whether what belongs to ``tenant`` exists, as far as this caller is told."""
        return self.only is None or tenant == self.only

    def tenant_of(self, named: str | None, path: Path = ("tenant",)) -> str:
        """The tenant that a body means which names that one at ``path``, or none; refused where it is another's."""
        if named is None:
            return self.only or DEFAULT_TENANT
        if self.only is None or named == self.only:
            return named
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            "forbidden",
            f"the token is for tenant {quoted(self.only)} and can't act for {quoted(named)}",
            errors=[FieldError(path, f"{quoted(named)} is not the token's", f"{quoted(self.only)}, or nothing")],
        )

    def filter_of(self, named: str | None) -> str | None:
        """The tenant to filter a list by where the request names that one, or none; refused where it is another's."""
        return self.only if named is None else self.tenant_of(named)


ANYBODY = Caller(Role.ADMIN, ALL_TENANTS, "anonymous")
"""Whoever asks where no tokens are demanded."""


class _Bearer(SecurityBase):
    """For OpenAPI; gives the caller that the door has let in."""

    def __init__(self) -> None:
        self.model = BearerModel(
            bearerFormat="hsk_…", description="A token, as `POST /v1/tokens` gives it. On loopback none is needed."
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Caller:
        caller = request.state.caller
        assert isinstance(caller, Caller)
        return caller


bearer = _Bearer()


class Demand:
    """A dependency: the caller, who has ``power`` (None: any) and, with ``of_all``, has it for all tenants.

    `hascheduler.api.body.JsonRoute` finds it in what its route depends on, and judges before it reads the body.
    """

    def __init__(self, power: Power | None, *, of_all: bool = False) -> None:
        self.power = power
        self.of_all = of_all

    async def __call__(self, caller: Annotated[Caller, Depends(bearer)]) -> Caller:
        self.judge(caller)
        return caller

    def judge(self, caller: Caller) -> None:
        """Refused with 403 unless ``caller`` may."""
        if self.power is not None and not caller.role.may(self.power):
            enough = " or ".join(role for role in Role if self.power in POWERS[role])
            raise _forbidden(f"a token with the role {caller.role} may not do this; expected {enough}")
        if self.of_all and caller.only is not None:
            raise _forbidden(f"this takes a token for all tenants, and yours is for {quoted(caller.only)}")


def _forbidden(detail: str) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, "forbidden", detail)


Known = Annotated[Caller, Depends(Demand(None))]
Viewer = Annotated[Caller, Depends(Demand(Power.READ))]
Submitter = Annotated[Caller, Depends(Demand(Power.SUBMIT))]
Operator = Annotated[Caller, Depends(Demand(Power.OPERATE))]
Admin = Annotated[Caller, Depends(Demand(Power.ADMINISTER))]
Worker = Annotated[Caller, Depends(Demand(Power.WORK, of_all=True))]
ViewerOfAll = Annotated[Caller, Depends(Demand(Power.READ, of_all=True))]
OperatorOfAll = Annotated[Caller, Depends(Demand(Power.OPERATE, of_all=True))]
AdminOfAll = Annotated[Caller, Depends(Demand(Power.ADMINISTER, of_all=True))]
