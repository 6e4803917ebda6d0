"""How many live jobs there are, by state and by definition, lane and tenant, and how many schedules are paused.

Counted as they come and go: to count a million jobs whenever somebody asks would hold up all else.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hascheduler.model.documents import Collection
from hascheduler.model.job import JobRef
from hascheduler.model.schedule import ScheduleRef

Table = dict[str, Counter[str]]


class Census:
    """Owner of the counts. Names without a live job are not in the tables."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        """By state."""
        self._of_definition: Table = {}
        self._of_lane: Table = {}
        self._of_tenant: Table = {}
        self.schedules_paused = 0

    @property
    def of_definition(self) -> Mapping[str, Mapping[str, int]]:
        """Live jobs by definition, then by state."""
        return self._of_definition

    @property
    def of_lane(self) -> Mapping[str, Mapping[str, int]]:
        return self._of_lane

    @property
    def of_tenant(self) -> Mapping[str, Mapping[str, int]]:
        return self._of_tenant

    def replaced(self, collection: Collection, before: Any | None, after: Any | None) -> None:
        """The noun ``before`` is now ``after``; None: there was, or is, none."""
        if collection is Collection.JOBS:
            self._job(before, after)
        elif collection is Collection.SCHEDULES:
            self.schedules_paused += _is_paused(after) - _is_paused(before)

    def _job(self, before: JobRef | None, after: JobRef | None) -> None:
        if before is not None and after is not None and _place(before) == _place(after):
            if before.state is not after.state:
                _move(self.jobs, before.state.value, after.state.value)
                for table, name in self._rows(after):
                    _move(table[name], before.state.value, after.state.value)
            return
        if before is not None:
            _less(self.jobs, before.state.value)
            for table, name in self._rows(before):
                _less(table[name], before.state.value)
                if not table[name]:
                    del table[name]
        if after is not None:
            self.jobs[after.state.value] += 1
            for table, name in self._rows(after):
                table.setdefault(name, Counter())[after.state.value] += 1

    def _rows(self, job: JobRef) -> tuple[tuple[Table, str], ...]:
        return (self._of_definition, job.definition), (self._of_lane, job.lane), (self._of_tenant, job.tenant)


def _place(job: JobRef) -> tuple[str, str, str]:
    return job.definition, job.lane, job.tenant


def _move(row: Counter[str], before: str, after: str) -> None:
    row[after] += 1
    _less(row, before)


def _less(row: Counter[str], state: str) -> None:
    if row[state] > 1:
        row[state] -= 1
    else:
        del row[state]


def _is_paused(schedule: ScheduleRef | None) -> bool:
    return schedule is not None and schedule.paused_at_ms is not None
