"""What a job that is submitted and the job of a schedule have in common."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, SkipValidation

from hascheduler.schema.forms import Name, ResourceAmounts, Text, TextOrEmpty, whole
from hascheduler.schema.lane import DEFAULT_LANE, PRIORITY_MAX
from hascheduler.schema.noun import Part

Priority = Annotated[int, whole(0, PRIORITY_MAX)]


class JobBody(Part):
    """What a job that is submitted and the job of a schedule have in common."""

    definition: Name = Field(examples=["log"])
    """The type of job: which handler runs it"""
    payload: SkipValidation[JsonValue] = Field(default=None, examples=[{"seconds": 1.5}])
    """What the handler gets: any JSON"""
    priority: Priority = 5
    """10 is the most urgent"""
    tenant: Name | None = Field(default=None, examples=["acme"])
    """Who owns it; default: the tenant of the token, else `default`"""
    fairness_key: TextOrEmpty | None = Field(default=None, examples=["customer-7"])
    """Divides its tenant's share: of the jobs of one tenant those of the key that has consumed least go first; default:
    the tenant's name"""
    lane: Text = DEFAULT_LANE
    """The class of work it belongs to; a token of one tenant may name `default` and those of /v1/lanes"""
    mode: Literal["queued", "on_demand"] = "queued"
    """`on_demand`: the caller waits for the answer"""
    resources: ResourceAmounts | None = Field(default=None, examples=[{"cpu": 2, "gpu": 1}])
    """What it needs besides a slot; null: what its definition says"""

    def key(self, tenant: str) -> str:
        """Return the job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key
