"""Writes for the tests of change streams."""

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold
from hascheduler.model.schema_version import SchemaVersion, encode_schema_version
from tests.contract.backends import Backend
from tests.contract.claim_checks import applied
from tests.contract.following import put
from tests.contract.job_states import bring_to
from tests.factories import (
    make_calendar,
    make_definition,
    make_entry,
    make_fire,
    make_lane,
    make_lease,
    make_pause,
    make_processor,
    make_replica,
    make_schedule,
    make_tenant,
    make_token,
)


async def mark(backend: Backend, name: str = "the end") -> None:
    await put(backend.definitions, make_definition(name))


async def write_everything(backend: Backend) -> None:
    """Something in every collection, and a job in each state."""
    await backend.leases.create(make_lease())
    await backend.leases.update(make_lease(), make_lease(renewals=1))
    await backend.journal.insert(make_entry(1))
    await backend.board.beat(make_replica())
    await backend.work.register(make_processor())
    await backend.work.beat("p1", 2, draining=False, parked=0)
    await put(backend.definitions, make_definition("log"))
    await backend.lanes.create(make_lane())
    await backend.calendars.create(make_calendar())
    await backend.tenants.create(make_tenant())
    await backend.pauses.create(make_pause())
    await backend.tokens.create(make_token())
    await backend.holds.put(Hold("cap/all", 2, is_held=True))
    await backend.schedules.create(make_schedule())
    await backend.schedules.edit("tick", 1, {"payload": "new"})
    await applied(backend.claims, make_fire(1))
    await backend.behind.insert(Collection.META, encode_schema_version(SchemaVersion(1)))
    for state in JobState:
        await bring_to(backend, state, state.value)
