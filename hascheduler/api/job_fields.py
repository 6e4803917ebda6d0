"""The fields that jobs and the job templates of schedules share, with their defaults."""

from typing import Literal

from pydantic import Field, JsonValue, SkipValidation

from hascheduler.api.access import Caller
from hascheduler.api.problems import Path
from hascheduler.api.resource_fields import ResourceAmounts
from hascheduler.api.texts import Name, Strict, Text, TextOrEmpty
from hascheduler.errors import InvalidInput
from hascheduler.model.lane import DEFAULT_LANE
from hascheduler.model.repr_limits import quoted
from hascheduler.model.resources import Resources, resources
from hascheduler.ports import ClusterView

Mode = Literal["queued", "on_demand"]


class JobFields(Strict):
    definition: Name = Field(description="The type of job: which handler runs it", examples=["log"])
    payload: SkipValidation[JsonValue] = Field(default=None, description="What the handler gets: any JSON")
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")
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
    mode: Mode = Field(default="queued", description="`on_demand`: somebody is waiting for the answer")
    resources: ResourceAmounts | None = Field(
        default=None, description="What it needs besides a slot; null: what its definition says"
    )

    def key(self, tenant: str) -> str:
        """The job's fairness key if ``tenant`` owns the job."""
        return tenant if self.fairness_key is None else self.fairness_key

    def demand_lane(self, caller: Caller, view: ClusterView, path: Path = ("lane",)) -> None:
        """`InvalidInput` where a token of one tenant names an undefined lane.

        Capacity is shared between lanes before it is shared between tenants, and an undefined lane has weight 1: a
        tenant that named a new lane for each job would get nearly all the starts.
        """
        if caller.only is not None and self.lane != DEFAULT_LANE and view.lane(self.lane) is None:
            expected = f"{DEFAULT_LANE}, or a lane of /v1/lanes; a token for all tenants defines them"
            raise InvalidInput(path, f"there is no lane {quoted(self.lane)}", expected)

    def needs(self) -> Resources | None:
        return None if self.resources is None else resources(self.resources)
