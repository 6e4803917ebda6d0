"""Moves slots of tenants from one shard to another while everything runs, for as long as this replica leads the home.

What is to move stands in the routing (`Routing.moving`), and each step can be seen in what is stored, so the leader
of the home goes on where its predecessor broke off:

1. *close*: the shard where the slot goes, and then the one where it is, get a hold on it. What of it
   waits is decided no more; what a processor has goes on.
2. *release*: the leader of the second says so through its journal, once nothing of the slot is promised or running
   there (`hascheduler.dispatch.held_partitions`).
3. *move what decides*: the schedules, the waiting jobs of those whose overlap policy looks at them, and the waiting
   jobs that wait for others, after those that they wait for. Without these the other shard would decide wrongly; all
   else it can do without.
4. *arrive*: the routing says where the slot is, and that it is leaving the shard before, by compare-and-set on its
   epoch.
5. *open*: there its hold is lifted, and everything is caught up with by the cursors that came along.
6. *move the rest*, while the other shard decides: waiting jobs, the most urgent and oldest first, those that ended,
   verdicts. Once nothing is left, the shard before is closed again, and if nothing is left still, the routing says that
   the slot is at rest.

Nothing of a slot starts between the first step and the fifth. So that is short however much there is of it.

Documents move some at a time, in transactions over both databases: at every instant a document is in exactly one shard.
A transaction demands the holds of the slot that this replica saw in both shards. Each later step, and each later move,
begins by putting another one in one of them, so one that was asleep meanwhile moves nothing. Where the two are in
different MongoDBs, a document is on its way between two transactions, and in no shard.

One shard decides at most: the first none since its release, the other only of what has arrived. What it can't see yet
must not matter to what it decides: a fire looks at its schedule's cursor, and by its overlap policy at the live jobs, a
job at those that it waits for, and these came before. A fire whose job is there and whose cursor did not follow would
be decided again; but what is promised is over before the slot is released. A key may be held by what is still to come:
so new jobs and schedules are refused until the slot is at rest (`ShardPlaces.require_at_rest`). Of `max_pending`, fires
count what has arrived.

A request that goes by the routing of before, or is very late, writes into a shard that decides nothing of it: such
documents are moved after the others (*sweep*). A job that comes so into the shard where its slot is, before the job of
that id has arrived, gives way to it (`is_late_copy`).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol

import structlog

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.hold import Hold, partition_key, partition_of_key
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.routing import Routing
from hascheduler.ports import Clock, ClusterView
from hascheduler.ports.holds import HoldStore
from hascheduler.ports.sharding import MovedDocuments, Passage, RoutingStore, SlotStore
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

_TURN_S = 0.5
_BUSY_TURN_S = 0.02
"""While a slot moves: what is not decided there waits for each of these steps."""
_SLOTS_AT_ONCE_MAX = 4
_DOCUMENTS_AT_ONCE = 1_000
_BATCHES_A_TURN = 20
_LOOK_EVERY_MS = 5_000
_LOOK_AGAIN_MS = 500
"""Where something is on its way."""


class MovedShard(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def shard(self) -> str: ...

    @property
    def view(self) -> ClusterView: ...

    def nouns(self, collection: Collection) -> Mapping[str, Any]: ...

    def live_replicas(self) -> Sequence[ReplicaStatus]: ...

    def kept_aside(self, slot: int) -> int: ...

    def hurry(self) -> None: ...


class SlotMover:
    """Owner of when it looks next for what is on its way. ``shards`` are in the order of the routing, ``stores`` those
    of their holds."""

    def __init__(
        self,
        routing: RoutingStore,
        stores: Sequence[HoldStore],
        shards: Sequence[MovedShard],
        slots: SlotStore,
        clock: Clock,
    ) -> None:
        self._routing = routing
        self._stores = stores
        self._shards = shards
        self._slots = slots
        self._clock = clock
        self._look_at_ms = 0
        self._swept: set[tuple[int, int]] = set()
        """The slots that move now, and where to, of which nothing was there when this replica looked."""

    async def run(self) -> None:
        """Two loops: what waits for a slot that is closed does not wait for the rest of another one."""
        async with asyncio.TaskGroup() as tasks:
            for turn in (self.turn, self.turn_of_the_rest):
                tasks.create_task(self._run(turn))

    def is_moving(self) -> bool:
        """Whether this replica leads the home, and documents of some slot are to go elsewhere."""
        known = self._known()
        return known is not None and (bool(known.moving or known.leaving) or any(self._strays(known)))

    async def _run(self, turn: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        reminders = Reminders()
        while True:
            is_busy = True
            try:
                is_busy = await turn()
                reminders.over()
            except (StoreUnavailable, InvalidInput) as error:
                if reminders.is_due(str(error), self._clock.mono_ms()):
                    log.warning("slots_delayed", error=str(error))
            await asyncio.sleep(_BUSY_TURN_S if is_busy else _TURN_S)

    async def turn(self) -> bool:
        """One look at slots until they are open where they go; whether something is on its way."""
        known = self._known()
        if known is None:
            self._swept.clear()
            return False
        taken_up = self._taken_up(known)
        for slot, to in taken_up:
            for index in (known.shard_of_slot[slot], to):
                self._shards[index].hurry()  # its hold is to be seen here, as one that follows
        if not (any(self._unopened(known)) or any(self._is_to_do(known, taken_up))):
            return bool(known.moving)
        routing = await self._read()
        if routing is not None:
            for slot, to in self._taken_up(routing):
                routing = await self._advance(routing, slot, to)
            for slot in self._unopened(routing):
                await self._open(routing, slot)
        return bool(known.moving)

    async def turn_of_the_rest(self) -> bool:
        """One look at what is left of slots elsewhere; whether something moves, or is about to."""
        known = self._known()
        if known is None:
            self._look_at_ms = 0
            return False
        is_busy, underway = bool(known.moving), await self._underway()
        if not (known.leaving or underway or any(self._strays(known))):
            return is_busy
        routing = await self._read()
        if routing is not None:
            for slot, source in list(routing.leaving.items()):
                moved = await self._move_rest(routing, slot, source)
                is_opening = self._is_closed(slot, routing.shard_of_slot[slot])
                is_busy |= is_opening or (moved is not None and moved.documents > 0)
                if moved == MovedDocuments(0, 0) and await self._is_sealed(routing, slot, source):
                    routing = await self._empty(routing, slot)
            for index, slot in self._strays(routing):
                await self._move_rest(routing, slot, index)
            for index, slot in underway:
                await self._deliver(routing, slot, index)
        return is_busy

    async def _underway(self) -> Sequence[tuple[int, int]]:
        """The shards out of which something of a slot is on its way, as a mover broke off; looked for now and then."""
        now = self._clock.mono_ms()
        if now < self._look_at_ms:
            return ()
        found: list[tuple[int, int]] = []
        for index, shard in enumerate(self._shards):
            if shard.view.ready:
                found += [(index, slot) for slot in await self._slots.underway(index)]
        self._look_at_ms = now + (_LOOK_AGAIN_MS if found else _LOOK_EVERY_MS)
        return found

    async def _deliver(self, routing: Routing, slot: int, index: int) -> None:
        """Of a slot that moves, who moves it does that."""
        here = routing.shard_of_slot[slot]
        closed, opened = self._hold(slot, index), self._hold(slot, here)
        if routing.is_at_rest(slot) and closed is not None and opened is not None and not opened.is_held:
            await self._slots.deliver(Passage(index, here, closed, opened), self._clock.wall_ms())

    def _known(self) -> Routing | None:
        """As this replica's mirror has it; None: it does not lead the home."""
        home = self._shards[0]
        known: Routing | None = home.nouns(Collection.ROUTING).get(ROUTING_ID)
        return known if home.view.leading and home.view.ready else None

    async def _read(self) -> Routing | None:
        """The newest one; None: a replica that knows all of its shards is about to lead the home."""
        routing = await self._routing.get()
        return None if routing is None or len(routing.shards) > len(self._shards) else routing

    def _is_to_do(self, known: Routing, taken_up: Sequence[tuple[int, int]]) -> Iterator[bool]:
        """Of each slot that is on its way: whether it waits for anything but its release, which may take long."""
        for slot, _ in taken_up:
            hold = self._hold(slot, known.shard_of_slot[slot])
            yield hold is None or not hold.is_awaited

    def _taken_up(self, routing: Routing) -> Sequence[tuple[int, int]]:
        """The slots that move now, and where to: those that are closed, and others while few are on their way."""
        closed = {slot: to for slot, to in routing.moving.items() if self._is_closed(slot, routing.shard_of_slot[slot])}
        leaving = sum(self._shards[source].view.ready for source in routing.leaving.values())
        others = [
            (slot, to) for slot, to in routing.moving.items() if slot not in closed and not self._astray(slot, to)
        ]
        return [*closed.items(), *others[: max(_SLOTS_AT_ONCE_MAX - len(closed) - leaving, 0)]]

    def _is_closed(self, slot: int, index: int) -> bool:
        hold = self._hold(slot, index)
        return hold is not None and hold.is_held

    async def _advance(self, routing: Routing, slot: int, to: int) -> Routing:
        """The next step of that move, as far as it can be taken now; the routing after it."""
        source = routing.shard_of_slot[slot]
        there = self._shards[to]
        if not all(self._shards[index].view.ready for index in (source, to)):
            return routing
        living = {status.id for status in self._shards[0].live_replicas()}
        if not living <= {status.id for status in there.live_replicas()}:
            return routing  # some replica does not follow that shard yet
        passage = await self._closed_both(routing, slot, source, to)
        if passage is None or passage.closed.is_awaited:
            return routing
        for _ in range(_BATCHES_A_TURN):
            moved = await self._slots.move_first(passage, _DOCUMENTS_AT_ONCE, self._clock.wall_ms())
            if not moved.documents:
                break
        else:
            return routing
        if moved.left:
            return routing
        arrived = routing.arrived(slot)
        if not await self._routing.replace(routing.epoch, arrived):
            return routing  # it has changed meanwhile: the next turn reads it
        log.info("slot_moved", slot=slot, shard=there.shard, epoch=arrived.epoch)
        await self._open(arrived, slot)
        return arrived

    async def _is_sealed(self, routing: Routing, slot: int, source: int) -> bool:
        """Whether the source was closed again since the slot is open where it is: a mover that was asleep until now
        takes nothing out of it any more."""
        closed, opened = self._hold(slot, source), self._hold(slot, routing.shard_of_slot[slot])
        if closed is None or opened is None or closed.rev >= opened.rev:
            return True
        await self._stores[source].put(Hold(partition_key(slot), routing.epoch, is_held=True))
        return False

    async def _empty(self, routing: Routing, slot: int) -> Routing:
        """Nothing is left where it came from; the routing after that was written."""
        emptied = routing.emptied(slot)
        if not await self._routing.replace(routing.epoch, emptied):
            return routing
        log.info("slot_emptied", slot=slot, epoch=emptied.epoch)
        return emptied

    async def _move_rest(self, routing: Routing, slot: int, source: int) -> MovedDocuments | None:
        """None: not now, as it is not seen to be closed there and open where it is, or one of the two is not ready."""
        here = routing.shard_of_slot[slot]
        closed, opened = self._hold(slot, source), self._hold(slot, here)
        if closed is None or not closed.is_held or opened is None or opened.is_held:
            return None
        if not all(self._shards[index].view.ready for index in (source, here)):
            return None
        passage = Passage(source, here, closed, opened)
        return await self._slots.move_rest(passage, _DOCUMENTS_AT_ONCE, self._clock.wall_ms())

    async def _closed_both(self, routing: Routing, slot: int, source: int, to: int) -> Passage | None:
        """The way between the two, once both are seen to be closed. The source is last: with it the pause begins.

        Before that, what came late into the other one is swept out of its database: this replica's mirror may be
        behind. A job that is in both has ended in the source, maybe, and would be done again where it still waits."""
        there = await self._closed(routing, slot, to)
        if there is None:
            return None
        if not await self._swept_out(routing, slot, source, to):
            return None
        closed = await self._closed(routing, slot, source)
        return None if closed is None else Passage(source, to, closed, there)

    async def _swept_out(self, routing: Routing, slot: int, source: int, to: int) -> bool:
        """Once in each move; a slot that never moved is in one shard alone."""
        self._swept.intersection_update(routing.moving.items())
        opened = self._hold(slot, source)
        has_moved = opened is not None and not opened.is_held
        if has_moved and (slot, to) not in self._swept:
            if await self._move_rest(routing, slot, to) != MovedDocuments(0, 0):
                return False
            self._swept.add((slot, to))
        return True

    async def _closed(self, routing: Routing, slot: int, index: int) -> Hold | None:
        """The hold that closes the slot there, once this replica's mirror shows it."""
        hold = self._hold(slot, index)
        if hold is None or not hold.is_held:
            await self._stores[index].put(Hold(partition_key(slot), routing.epoch, is_held=True))
            return None
        return hold

    def _unopened(self, routing: Routing) -> Iterator[int]:
        """The slots that are closed where they are, and do not move."""
        for slot in self._known_slots():
            if slot not in routing.moving and self._is_closed(slot, routing.shard_of_slot[slot]):
                yield slot

    async def _open(self, routing: Routing, slot: int) -> None:
        await self._stores[routing.shard_of_slot[slot]].put(Hold(partition_key(slot), routing.epoch, is_held=False))

    def _strays(self, routing: Routing) -> Iterator[tuple[int, int]]:
        """The shards in which something is of a slot that is another shard's."""
        for slot in self._known_slots():
            here = routing.shard_of_slot[slot]
            if slot in routing.leaving or (slot in routing.moving and self._is_closed(slot, here)):
                continue
            for index in range(len(self._shards)):
                if index != here and self._astray(slot, index):
                    yield index, slot

    def _astray(self, slot: int, index: int) -> int:
        """How many jobs and schedules of that slot came late into that shard, whose it is not. They go where the slot
        is before it may come there itself: a job that is there too has ended, maybe, and would be done again."""
        return self._shards[index].kept_aside(slot) if self._is_closed(slot, index) else 0

    def _known_slots(self) -> Sequence[int]:
        """Those that moved once."""
        found = {partition_of_key(key) for shard in self._shards for key in shard.nouns(Collection.HOLDS)}
        return sorted(slot for slot in found if slot is not None)

    def _hold(self, slot: int, index: int) -> Hold | None:
        hold: Hold | None = self._shards[index].nouns(Collection.HOLDS).get(partition_key(slot))
        return hold
