"""One record of the audit log, as it is stored and shown."""

from typing import Any

from pydantic import Field

from hascheduler.schema.forms import Instant
from hascheduler.schema.noun import Part


class AuditRecord(Part):
    """One changing request, whether it succeeded or not.

    It holds only the reason from the body, never a secret.
    """

    id_field = "id"

    id: str = Field(examples=["1893456000000.000001.5f2c9a01"])
    """Begins with `at` in milliseconds; later records have greater ids"""
    at_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When the replica answered, by that replica's clock"""
    who: str = Field(examples=["deployer"])
    """The token's name; `anonymous` without a token"""
    token_id: str | None = Field(default=None, examples=["token-3f9a0c11d2e4"])
    """The token's public id"""
    role: str | None = Field(default=None, examples=["operator"])
    """The token's role; `admin` without a token"""
    tenant: str | None = Field(default=None, examples=["acme"])
    """The token's tenant, not that of the target; `*`: all tenants"""
    address: str = Field(examples=["10.0.0.7"])
    """The client's address; behind a proxy, the proxy's"""
    method: str = Field(examples=["POST"])
    """POST, PUT, PATCH or DELETE"""
    path: str = Field(examples=["/v1/schedules/nightly/pause"])
    """The requested path, without the query"""
    route: str | None = Field(default=None, examples=["/v1/schedules/{name}/pause"])
    """The pattern that the path matched"""
    target: str | None = Field(default=None, examples=["nightly"])
    """The name or id of the target, if there is exactly one"""
    status: int = Field(examples=[200])
    """The status of the answer; 4xx: nothing was changed"""
    request_id: str = Field(examples=["8c1f0a6be2d94c37"])
    """The `X-Request-Id` of the answer"""
    because: str | None = Field(default=None, examples=["the printer is on fire"])
    """The reason that the caller gave for a pause"""
    left_out: int = 0
    """How many earlier refusals of the same caller were not recorded, because there were too many"""

    def to_stored(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Leave out the fields that few records have: there are many records."""
        return {name: value for name, value in fields.items() if value or name not in ("because", "left_out")}
