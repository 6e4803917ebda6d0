"""Which jobs a list shows, a count counts; and where in a list a page begins."""

from collections.abc import Collection
from dataclasses import replace

from pydantic import Field

from hascheduler.api.routing.queries import LabelsQuery, NewestFirstQuery
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection
from hascheduler.wire.fields import InstantMs

JOB_ID_LENGTH_MAX = 320


class JobAttributesQuery(LabelsQuery):
    """What a job has from its submission on."""

    definition: str | None = Field(default=None, max_length=256, description="Only jobs of this definition")
    schedule: str | None = Field(default=None, max_length=256, description="Only jobs that this schedule made")
    tenant: str | None = Field(default=None, max_length=256, description="Only jobs of this tenant")
    batch: str | None = Field(default=None, max_length=256, description="Only jobs of this batch")
    target: str | None = Field(default=None, max_length=256, description="Only jobs that work on this")
    since: InstantMs | None = Field(default=None, description="Only jobs submitted at this instant or later")
    until: InstantMs | None = Field(default=None, description="Only jobs submitted before this instant")
    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=JOB_ID_LENGTH_MAX,
        description="Only jobs whose id begins with this text, taken as it is: `job:`, or `fire:`, `backfill:` or "
        "`trigger:` with the name of the schedule",
        examples=["fire:nightly:"],
    )

    def selection(self, tenant: str | None) -> JobSelection:
        return JobSelection(
            definition=self.definition,
            schedule=self.schedule,
            tenant=tenant,
            batch=self.batch,
            target=self.target,
            labels=self.labels(),
            since_ms=None if self.since is None else WallMs(self.since),
            before_ms=None if self.until is None else WallMs(self.until),
            id_prefix=self.id,
        )


class JobFilterQuery(JobAttributesQuery):
    state: list[JobState] = Field(
        default=[],
        max_length=len(JobState),
        description="Only jobs in this state; again for more. `failed`: the dead letters",
    )
    unschedulable: bool = Field(
        default=False, description="Only jobs that wait and that no processor which lives could ever run"
    )

    def filter(self, tenant: str | None, unschedulable: Collection[str]) -> JobSelection:
        """``unschedulable`` has the ids of all such jobs."""
        return replace(
            self.selection(tenant),
            # Those wait: it is their range that is read.
            states=(JobState.PENDING,) if self.unschedulable else tuple(dict.fromkeys(self.state)),
            ids=self._ids(unschedulable),
        )

    def _ids(self, unschedulable: Collection[str]) -> Collection[str] | None:
        if not self.unschedulable:
            return None
        return unschedulable if not self.state or JobState.PENDING in self.state else ()


class JobQuery(JobFilterQuery, NewestFirstQuery):
    pass
