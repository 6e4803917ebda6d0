"""A recording of a leader: its decisions replayed, or its load as a scenario for other policies.

The scenario has the load as it was (jobs with their time of submission, processors as they came and went, how long each
job ran), not what the leader decided. A job that was running at the beginning has the rest of its time left; one that
had not ended by the end takes the default cost of its definition. Jobs that were not due by the end, or cancelled
before they began, are left out, and so are edits under way and pauses.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Input, ProcessorLost, TermBegan
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.mirror import changes
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import policy_name
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.tenant import Tenant
from hascheduler.simulate.scenario import JOB_FIELDS, Scenario, ScenarioJob, ScenarioPolicy, ScenarioProcessor


@dataclass(frozen=True, slots=True)
class Replayed:
    """The number of replayed steps and decisions, and why the recording ended (None if it was cut off).

    ``difference`` is the last step, if the replay decided something else, and what it decided.
    """

    steps: int
    decisions: int
    end: str | None
    difference: tuple[RecordedStep, tuple[Decision, ...]] | None = None


def replay(heading: RecordingHeading, steps: Iterable[RecordedStep | RecordingEnd]) -> Replayed:
    """Decide again under the policy of the recording, until the first difference."""
    core = Dispatcher(heading.config)
    count = decided = 0
    began: list[Input] = []
    for step in steps:
        if isinstance(step, RecordingEnd):
            return Replayed(count, decided, step.reason)
        if step.decisions is None:
            # What the leader knew already: the replay leads from the first recorded step on.
            began += [each for each in step.inputs if isinstance(each, TermBegan)]
            core.step(step.now, [each for each in step.inputs if not isinstance(each, TermBegan)])
            continue
        replayed = core.step(step.now, [*began, *step.inputs]).decisions
        began.clear()
        count += 1
        if replayed != step.decisions:
            return Replayed(count, decided, None, (step, replayed))
        decided += len(replayed)
    return Replayed(count, decided, None)


def recorded_scenario(heading: RecordingHeading, steps: Iterable[RecordedStep | RecordingEnd]) -> Scenario:
    """Return the load of the recorded leader, under its policy."""
    load = _Load(heading.at_ms, heading.at_ms)
    for step in steps:
        if isinstance(step, RecordingEnd):
            break
        load.ends_at_ms = max(load.ends_at_ms, step.now)
        for each in step.inputs:
            load.read(each, step.now)
    return load.scenario(heading)


@dataclass(slots=True)
class _RecordedJob:
    """A job as it was first seen, and the attempt that ended it."""

    job: JobRef
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    was_cancelled: bool = False

    @property
    def due_at_ms(self) -> int:
        """Return when it could begin at the earliest; it may have been moved up since it was first seen."""
        job = self.job
        due_at_ms = max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0)
        return due_at_ms if self.started_at_ms is None else min(due_at_ms, self.started_at_ms)


@dataclass(slots=True)
class _Load:
    at_ms: int
    ends_at_ms: int
    jobs: dict[str, _RecordedJob] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    processors: dict[str, ScenarioProcessor] = field(default_factory=dict)
    accounts: AccountsSnapshot = field(default_factory=AccountsSnapshot)

    def read(self, each: Input, now: int) -> None:
        since_ms = max(now - self.at_ms, 0)
        match each:
            case AccountsRestored(accounts):
                self.accounts = accounts
            case changes.NounSeen(Collection.DEFINITIONS, name, Definition() as definition):
                self.definitions.setdefault(name, definition)
            case changes.NounSeen(Collection.LANES, name, Lane() as lane):
                self.lanes.setdefault(name, lane)
            case changes.NounSeen(Collection.TENANTS, name, Tenant() as tenant):
                self.tenants.setdefault(name, tenant)
            case changes.ProcessorSeen(seen):
                new = ScenarioProcessor(seen.id, seen.definitions, seen.slots, seen.resources, since_ms)
                known = self.processors.setdefault(seen.id, new)
                if known is not new and seen.draining and known.drain_at_ms is None:
                    self.processors[seen.id] = replace(known, drain_at_ms=since_ms)
            case changes.ProcessorGone(id) | ProcessorLost(id, _) if id in self.processors:
                if self.processors[id].leave_at_ms is None:
                    self.processors[id] = replace(self.processors[id], leave_at_ms=since_ms)
            case changes.JobSeen(job):
                known_job = self.jobs.setdefault(job.id, _RecordedJob(job))
                if job.state is JobState.RUNNING and job.started_at_ms is not None:
                    known_job.started_at_ms = job.started_at_ms
            case changes.JobGone(id, state, finished_at_ms) if id in self.jobs:
                gone = self.jobs[id]
                gone.finished_at_ms = finished_at_ms if finished_at_ms is not None else now
                gone.was_cancelled = state is JobState.CANCELLED and gone.started_at_ms is None
            case _:
                pass

    def scenario(self, heading: RecordingHeading) -> Scenario:
        settings = asdict(heading.config.policy)
        name = policy_name(settings.pop("criteria"))
        cancelled = tuple(id for id, each in self.jobs.items() if each.was_cancelled)
        due_later = tuple(
            id for id, each in self.jobs.items() if not each.was_cancelled and each.due_at_ms > self.ends_at_ms
        )
        counts = [f"{len(due_later):,} due after its end"] if due_later else []
        counts += [f"{len(cancelled):,} cancelled before they started"] if cancelled else []
        work = [each for id, each in self.jobs.items() if id not in {*cancelled, *due_later}]
        for each in work:
            self.definitions.setdefault(each.job.definition, Definition(name=each.job.definition))
        return Scenario(
            policy=ScenarioPolicy(name, settings),
            definitions=tuple(self.definitions.values()),
            lanes=tuple(self.lanes.values()),
            tenants=tuple(self.tenants.values()),
            processors=tuple(self.processors.values()),
            learned_costs=tuple(row[:3] for row in self.accounts.learned),
            jobs=tuple(sorted(map(self._job, work), key=lambda job: (job.submit_at_ms, job.id))),
            note=f"as recorded by {heading.replica}{'; jobs left out: ' if counts else ''}{', '.join(counts)}",
            recorded_ms=self.ends_at_ms - self.at_ms,
            left_out={"due_later": due_later, "cancelled": cancelled},
        )

    def _job(self, work: _RecordedJob) -> ScenarioJob:
        job = work.job
        duration_ms = self.definitions[job.definition].default_cost_ms
        if work.started_at_ms is not None and work.finished_at_ms is not None:
            duration_ms = max(work.finished_at_ms - max(work.started_at_ms, self.at_ms), 0)
        # A job that has begun does not expire any more.
        expires = job.expires_at_ms is not None and job.first_started_at_ms is None and job.started_at_ms is None
        return ScenarioJob(
            **{name: getattr(job, name) for name in JOB_FIELDS},
            submit_at_ms=work.due_at_ms - self.at_ms,
            duration_ms=duration_ms,
            expires_at_ms=(job.expires_at_ms or 0) - self.at_ms if expires else None,
            limit_keys=job.limit_keys or (),
        )
