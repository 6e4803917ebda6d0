"""The inputs that would reproduce this state: the first part of a recording.

The facts as the core has them, then what it has promised on top. A promised dispatch is written as if its job had come
back: it was charged already, and what the database has of it comes later, as it did to the core itself. Left out are
doubts that last a second, and the levels of rate limits, which begin full; and jobs that run hold what their
definitions say today.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from sys import maxsize

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.inputs import AccountsRestored, Input, ProcessorLost, ProcessorRests, TermBegan, TransportSeen
from hascheduler.dispatch.state import CoreState
from hascheduler.mirror.changes import (
    CalendarSeen,
    DefinitionSeen,
    HoldSeen,
    JobSeen,
    LaneSeen,
    PauseSeen,
    ProcessorSeen,
    ScheduleSeen,
    TenantSeen,
)
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.values.instants import WallMs


def state_snapshot(core: CoreState, now: WallMs, *, accepting: bool) -> Iterator[Input]:
    """The inputs, in order; `TermBegan` is the last. All is read at once, and may be encoded while the core goes on."""
    promises = core.ledger.promises()
    dispatches = {move.job_id: move for move in promises if isinstance(move, Dispatch)}
    others = tuple(decision for decision in promises if not isinstance(decision, Dispatch))
    first: list[Input] = [
        AccountsRestored(core.accounts.snapshot(now, rows_max=maxsize)),
        *map(HoldSeen, core.rules.holds.values()),
        *map(DefinitionSeen, core.rules.whole_definitions.values()),
        *map(LaneSeen, core.rules.lanes.values()),
        *map(CalendarSeen, core.rules.calendars.values()),
        *map(TenantSeen, core.rules.tenants.values()),
        *map(PauseSeen, core.rules.pauses.values()),
        *map(ScheduleSeen, core.times.schedules()),
    ]
    for processor, lost_at_beat in core.pool.known():
        first.append(ProcessorSeen(processor))
        if lost_at_beat is not None:
            first.append(ProcessorLost(processor.id, lost_at_beat))
    jobs = [_as_held(job, core.jobs.dependencies.unmet(job)) for job in core.jobs.all()]
    kept = list(core.held.kept())
    # After the jobs: what runs there already took it up before.
    rests = [ProcessorRests(id, rest) for id, rest in sorted(core.pool.rests.items())]
    return chain(first, kept, _seen(jobs, dispatches, now), rests, [TransportSeen(accepting), TermBegan(0, others)])


def _seen(jobs: Sequence[JobRef], dispatches: Mapping[str, Dispatch], now: WallMs) -> Iterator[JobSeen]:
    for job in jobs:
        yield JobSeen(_as_dispatched(job, dispatches.get(job.id), now))


def _as_held(job: JobRef, unmet: Sequence[str]) -> JobRef:
    """Without the dependencies that have ended: no input will report those again."""
    return job if len(unmet) == len(job.waits_for) else replace(job, waits_for=tuple(unmet))


def _as_dispatched(job: JobRef, move: Dispatch | None, now: WallMs) -> JobRef:
    if move is None or job.attempt >= move.attempt:
        return job
    return replace(job, state=JobState.DISPATCHED, attempt=move.attempt, processor=move.processor, dispatched_at_ms=now)
