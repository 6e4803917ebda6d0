"""What the stream would show of a scenario's jobs and processors."""

from collections.abc import Iterable
from dataclasses import dataclass

from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.processor import ProcessorRef
from hascheduler.simulate.scenario import ScenarioJob, ScenarioProcessor

EPOCH_MS = 1_000_000_000_000
"""The wall time at which every run begins."""


@dataclass(frozen=True, slots=True)
class ProcessorChange:
    """Something becomes of a processor."""

    at_ms: int
    seen: ProcessorSeen | ProcessorGone


def processor_changes(processors: Iterable[ScenarioProcessor]) -> list[ProcessorChange]:
    """All that becomes of the processors, in its order; at one instant in that of the file."""
    changes: list[ProcessorChange] = []
    for each in processors:
        changes.append(ProcessorChange(each.join_at_ms, ProcessorSeen(_registered(each, beat=1))))
        if each.drain_at_ms is not None:
            changes.append(ProcessorChange(each.drain_at_ms, ProcessorSeen(_registered(each, beat=2, draining=True))))
        if each.leave_at_ms is not None:
            changes.append(ProcessorChange(each.leave_at_ms, ProcessorGone(each.id)))
    return sorted(changes, key=lambda change: change.at_ms)


def _registered(processor: ScenarioProcessor, *, beat: int, draining: bool = False) -> ProcessorRef:
    return ProcessorRef(
        id=processor.id,
        name=processor.id,
        shard="default",
        definitions=processor.definitions,
        slots=processor.slots,
        beat=beat,
        draining=draining,
        parked=0,
        resources=processor.resources,
    )


def submitted(job: ScenarioJob, sequence: int) -> JobRef:
    return JobRef(
        id=job.id,
        rev=1,
        state=JobState.PENDING,
        attempt=0,
        definition=job.definition,
        target=job.target,
        tenant=job.tenant,
        lane=job.lane,
        fairness_key=job.fairness_key,
        priority=job.priority,
        mode=job.mode,
        submitted_at_ms=WallMs(EPOCH_MS + job.submit_at_ms),
        sequence=sequence,
        not_before_ms=None,
        processor=None,
        dispatched_at_ms=None,
        cancel_requested_at_ms=None,
        resources=job.resources,
    )
