"""The verdict on the cluster, from what this replica sees and, only if somebody asks, has read lately.

The failed jobs of a tenant and the failovers come from the database, with a limit on their number and on the time.
Failing schedules are found in the mirror, late ones by the core's timers, for all tenants at once, in slices.
"""

import asyncio
from collections.abc import Generator, Mapping, Sequence

from hascheduler.api.ops.health_rules import DAY_MS, NAMED_MAX, HealthResponse, Known, ScheduleTrouble, health_of
from hascheduler.api.routing.queries import run_in_slices
from hascheduler.api.routing.recent_reads import Unread
from hascheduler.api.services import ApiServices
from hascheduler.dispatch.schedules.trouble import LATE_MS_MIN, is_failing, is_late
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FAILOVERS_MAX, Cluster, JobSelection
from hascheduler.schema.schedule import ScheduleRef

FAILED_MAX = 1_000
"""How many failed jobs are read."""
_SLICE, _LATE_SLICE = 2_000, 20


async def health(services: ApiServices, tenant: str | None) -> tuple[Cluster, HealthResponse]:
    """Return the cluster, and the verdict on it for the tokens of that tenant, or for those for all tenants (None)."""
    view, clock, recent = services.view, services.clock, services.recent
    which = JobSelection(tenant=tenant, failed_since_ms=WallMs(clock.wall_ms() - DAY_MS))
    scheduler = services.work_terms.scheduler
    failed, schedules, failovers = await asyncio.gather(
        recent.get(("failed", tenant), clock, lambda: services.jobs.failed(which, FAILED_MAX)),
        recent.get("schedules", clock, lambda: run_in_slices(_in_trouble(services))),
        recent.get("failovers", clock, lambda: services.failovers.newest(scheduler, FAILOVERS_MAX)),
    )
    cluster, now = view.cluster(), clock.wall_ms()
    alive = sum(replica.id not in cluster.silent for replica in cluster.replicas)
    found = health_of(
        Known(
            now=now,
            cluster=cluster,
            gauges=view.gauges(),
            unready_reason=view.unready_reason,
            tenant=tenant,
            replicas_expected=max(alive, services.replicas_expected or view.history().most("replicas")),
            failovers=failovers,
            failed=failed,
            schedules=schedules if isinstance(schedules, Unread) else schedules.get(tenant, ScheduleTrouble()),
        )
    )
    since = recent.first_seen(tenant, [each.key for each in found.problems], now)
    timed = [each.model_copy(update={"since_ms": each.since_ms or since[each.key]}) for each in found.problems]
    return cluster, found.model_copy(update={"problems": timed})


def _in_trouble(services: ApiServices) -> Generator[None, None, Mapping[str | None, ScheduleTrouble]]:
    """Return the schedules that fail and that are late, by tenant; those of all tenants under None."""
    view, now = services.view, services.clock.wall_ms()
    copied = view.copied_partitions()
    found: dict[str | None, ScheduleTrouble] = {}

    def troubles(schedule: ScheduleRef) -> Sequence[ScheduleTrouble]:
        tenant = schedule.template.tenant
        is_copy = bool(copied) and partition_of(tenant) in copied
        return [] if is_copy else [found.setdefault(each, ScheduleTrouble()) for each in (None, tenant)]

    schedules = [*view.schedules().values()]  # copied, as the mirror changes meanwhile
    for begin in range(0, len(schedules), _SLICE):
        for schedule in filter(is_failing, schedules[begin : begin + _SLICE]):
            for trouble in troubles(schedule):
                trouble.failing += 1
                trouble.worst = sorted([*trouble.worst, (-schedule.failures, schedule.name)])[:NAMED_MAX]
        yield
    overdue = view.overdue_schedules(now - LATE_MS_MIN)
    for begin in range(0, len(overdue), _LATE_SLICE):
        for schedule in overdue[begin : begin + _LATE_SLICE]:
            if is_late(schedule, view.calendars(), now):
                for trouble in troubles(schedule):
                    trouble.late.append(schedule.name)
        yield
    return found
