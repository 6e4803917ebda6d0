"""Who may submit to a shard that this replica does not follow."""

from dataclasses import replace

import pytest

from hascheduler.api.admission.distant import DistantAdmission
from hascheduler.errors import InvalidInput, Overloaded, TooMany
from hascheduler.model.definition import RateLimit
from hascheduler.model.tenant import Tenant
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import LeaderLag
from hascheduler.testing.memory.access import MemoryBucketStore
from tests.factories import make_job
from tests.unit.api.doubles import StandingClock, World

ACME = Tenant("acme")


class Clock(StandingClock):
    since_start_ms = 0

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.since_start_ms)


def admission(
    world: World, tenant: Tenant = ACME, max_pending: int | None = None, max_dependencies: int | None = None
) -> DistantAdmission:
    world.view.tenant = lambda _: tenant
    world.clock = Clock()
    return DistantAdmission(
        world.view,
        MemoryBucketStore(world.connection),
        world.jobs,
        world.clock,
        is_ready=lambda: world.view.ready,
        max_pending=max_pending,
        max_dependencies=max_dependencies,
    )


async def test_without_limits_all_are_let_in(world: World) -> None:
    await admission(world).admit("acme", 1_000)


async def test_pending_jobs_of_a_tenant_are_counted_where_they_are_stored(world: World) -> None:
    admit = admission(world, replace(ACME, max_pending=2)).admit
    for id in ("job:1", "job:2"):
        await admit("acme", 1)
        await world.jobs.submit(make_job(id, tenant="acme"))
    with pytest.raises(TooMany, match="2 jobs of tenant 'acme' wait, and 2 may"):
        await admit("acme", 1)
    with pytest.raises(InvalidInput, match="at most 2"):
        await admit("acme", 3)


async def test_a_rate_is_taken_from_the_bucket_of_all(world: World) -> None:
    admit = admission(world, replace(ACME, submit_rate=RateLimit(2, 60_000))).admit
    await admit("acme", 2)
    with pytest.raises(TooMany, match="2 jobs in 1m"):
        await admit("acme", 1)


async def test_how_many_wait_in_all_is_what_the_leader_told_and_what_came_since(world: World) -> None:
    room = admission(world, max_pending=10)
    world.view.waiting["other"] = 8
    await room.admit("acme", 2)
    with pytest.raises(Overloaded, match="10 jobs wait, and 10 may"):
        await room.admit("acme", 1)
    room.not_new("acme", 1)
    await room.admit("acme", 1)
    assert isinstance(world.clock, Clock)
    world.clock.since_start_ms += 3_000
    await room.admit("acme", 2)


async def test_dependencies_in_all_are_what_the_leader_told_and_what_came_since(world: World) -> None:
    room = admission(world, max_dependencies=10)
    world.view.awaited = 8
    await room.admit("acme", 1, dependencies=2)
    await room.admit("acme", 1)
    with pytest.raises(TooMany, match="have 10 dependencies, and 10 may be"):
        await room.admit("acme", 1, dependencies=1)
    with pytest.raises(InvalidInput, match="at most 10"):
        await room.admit("acme", 1, dependencies=11)
    room.not_new("acme", 1, dependencies=1)
    await room.admit("acme", 1, dependencies=1)
    assert isinstance(world.clock, Clock)
    world.clock.since_start_ms += 3_000
    await room.admit("acme", 1, dependencies=2)


@pytest.mark.parametrize(
    ("lag_ms", "pending", "later", "is_late"),
    [(5_000, 500, 0, True), (5_000, 10, 0, False), (20, 500, 0, False), (5_000, 500, 490, False)],
)
async def test_a_leader_that_is_late_while_jobs_wait_gets_no_more(
    world: World, lag_ms: int, pending: int, later: int, is_late: bool
) -> None:
    room = admission(world)
    world.view.leader_lag = LeaderLag(lag_ms, 10)
    world.view.waiting["other"] = pending
    world.view.later = later
    assert room.is_holding_back() is is_late
    assert (room.turned_away(None, 10) is not None) is is_late
    if is_late:
        with pytest.raises(Overloaded):
            await room.admit("acme", 1)
    else:
        await room.admit("acme", 1)


async def test_nothing_is_let_in_before_the_limits_of_tenants_are_known(world: World) -> None:
    room = admission(world)
    world.view.ready = False
    with pytest.raises(Overloaded, match="only just begun"):
        await room.admit("acme", 1)
    world.view.ready = True
    await room.admit("acme", 1)
    world.view.ready = False
    await room.admit("acme", 1)
