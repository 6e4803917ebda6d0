"""What the job of a schedule says."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, SkipValidation

from hascheduler.model.resources import Resources, resources
from hascheduler.schema.lane import DEFAULT_LANE, PRIORITY_MAX
from hascheduler.wire.fields import Name, ResourceAmounts, StrictModel, Text, TextOrEmpty

Mode = Literal["queued", "on_demand"]
Priority = Annotated[int, Field(ge=0, le=PRIORITY_MAX, description="10 is the most urgent")]


class JobFields(StrictModel):
    definition: Name = Field(description="The type of job: which handler runs it", examples=["log"])
    payload: SkipValidation[JsonValue] = Field(default=None, description="What the handler gets: any JSON")
    priority: Priority = 5
    tenant: Name | None = Field(
        default=None, description="Who owns it; default: the tenant of the token, else `default`"
    )
    fairness_key: TextOrEmpty | None = Field(
        default=None,
        description="Divides its tenant's share: of the jobs of one tenant those of the key that has consumed least go"
        " first; default: the tenant's name",
    )
    lane: Text = Field(
        default=DEFAULT_LANE,
        description="The class of work it belongs to; a token of one tenant may name `default` and those of /v1/lanes",
    )
    mode: Mode = Field(default="queued", description="`on_demand`: the caller waits for the answer")
    resources: ResourceAmounts | None = Field(
        default=None, description="What it needs besides a slot; null: what its definition says"
    )

    def key(self, tenant: str) -> str:
        """The job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key

    def needs(self) -> Resources | None:
        return None if self.resources is None else resources(self.resources)
