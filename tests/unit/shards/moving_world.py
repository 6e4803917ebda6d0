"""Shards with leaders, requests and a mover, one exchange at a time: between any two, everybody else does something."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_hold, encode_hold
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports.tenants import MARK
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover, ShardDocuments
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.holds import MemoryHoldStore
from tests.doubles.tenants import MemoryTenantStore
from tests.factories import NOW

SHARDS = ("default", "0001", "0002")
TENANT = "acme"
PARTITION = partition_of(TENANT)
KEY = partition_key(PARTITION)
FROM, TO = 1, 2
RETENTION_MS = 600_000
_EXCHANGES_MAX = 4_000
_SUBMITS_MAX = 40
_FIRES_MAX = 200
_PROMISED = 3
"""For so many turns a leader that has seen a hold still decides what it had promised before."""
LATE = "kept-late"
"""The job of a request that had stood still: it goes to where it belongs before it is taken from where it is."""
Hook = Callable[[int, str], Awaitable[None]]


class MoverKilled(BaseException):
    """The end of a process, which nothing catches."""


async def nothing(_exchange: int, _name: str) -> None:
    pass


@dataclass
class MovingWorld:
    """``decided`` counts verdicts by nominal time, ``ran`` starts by job; ``revs`` has each job's newest revision."""

    databases: Sequence[MemoryDatabase] = field(default_factory=lambda: [MemoryDatabase() for _ in SHARDS])
    layout: Layout = field(default_factory=lambda: Layout(1, SHARDS, (FROM,) * 256).beginning({PARTITION: TO}))
    now: int = NOW
    leading: bool = True
    all_know_shards: bool = True
    keeps_to_parts: bool = True
    are_frozen_acknowledged: bool = True
    target_answers: bool = True
    decided: Counter[int] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    revs: dict[str, int] = field(default_factory=dict)
    store_type: type[MemoryTenantStore] = MemoryTenantStore
    held_for: Counter[int] = field(default_factory=Counter)
    known: dict[int, dict[str, int]] = field(default_factory=dict)
    exchanges: int = 0
    submitted: int = 0

    # Ports of the mover

    def wall_ms(self) -> WallMs:
        self.now += 1
        return WallMs(self.now)

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.now)

    async def all_know(self, index: int) -> bool:
        return self.all_know_shards

    async def all_have(self, epoch: int, patience_s: float) -> bool:
        assert epoch <= self.layout.epoch
        return self.are_frozen_acknowledged

    async def get(self) -> Layout:
        return self.layout

    async def replace(self, epoch: int, layout: Layout) -> bool:
        if self.layout.epoch != epoch:
            return False
        assert layout.epoch == epoch + 1
        self.layout = layout
        return True

    def mover(self, hook: Hook = nothing) -> PartitionMover:
        connections = [MemoryConnection(database) for database in self.databases]

        def hooked(store: Any) -> Any:
            return _Hooked(store, self, hook)

        async def keeps_to_parts() -> bool:
            return self.keeps_to_parts

        shards = [
            ShardDocuments(hooked(self.store_type(each, RETENTION_MS)), hooked(MemoryHoldStore(each)))
            for each in connections
        ]
        home: Any = self
        return PartitionMover(home, hooked(self), shards, keeps_to_parts=keeps_to_parts, clock=self, late_ms=10)

    async def moved(self, mover: PartitionMover | None = None, *, swept: bool = True) -> None:
        """Bring the partition to rest, and sweep twice what came late."""
        mover = mover or self.mover()
        while await mover.step(PARTITION):
            assert self.exchanges < _EXCHANGES_MAX, f"it never ends: {self.layout}"
        for index in [*range(len(SHARDS))] * 2 if swept else ():
            await mover.sweep(self.layout, index)

    # What happens meanwhile

    def turn(self) -> None:
        """Everybody but the mover does one thing."""
        self.exchanges += 1
        if self.exchanges % 3 == 0 and self.submitted < _SUBMITS_MAX and not self.layout.is_frozen(PARTITION):
            self.submitted += 1
            self.put_job(self.layout.shard_of[PARTITION], f"submitted-{self.submitted}")
        for index in range(len(SHARDS)):
            if index != TO or self.target_answers:
                self._lead(index)
        self.check()

    def check(self) -> None:
        """Require that what is live once the target is open is nowhere else."""
        if self.layout.is_at_rest(PARTITION) or PARTITION in self.layout.moving:
            return
        there = self.layout.shard_of[PARTITION]
        if self.hold(there) is None or not self.hold(there).is_held:  # type: ignore[union-attr]
            doubled = self.live(there) & self.live(self.layout.leaving[PARTITION]) - {LATE}
            assert not doubled, f"live in two shards: {doubled}"

    def put_job(self, index: int, id: str, **fields: Any) -> None:
        made = {"tenant": TENANT, "state": JobState.PENDING.value, "rev": 1, "submitted_at_ms": self.now}
        job = {"_id": id, **made, **fields}
        assert self.databases[index].insert(Collection.JOBS, job)
        self.revs[id] = job["rev"]

    def change_job(self, index: int, id: str, **fields: Any) -> None:
        job = self.databases[index].find(Collection.JOBS, id)
        if job is not None:
            self.databases[index].replace(Collection.JOBS, {**job, "rev": job["rev"] + 1, **fields})
            self.revs[id] = max(self.revs[id], job["rev"] + 1)

    def put_schedule(self, index: int, name: str = "tick") -> None:
        fields = {"rev": 1, "created_at_ms": NOW, "cursor_ms": 0, "job": {"tenant": TENANT}}
        assert self.databases[index].insert(Collection.SCHEDULES, {"_id": name, **fields})

    def hold(self, index: int) -> Hold | None:
        found = self.databases[index].find(Collection.HOLDS, KEY)
        return None if found is None else decode_hold(KEY, found)

    def _lead(self, index: int) -> None:
        database, hold = self.databases[index], self.hold(index)
        if hold is None or not hold.is_held:
            self.held_for[index] = 0
            self.known[index] = {each["_id"]: each["cursor_ms"] for each in database.documents(Collection.SCHEDULES)}
            self._fire(index)
            self._start(index)
            self._end(index)
            return
        self.held_for[index] += 1
        if self.held_for[index] <= _PROMISED and self.held_for[index] % 12 == 1:
            self._fire(index)
        self._end(index)
        is_idle = self.held_for[index] > _PROMISED and not self._jobs(index, JobState.RUNNING)
        if hold.is_awaited and is_idle:
            database.replace(Collection.HOLDS, encode_hold(Hold(KEY, hold.rev, True, hold.is_silent, hold.rev)))

    def _fire(self, index: int) -> None:
        """By the cursors that the leader knows, as those of a real one are in its memory."""
        database = self.databases[index]
        for name, cursor_ms in self.known.get(index, {}).items():
            if cursor_ms < _FIRES_MAX:
                self.known[index][name] = nominal = cursor_ms + 1
                self.decided[nominal] += 1
                if database.find(Collection.JOBS, f"fire:{name}:{nominal}") is None:
                    self.put_job(index, f"fire:{name}:{nominal}")
                schedule = database.find(Collection.SCHEDULES, name)
                if schedule is not None:
                    database.replace(Collection.SCHEDULES, {**schedule, "cursor_ms": nominal})

    def _start(self, index: int) -> None:
        for job in self._jobs(index, JobState.PENDING)[:1]:
            self.ran[job["_id"]] += 1
            self.change_job(index, job["_id"], state=JobState.RUNNING.value)

    def _end(self, index: int) -> None:
        for job in self._jobs(index, JobState.RUNNING)[:1]:
            self.change_job(index, job["_id"], state=JobState.SUCCEEDED.value)

    def _jobs(self, index: int, state: JobState) -> list[Any]:
        """Return the jobs that are worked on: those that are kept only wait."""
        return [
            job
            for job in self.databases[index].documents(Collection.JOBS)
            if job["state"] == state and not job["_id"].startswith("kept")
        ]

    # What is asked afterwards

    def live(self, index: int) -> set[str]:
        states = {JobState.PENDING, JobState.RUNNING}
        jobs = {job["_id"] for job in self.databases[index].documents(Collection.JOBS) if job["state"] in states}
        return jobs | {each["_id"] for each in self.databases[index].documents(Collection.SCHEDULES)}

    def documents(self, index: int) -> dict[str, Any]:
        collections = (Collection.JOBS, Collection.SCHEDULES, Collection.VERDICTS, Collection.BUCKETS)
        return {
            each["_id"]: {name: value for name, value in each.items() if name != MARK}
            for collection in collections
            for each in self.databases[index].documents(collection)
        }

    def require_all_there(self, index: int = TO) -> None:
        """Require everything in that shard alone, in its newest version, decided once and started at most once."""
        assert self.layout.is_at_rest(PARTITION)
        assert self.layout.shard_of[PARTITION] == index
        for other in {0, FROM, TO} - {index}:
            assert self.documents(other) == {}
        there, hold = self.documents(index), self.hold(index)
        assert hold is not None
        assert not hold.is_held
        assert self.revs.keys() <= there.keys()
        assert {id: there[id]["rev"] for id in self.revs} == self.revs
        assert {id: count for id, count in self.ran.items() if count > 1} == {}
        assert {at: count for at, count in self.decided.items() if count > 1} == {}
        if "tick" in there:
            assert set(self.decided) == set(range(1, there["tick"]["cursor_ms"] + 1))


class _Hooked:
    """A port: before each call the world takes a turn, and the hook is called."""

    def __init__(self, store: Any, world: MovingWorld, hook: Hook) -> None:
        self._store = store
        self._world = world
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._store, name)

        async def ask(*arguments: Any, **options: Any) -> Any:
            self._world.turn()
            await self._hook(self._world.exchanges, name)
            return await asked(*arguments, **options)

        return ask
