"""Which shard has what: by tenant, by the id of a job, by the name of a schedule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from hascheduler.errors import InvalidInput, Moving, StoreUnavailable
from hascheduler.model.job import schedule_of
from hascheduler.model.routing import Routing, slot_in, slot_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports.sharding import NameStore
from hascheduler.sharding.asking import outages_of

_Shard = TypeVar("_Shard")


class ShardPlaces:
    """Which routing this process goes by: ``routing`` until `follow` gives a later one. Shards are meant by their
    index, the home is 0. ``mongodbs`` has the number of the MongoDB of each; empty: all are in one."""

    def __init__(self, routing: Routing, names: NameStore, mongodbs: Sequence[int] = ()) -> None:
        self._first = routing
        self._mongodbs = mongodbs
        self._newest: Callable[[], Routing | None] = lambda: None
        self._names = names

    def follow(self, newest: Callable[[], Routing | None]) -> None:
        """Go by what this gives from now on, as far as it is of the same shards; None: it is not known yet."""
        self._newest = newest

    @property
    def _routing(self) -> Routing:
        newest, count = self._newest(), len(self._first.shards)
        if newest is None or newest.shards[:count] != self._first.shards:
            return self._first
        return newest

    @property
    def count(self) -> int:
        return len(self._first.shards)

    @property
    def shards(self) -> Sequence[str]:
        """Their names, the home's first."""
        return self._first.shards

    def require_at_rest(self, tenant: str) -> None:
        """`Moving` for a moment, while what is of that tenant moves to another shard: nothing new is taken,
        as a key of it may be held in either of the two."""
        if not self._routing.is_at_rest(slot_of(tenant)):
            raise Moving(f"tenant {quoted(tenant)} moves to another shard; come again in a second")

    def require_found(self, *tenants: str) -> None:
        """`Moving` where what is of one of them is in no shard for a moment, as it moves to another MongoDB:
        what was not found may be there."""
        for tenant in tenants:
            slot = slot_of(tenant)
            if self._is_between_mongodbs(slot):
                raise Moving(f"tenant {quoted(tenant)} moves to another shard; come again in a second")

    async def require_job_found(self, job_id: str) -> None:
        """As `require_found`, for a job by that id, whosever it is."""
        slot = slot_in(job_id)
        if slot is not None and self._is_between_mongodbs(slot):
            raise Moving(f"job {quoted(job_id)} may be moving to another shard; come again in a second")
        schedule = schedule_of(job_id)
        if schedule is not None:
            await self.require_schedule_found(schedule)

    async def require_schedule_found(self, name: str) -> None:
        """As `require_found`, for a schedule of that name, whosever it is."""
        if not any(map(self._is_between_mongodbs, {*self._routing.moving, *self._routing.leaving})):
            return
        with outages_of(self.shards[0]):
            reserved = await self._names.get(name)
        if reserved is not None:
            self.require_found(reserved.tenant)

    def _is_between_mongodbs(self, slot: int) -> bool:
        here, other = self._routing.shard_of_slot[slot], self._routing.other_of(slot)
        if not self._mongodbs or other is None or max(here, other) >= len(self._mongodbs):
            return False
        return self._mongodbs[here] != self._mongodbs[other]

    def of_tenant(self, tenant: str) -> int:
        return self.of_slot(slot_of(tenant))

    def meant(self, shards: Sequence[_Shard], tenant: str | None) -> Sequence[_Shard]:
        """Of one thing a shard, the one of that tenant, and while its slot moves the other one of the two; all where
        none is given."""
        if tenant is None:
            return shards
        here, other = self.of_tenant(tenant), self._routing.other_of(slot_of(tenant))
        return [shards[here]] if other is None or other >= self.count else [shards[here], shards[other]]

    def of_slot(self, slot: int) -> int:
        """`StoreUnavailable` where it is in a shard that this process was not started for."""
        index = self._routing.shard_of_slot[slot]
        if index >= self.count:
            raise StoreUnavailable(f"shard {self._routing.shards[index]} was added since this replica started")
        return index

    def index_of(self, shard: str) -> int | None:
        """Of the shard by that name; None: there is none."""
        return self.shards.index(shard) if shard in self.shards else None

    async def of_schedule(self, name: str) -> int | None:
        """The shard in which the schedule of that name is, if there is one; None: its name is not reserved."""
        with outages_of(self.shards[0]):
            reserved = await self._names.get(name)
        return None if reserved is None else self.of_tenant(reserved.tenant)

    async def of_job(self, job_id: str) -> int | None:
        """The shard in which the job by that id is, if there is one; None: the id does not tell.

        It is where to look first, and no more: a job outlives its schedule, whose name may be of another tenant by now.
        """
        slot = slot_in(job_id)
        if slot is not None:
            return self.of_slot(slot)
        schedule = schedule_of(job_id)
        return None if schedule is None else await self.of_schedule(schedule)

    async def of_jobs(self, ids: Iterable[str]) -> Mapping[str, int | None]:
        """As `of_job` for each of them; a name that stands in several is looked up once."""
        of_schedules: dict[str, int | None] = {}
        found: dict[str, int | None] = {}
        for id in ids:
            schedule = schedule_of(id)
            if schedule is None:
                slot = slot_in(id)
                found[id] = None if slot is None else self.of_slot(slot)
            else:
                if schedule not in of_schedules:
                    of_schedules[schedule] = await self.of_schedule(schedule)
                found[id] = of_schedules[schedule]
        return found

    async def search(self, job_id: str) -> Sequence[int]:
        """All shards, the likeliest first."""
        first = await self.of_job(job_id)
        if first is None:
            return range(self.count)
        return self.from_there(first)

    def from_there(self, first: int) -> Sequence[int]:
        """All shards, that one before the others."""
        return [first, *(index for index in range(self.count) if index != first)]

    def require_one_slot(self, before: str, after: str, path: tuple[str | int, ...]) -> None:
        """`InvalidInput` about ``path`` where what is of the tenant ``before`` would be in another slot as one of
        ``after``: it can't move."""
        if slot_of(before) != slot_of(after):
            raise InvalidInput(
                path,
                f"tenant {quoted(after)} is in shard {self._name_of(after)}, and tenant {quoted(before)} in"
                f" {self._name_of(before)}",
                f"{quoted(before)}, or another name for what is {quoted(after)}'s",
            )

    def require_one_shard(self, tenants: Sequence[str], path: tuple[str | int, ...]) -> None:
        """`InvalidInput` about ``path`` where they are in different shards, with the names of two."""
        for tenant in tenants:
            if self.of_tenant(tenant) != self.of_tenant(tenants[0]):
                raise InvalidInput(
                    path,
                    f"tenant {quoted(tenant)} is in shard {self._name_of(tenant)}, and tenant {quoted(tenants[0])} in"
                    f" {self._name_of(tenants[0])}",
                    "one shard for what is written as one",
                )

    def _name_of(self, tenant: str) -> str:
        return self.shards[self.of_tenant(tenant)]
