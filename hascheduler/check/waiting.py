"""A due job does not wait beside a free slot, as far as that can be judged from outside.

Only the core knows in full what may hold a job back (lanes, tiers, learned costs, rates). So this rule covers only jobs
without such limits, and only a wait that no order of the queue explains: there is room for all.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hascheduler.check.finding import Finding, FindingKind, instant_or_ms
from hascheduler.check.jobs import CheckContext
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.pause import EVERYTHING, drain_id
from hascheduler.model.resources import NO_RESOURCES


@dataclass
class OccupiedSlots:
    """How many jobs hold a slot, in all and by what caps them."""

    in_all: int = 0
    of_processor: Counter[str] = field(default_factory=Counter)
    of_definition: Counter[str] = field(default_factory=Counter)
    of_tenant: Counter[str] = field(default_factory=Counter)

    def add(self, job: JobRef) -> None:
        self.in_all += 1
        self.of_processor[job.processor or ""] += 1
        self.of_definition[job.definition] += 1
        self.of_tenant[job.tenant] += 1


@dataclass
class ConcurrencyCaps:
    """Caps that may keep slots free. ``tenants``: ``max_running`` of those that have one."""

    in_all: int | None = None
    tenants: dict[str, int] = field(default_factory=dict)


def check_wait(job: JobRef, context: CheckContext, occupied: OccupiedSlots, caps: ConcurrencyCaps) -> Iterator[Finding]:
    """Whether ``job`` has been due for long, nothing holds it back, and a live processor has a free slot for it."""
    if job.state is not JobState.PENDING or job.serial or job.waits_for or job.cancel_requested_at_ms is not None:
        return
    everything = context.pauses.get(EVERYTHING)
    if everything is not None and not everything.schedules_only:
        return
    since_ms = max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0)
    waited_ms = context.now - since_ms
    if waited_ms <= context.config.patience_ms or _is_capped(job, context, occupied, caps):
        return
    for id, registered in context.processors.items():
        processor, silent_ms = registered.processor, context.silent_for_ms(id)
        is_live = silent_ms is not None and silent_ms <= context.config.heartbeat_timeout_ms
        free = processor.slots - occupied.of_processor[id]
        is_draining = processor.draining or drain_id(processor.name) in context.pauses
        if is_live and not is_draining and free > 0 and processor.supports(job.definition):
            yield Finding(
                FindingKind.WAITING_IN_VAIN,
                f"jobs/{job.id}",
                f"it has been due for {waited_ms // 1_000} s, and {id} has {free} of {processor.slots} slots free"
                + (f" (its retry was to be at {instant_or_ms(job.retry_at_ms)})" if job.retry_at_ms else ""),
                f"hascheduler why {job.id}; if nothing holds it back, restart the leader",
                since_ms,
                witness=f"{job.rev}",
            )
            return


def _is_capped(job: JobRef, context: CheckContext, occupied: OccupiedSlots, caps: ConcurrencyCaps) -> bool:
    definition = context.definition(job.definition)
    if definition.tier is not None or definition.rate_limit is not None or definition.may_exclude:
        return True
    if definition.needs(job.resources) != NO_RESOURCES:
        return True
    capped = (
        (caps.in_all, occupied.in_all),
        (definition.max_concurrency, occupied.of_definition[job.definition]),
        (caps.tenants.get(job.tenant), occupied.of_tenant[job.tenant]),
    )
    return any(cap is not None and running >= cap for cap, running in capped)
