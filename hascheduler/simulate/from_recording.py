"""A recording as a scenario: the same work and the same processors, for trying another policy on them.

The load of the leader is taken as it was: jobs with their time of submission, processors as they came and went,
and how long each job ran. The effects of its decisions are not. A job that was running when the recording began has
the rest of its time left; one that had not ended when it ended takes what its definition says a job costs.

The work is what was live within the recording's span, and it is gone on with until its end. Jobs that were not due by
the span's end (``not_before``, the pause before a retry) are left out, else a run would last until the last of them; so
are those that never ran and were cancelled, edits of definitions, lanes and tenants under way, and what people paused
or drained: the work is the same without.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.inputs import AccountsRestored, Input, ProcessorLost
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.mirror.changes import (
    DefinitionSeen,
    JobGone,
    JobSeen,
    LaneSeen,
    ProcessorGone,
    ProcessorSeen,
    TenantSeen,
)
from hascheduler.model.definition import Definition
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.lane import Lane
from hascheduler.model.policy import policy_name
from hascheduler.model.tenant import Tenant
from hascheduler.simulate.scenario import LearnedCost, LeftOut, Scenario, ScenarioJob, ScenarioPolicy, ScenarioProcessor


def recorded_scenario(heading: RecordingHeading, steps: Iterable[RecordedStep | RecordingEnd]) -> Scenario:
    """The load of the recorded leader, under its policy."""
    reading = _RecordingReader(heading.at_ms)
    for step in steps:
        if isinstance(step, RecordingEnd):
            break
        reading.ends_at_ms = max(reading.ends_at_ms, step.now)
        for each in step.inputs:
            reading.read(each, step.now)
    return reading.scenario(heading)


@dataclass(slots=True)
class _RecordedJob:
    """One job: as it was first seen, and the attempt that ended it."""

    job: JobRef
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    was_cancelled: bool = False

    @property
    def due_at_ms(self) -> int:
        """When it could begin at the earliest; it may have been moved up since it was first seen."""
        job = self.job
        due_at_ms = max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0)
        return due_at_ms if self.started_at_ms is None else min(due_at_ms, self.started_at_ms)


class _RecordingReader:
    def __init__(self, at_ms: int) -> None:
        self._at_ms = self.ends_at_ms = at_ms
        self._work: dict[str, _RecordedJob] = {}
        self._definitions: dict[str, Definition] = {}
        self._lanes: dict[str, Lane] = {}
        self._tenants: dict[str, Tenant] = {}
        self._processors: dict[str, ScenarioProcessor] = {}
        self._accounts = AccountsSnapshot()

    def read(self, each: Input, now: int) -> None:
        since_ms = max(now - self._at_ms, 0)
        match each:
            case AccountsRestored(accounts):
                self._accounts = accounts
            case DefinitionSeen(definition):
                self._definitions.setdefault(definition.name, definition)
            case LaneSeen(lane):
                self._lanes.setdefault(lane.name, lane)
            case TenantSeen(tenant):
                self._tenants.setdefault(tenant.name, tenant)
            case ProcessorSeen(processor):
                known = self._processors.get(processor.id)
                if known is None:
                    self._processors[processor.id] = ScenarioProcessor(
                        processor.id, processor.definitions, processor.slots, processor.resources, since_ms
                    )
                elif processor.draining and known.drain_at_ms is None:
                    self._processors[processor.id] = replace(known, drain_at_ms=since_ms)
            case ProcessorGone(id) | ProcessorLost(id, _) if id in self._processors:
                if self._processors[id].leave_at_ms is None:
                    self._processors[id] = replace(self._processors[id], leave_at_ms=since_ms)
            case JobSeen(job):
                work = self._work.setdefault(job.id, _RecordedJob(job))
                if job.state is JobState.RUNNING and job.started_at_ms is not None:
                    work.started_at_ms = job.started_at_ms
            case JobGone(id, state, finished_at_ms) if id in self._work:
                self._work[id].finished_at_ms = finished_at_ms if finished_at_ms is not None else now
                self._work[id].was_cancelled = state is JobState.CANCELLED and self._work[id].started_at_ms is None
            case _:
                pass

    def scenario(self, heading: RecordingHeading) -> Scenario:
        policy = heading.config.policy
        work: list[_RecordedJob] = []
        due_later: list[str] = []
        cancelled: list[str] = []
        for each in self._work.values():
            if each.was_cancelled:
                cancelled.append(each.job.id)
            elif each.due_at_ms > self.ends_at_ms:
                due_later.append(each.job.id)
            else:
                work.append(each)
        for each in work:
            self._definitions.setdefault(each.job.definition, Definition(each.job.definition))
        return Scenario(
            policy=ScenarioPolicy(
                name=policy_name(policy.criteria),
                criteria=policy.criteria,
                max_concurrency=policy.max_concurrency,
                idle_key_start=policy.idle_key_start,
                has_bonus_max=True,
                on_demand_bonus_max=policy.on_demand_bonus_max,
                learn_cost=policy.learn_cost,
                cost_alpha=policy.cost_alpha,
            ),
            definitions=tuple(self._definitions.values()),
            lanes=tuple(self._lanes.values()),
            tenants=tuple(self._tenants.values()),
            processors=tuple(self._processors.values()),
            learned_costs=tuple(LearnedCost(*row[:3]) for row in self._accounts.learned),
            jobs=tuple(sorted(map(self._job, work), key=lambda job: (job.submit_at_ms, job.id))),
            note=f"as recorded of {heading.replica}{_left_out_text(len(due_later), len(cancelled))}",
            recorded_ms=self.ends_at_ms - self._at_ms,
            left_out=LeftOut(tuple(due_later), tuple(cancelled)),
        )

    def _job(self, work: _RecordedJob) -> ScenarioJob:
        job = work.job
        if work.started_at_ms is not None and work.finished_at_ms is not None:
            duration_ms = max(work.finished_at_ms - max(work.started_at_ms, self._at_ms), 0)
        else:
            duration_ms = self._definitions[job.definition].default_cost_ms
        return ScenarioJob(
            id=job.id,
            definition=job.definition,
            target=job.target,
            tenant=job.tenant,
            lane=job.lane,
            fairness_key=job.fairness_key,
            priority=job.priority,
            mode=job.mode,
            resources=job.resources,
            submit_at_ms=work.due_at_ms - self._at_ms,
            duration_ms=duration_ms,
            expires_at_ms=self._expires_at_ms(job),
            limit_keys=job.limit_keys or (),
        )

    def _expires_at_ms(self, job: JobRef) -> int | None:
        """One that had begun before the recording does not expire any more."""
        if job.expires_at_ms is None or job.first_started_at_ms is not None or job.started_at_ms is not None:
            return None
        return job.expires_at_ms - self._at_ms


def _left_out_text(due_later: int, cancelled: int) -> str:
    counts = [f"{due_later:,} due after its end"] if due_later else []
    counts += [f"{cancelled:,} cancelled before they began"] if cancelled else []
    return f"; without jobs: {', '.join(counts)}" if counts else ""
