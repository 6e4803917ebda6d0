"""Whose each schedule's name is, so that no two shards have schedules of one name.

::

    create   reserve ─► look ─► insert ─► confirm       each of reserve, confirm and release is one compare-and-set in
    delete   read    ─► delete ─► release what was read the home; the first two raise ``use``, so one that is late fails

A name that another tenant has reserved is taken if its schedule is there, or may come at any moment: the reservation is
young (`UNUSED_FOR_MS`). An older one without a schedule was left by what broke off, and is taken over. Its own tenant
reserves it again at once.

What must hold, and why it does: *of two creates in two shards at most one succeeds.* Both confirm after their insert;
say that the second of the two confirms is B's. The name became B's in between, by a reservation that compared what it
had read. Its maker had seen A's reservation as of A's confirm or later, and looked for A's schedule after that:
it was there, and B was refused. Or it had seen an earlier one, and lost the comparison, as the confirm raised ``use``.
The age of a reservation, and with it the clocks of two replicas, decides about patience alone.

Interleavings:

* *Two creates of two tenants.* One reserves first. The other is refused while that is young; if it takes over as the
  first stood still, the first finds at its confirm that the name is another's, deletes what it inserted, is refused.
* *Two creates of one tenant*, or of two in one shard. The shard inserts one of them.
* *Create against delete.* A delete releases the reservation that it read before it deleted; a create that came in
  between has reserved the name again, and that one stays. If the delete came between the insert and the confirm, the
  confirm reserves the name again: a reservation without a schedule, as after a crash.
* *A crash* after the reservation, or between a delete and its release: a reservation without a schedule. After the
  insert: the schedule has its reservation, only unconfirmed; a repeated create is refused as the name is taken.
* *A schedule without a reservation*, put there by hand or from before there were several shards: the next request to
  reserve the name looks in all shards, gives the name to the tenant of what it finds, and is refused.

The name of a deleted schedule is taken too while another shard keeps jobs of it: their ids are made of the name and the
time, and an id is in one shard alone. So a create needs an answer of every shard.

Not covered: a create that stands still for longer than `UNUSED_FOR_MS` between its reservation and its insert, is taken
over meanwhile, goes on to insert, and crashes or loses the home before its confirm. Then two shards have a schedule of
that name; the one that the reservation tells counts, and the other is found in lists alone.
"""

from collections.abc import Sequence

from hascheduler.errors import StoreUnavailable
from hascheduler.ports import Clock, JobSelection, JobStore, ScheduleStore, StoredDocument
from hascheduler.ports.sharding import UNUSED_FOR_MS, NameStore, ReservedName
from hascheduler.sharding.asking import ask_all, outages_of
from hascheduler.sharding.places import ShardPlaces

_TRIES = 64
"""Each that fails is one at which another request has reserved or released the same name."""


def tenant_of(schedule: StoredDocument) -> str:
    """All jobs of a schedule are of this one, also those of a graph."""
    return str(schedule["job"]["tenant"])


class Reservations:
    """The part of the schedule store that reserves names, in the home."""

    def __init__(
        self,
        places: ShardPlaces,
        names: NameStore,
        shards: Sequence[ScheduleStore],
        jobs: Sequence[JobStore],
        clock: Clock,
    ) -> None:
        self._places = places
        self._names = names
        self._shards = shards
        self._jobs = jobs
        self._clock = clock

    async def read(self, name: str) -> ReservedName | None:
        with outages_of(self._home):
            return await self._names.get(name)

    async def gain(self, name: str, tenant: str) -> ReservedName | None:
        """The name reserved for a schedule of that tenant; None: it is taken."""
        for _ in range(_TRIES):
            before = await self.read(name)
            if before is not None and not await self._is_free(before, tenant):
                return None
            reserved = await self._reserve(name, tenant, before)
            if reserved is not None:
                return reserved if await self._is_alone(reserved) else None
        raise self._unsettled(name)

    async def confirm(self, reserved: ReservedName) -> bool:
        """Whether the name is still of that shard, after the insert of its schedule, and stays so."""
        here = self._places.of_tenant(reserved.tenant)
        before: ReservedName | None = reserved
        for _ in range(_TRIES):
            if await self._reserve(reserved.name, reserved.tenant, before) is not None:
                return True
            before = await self.read(reserved.name)
            if before is not None and self._places.of_tenant(before.tenant) != here:
                return False
        raise self._unsettled(reserved.name)

    async def give(self, schedule: StoredDocument, before: ReservedName | None) -> None:
        """Reserve its name for its tenant in the place of ``before``, unless another has changed that: then it is
        that one's to put right."""
        if before is None or before.tenant != tenant_of(schedule):
            await self._reserve(str(schedule["_id"]), tenant_of(schedule), before)

    async def release(self, reserved: ReservedName) -> None:
        with outages_of(self._home):
            await self._names.release(reserved)

    @property
    def _home(self) -> str:
        return self._places.shards[0]

    async def _reserve(self, name: str, tenant: str, before: ReservedName | None) -> ReservedName | None:
        with outages_of(self._home):
            return await self._names.reserve(name, tenant, before, self._clock.wall_ms())

    async def _is_free(self, before: ReservedName, tenant: str) -> bool:
        there = self._places.of_tenant(before.tenant)
        if await self._shards[there].get(before.name) is not None:
            return False
        # A clock that is set back is no reason to wait for it.
        return before.tenant == tenant or abs(self._clock.wall_ms() - before.at_ms) >= UNUSED_FOR_MS

    async def _is_alone(self, reserved: ReservedName) -> bool:
        """Whether no shard has a schedule of that name, and no other one jobs of it; else the name is given up."""
        here, name = self._places.of_tenant(reserved.tenant), reserved.name
        others = [jobs for shard, jobs in enumerate(self._jobs) if shard != here]
        found = await ask_all([*(shard.get(name) for shard in self._shards), *(_job_of(name, jobs) for jobs in others)])
        schedules, jobs = found[: self._places.count], found[self._places.count :]
        met = next((schedule for schedule in schedules if schedule is not None), None)
        if met is not None:
            await self.give(met, reserved)
        elif any(jobs):
            await self.release(reserved)
        else:
            return True
        return False

    def _unsettled(self, name: str) -> StoreUnavailable:
        return StoreUnavailable(f"shard {self._home}: reserve the name {name}: its reservations come and go")


async def _job_of(schedule: str, jobs: JobStore) -> StoredDocument | None:
    page = await jobs.list(JobSelection(schedule=schedule), None, 1)
    return next(iter(page.documents), None)
