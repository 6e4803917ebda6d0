"""The fields that jobs and the job templates of schedules share, and what they are when left out."""

from typing import Literal

from pydantic import Field, JsonValue

from hascheduler.api.texts import Name, Strict, Text, TextOrEmpty

TENANT = "default"
"""The one tenant there is for now."""

Mode = Literal["queued", "on_demand"]


class JobFields(Strict):
    definition: Name = Field(description="The type of job: which handler runs it", examples=["log"])
    payload: JsonValue = Field(default=None, description="What the handler gets: any JSON")
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")
    fairness_key: TextOrEmpty = Field(default=TENANT, description="Keys share capacity; default: the tenant")
    lane: Text = Field(default="default", description="The class of work it belongs to")
    mode: Mode = Field(default="queued", description="`on_demand`: somebody is waiting for the answer")
