"""Moves slots of tenants from one shard to another while everything runs, for as long as this replica leads the home.

What is to move stands in the routing (`Routing.moving`), and each step can be seen in what is stored, so whoever leads
the home goes on where another one broke off:

1. *close*: the shard where the slot is, and the one where it goes, get a share of it that is nothing. What of it waits
   is decided no more; what a processor has goes on.
2. *release*: the leader of the first says so through its journal, once nothing of the slot is promised or running
   there (`hascheduler.dispatch.closed_slots`).
3. *move*: its documents, some at a time, in transactions over both databases: at every instant a document is in exactly
   one shard. A transaction demands the closed share that this replica saw, so one that was asleep meanwhile moves
   nothing.
4. *arrive*: the routing says where the slot is, by compare-and-set on its epoch.
5. *open*: there it gets a share that is something, and everything is caught up with by the cursors that came along.

A request that goes by the routing of before, or is very late, writes into a shard that decides nothing of it: such
documents are moved after the others (*sweep*).
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import structlog

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.routing import Routing
from hascheduler.model.share import Share, slot_key, slot_of_key
from hascheduler.ports import Clock, ClusterView
from hascheduler.ports.sharding import RoutingStore, ShareStore, SlotStore
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

_TURN_S = 0.5
_BUSY_TURN_S = 0.05
"""While a slot moves: what is not decided there waits for each of these steps."""
_SLOTS_AT_ONCE_MAX = 4
_DOCUMENTS_AT_ONCE = 1_000
_BATCHES_A_TURN = 20


class MovedShard(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def shard(self) -> str: ...

    @property
    def view(self) -> ClusterView: ...

    def nouns(self, collection: Collection) -> Mapping[str, Any]: ...

    def live_replicas(self) -> Sequence[ReplicaStatus]: ...

    def kept_aside(self, slot: int) -> int: ...


class SlotMover:
    """Owner of nothing but what it last warned of. ``shards`` are in the order of the routing, ``stores`` those of
    their shares."""

    def __init__(
        self,
        routing: RoutingStore,
        stores: Sequence[ShareStore],
        shards: Sequence[MovedShard],
        slots: SlotStore,
        clock: Clock,
    ) -> None:
        self._routing = routing
        self._stores = stores
        self._shards = shards
        self._slots = slots
        self._clock = clock
        self._reminders = Reminders()

    async def run(self) -> None:
        while True:
            is_busy = await self.turn()
            await asyncio.sleep(_BUSY_TURN_S if is_busy else _TURN_S)

    async def turn(self) -> bool:
        """One look; whether something is on its way."""
        home = self._shards[0]
        known: Routing | None = home.nouns(Collection.ROUTING).get(ROUTING_ID)
        if not (home.view.leading and home.view.ready) or known is None or not self._is_to_do(known):
            return False
        try:
            routing = await self._routing.get()
            if routing is None or len(routing.shards) > len(self._shards):
                return False  # a replica that knows all shards is about to lead the home
            for slot, to in list(routing.moving.items())[:_SLOTS_AT_ONCE_MAX]:
                routing = await self._advance(routing, slot, to)
            for slot in self._unopened(routing):
                await self._open(routing, slot)
            for index, slot, share in self._strays(routing):
                await self._slots.move_some(
                    index, routing.shard_of_slot[slot], share, _DOCUMENTS_AT_ONCE, self._clock.wall_ms()
                )
            self._reminders.over()
        except (StoreUnavailable, InvalidInput) as error:
            if self._reminders.is_due(str(error), self._clock.mono_ms()):
                log.warning("slots_delayed", error=str(error))
        return bool(known.moving)

    def _is_to_do(self, known: Routing) -> bool:
        return bool(known.moving) or any(self._unopened(known)) or any(self._strays(known))

    async def _advance(self, routing: Routing, slot: int, to: int) -> Routing:
        """The next step of that move, as far as it can be taken now; the routing after it."""
        source = routing.shard_of_slot[slot]
        there = self._shards[to]
        if not all(self._shards[index].view.ready for index in (source, to)):
            return routing
        living = {status.id for status in self._shards[0].live_replicas()}
        if not living <= {status.id for status in there.live_replicas()}:
            return routing  # some replica does not follow that shard yet
        closed = [
            await self._closed(routing, slot, index, lowered=index == source) for index in dict.fromkeys((source, to))
        ]
        share = closed[0]
        if share is None or share.is_awaited or None in closed:
            return routing
        for _ in range(_BATCHES_A_TURN):
            moved = await self._slots.move_some(source, to, share, _DOCUMENTS_AT_ONCE, self._clock.wall_ms())
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

    async def _closed(self, routing: Routing, slot: int, index: int, *, lowered: bool) -> Share | None:
        """The share that closes the slot there, once this replica's mirror shows it."""
        share = self._share(slot, index)
        if share is None or share.limit or (lowered and not share.lowered):
            await self._stores[index].put(Share(slot_key(slot), routing.epoch, 0, lowered))
            return None
        return share

    def _unopened(self, routing: Routing) -> Iterator[int]:
        """The slots that are closed where they are, and do not move."""
        for slot in self._known_slots():
            share = self._share(slot, routing.shard_of_slot[slot])
            if slot not in routing.moving and share is not None and not share.limit:
                yield slot

    async def _open(self, routing: Routing, slot: int) -> None:
        await self._stores[routing.shard_of_slot[slot]].put(Share(slot_key(slot), routing.epoch, 1))

    def _strays(self, routing: Routing) -> Iterator[tuple[int, int, Share]]:
        """The shards in which something is of a slot that is another shard's."""
        for slot in self._known_slots():
            for index, shard in enumerate(self._shards):
                share = self._share(slot, index)
                elsewhere = routing.shard_of_slot[slot] != index and slot not in routing.moving
                if elsewhere and share is not None and not share.limit and shard.kept_aside(slot):
                    yield index, slot, share

    def _known_slots(self) -> Sequence[int]:
        """Those that moved once."""
        found = {slot_of_key(key) for shard in self._shards for key in shard.nouns(Collection.SHARES)}
        return sorted(slot for slot in found if slot is not None)

    def _share(self, slot: int, index: int) -> Share | None:
        share: Share | None = self._shards[index].nouns(Collection.SHARES).get(slot_key(slot))
        return share
