"""Which jobs a list shows, and where in it a page begins."""

from collections.abc import Collection

from pydantic import Field

from hascheduler.api.routing.queries import NewestFirstQuery
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState
from hascheduler.ports import JobSelection
from hascheduler.wire.fields import InstantMs


class JobQuery(NewestFirstQuery):
    state: list[JobState] = Field(
        default=[],
        max_length=len(JobState),
        description="Only jobs in this state; again for more. `failed`: the dead letters",
    )
    definition: str | None = Field(default=None, max_length=256, description="Only jobs of this definition")
    schedule: str | None = Field(default=None, max_length=256, description="Only jobs that this schedule made")
    tenant: str | None = Field(default=None, max_length=256, description="Only jobs of this tenant")
    batch: str | None = Field(default=None, max_length=256, description="Only jobs of this batch")
    target: str | None = Field(default=None, max_length=256, description="Only jobs that work on this")
    since: InstantMs | None = Field(default=None, description="Only jobs submitted at this instant or later")
    until: InstantMs | None = Field(default=None, description="Only jobs submitted before this instant")
    unschedulable: bool = Field(
        default=False, description="Only jobs that wait and that no processor which lives could ever run"
    )

    def filter(self, tenant: str | None, unschedulable: Collection[str]) -> JobSelection:
        """``unschedulable`` has the ids of all such jobs."""
        return JobSelection(
            # Those wait: it is their range that is read.
            states=(JobState.PENDING,) if self.unschedulable else tuple(dict.fromkeys(self.state)),
            definition=self.definition,
            schedule=self.schedule,
            tenant=tenant,
            batch=self.batch,
            target=self.target,
            labels=self.labels(),
            since_ms=None if self.since is None else WallMs(self.since),
            before_ms=None if self.until is None else WallMs(self.until),
            ids=self._ids(unschedulable),
        )

    def _ids(self, unschedulable: Collection[str]) -> Collection[str] | None:
        if not self.unschedulable:
            return None
        return unschedulable if not self.state or JobState.PENDING in self.state else ()
