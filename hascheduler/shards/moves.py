"""Moves partitions of tenants from one shard to another while everything runs and this replica leads the home.

Neither of the two shards knows of the other: each has a *hold* on the partition, and documents come or go.

::

    layout            source     target     the mover                              if it is killed here, its successor
    moving            open       held       copies what differs, again and again   goes on copying
    moving            held       held       waits until the source has released    opens the source, begins again
    moving, frozen    released   held       waits for the gateways, copies again   opens the source, begins again
    leaving, frozen   released   held       takes what is live out of the source   goes on taking
    leaving           released   open       takes the rest, which has ended        goes on taking
    at rest           released   open

What must hold, and why it does:

* *One shard decides.* The target is held from before the first copy until the layout says that it has the partition;
  the source decides nothing after its release, which its journal has. Both holds arrive in the shards' own streams, so
  the leader there folds them before any copy.
* *Nothing is lost.* The layout changes after a pass that gave the target everything the source had, while the source
  was released and all gateways refused writes. A stalled request may still write into the source afterwards: its
  document is found by its version when it is taken out, and a newer version is copied first.
* *Nothing is doubled.* A live document leaves the source, by its version, before the target opens.
* *A mover that stalled does nothing.* It reads the holds before the layout, each batch is written in one transaction
  with the hold that it read, and both holds are put again before the deciding pass, after the layout has changed, and
  when the partition comes to rest. So no earlier batch and no earlier hold goes through afterwards.

While the layout says ``moving`` only the source counts: the target is made equal to it, and loses what the source no
longer has. An unmarked document in the target came late, by a request that took the target for the partition's shard:
it goes to the source first. From ``leaving`` on only the target counts, and nothing is removed there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import NamedTuple

import structlog

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.partition import Hold, partition_key, partition_of_key
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports import Clock
from hascheduler.ports.leadership import HoldStore
from hascheduler.ports.tenants import Key, Version
from hascheduler.shards.gateways import GatewayBoard
from hascheduler.shards.home import LayoutStore
from hascheduler.shards.layout import Layout
from hascheduler.shards.repeating import repeat
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

_CHECK_EVERY_S, _STEP_S = 0.5, 0.02
_CHECKS_A_SWEEP = 4
_AT_ONCE_MAX = 4
_BATCH = 500
_BATCHES_A_STEP = 20
_TAKEN_AT_ONCE = 2_500
"""Nothing of a partition starts while its live documents are taken, and each transaction waits for a majority."""
_NEARLY_EQUAL = 2_000
"""The source is held once at most this many documents differ: copying them takes about a quarter of a second."""
_EQUALIZE_EVERY_MS = 1_000
"""The interval while the source waits for its release, which takes as long as its jobs do."""
_ACKNOWLEDGED_S = 1.0
_LATE = ("jobs", "schedules")
"""The collections that a request may write late.

The leader writes verdicts, and has released them: one that the target lacks was withdrawn there.
"""


class _Overtaken(Exception):
    """Something has changed since it was read: the next step reads it again."""


class _FromTo(NamedTuple):
    """The way of one partition; ``began`` marks the copies, and is 0 once the target counts."""

    partition: int
    source: int
    target: int
    began: int


class _LastPass(NamedTuple):
    """The result of the last pass over a partition: the next one leaves out what ended long before."""

    live: Collection[Key]
    began_ms: int
    differing: int


class ShardDocuments(NamedTuple):
    """The stores of one shard that the mover writes."""

    tenants: MongoTenantStore
    holds: HoldStore


@dataclass
class PartitionMover:
    """Owner of the partitions that are being moved, and of what was seen of them.

    ``shards`` are in the layout's order. ``keeps_to_parts`` returns True if each shard runs at most its part of every
    cap. A document is stored at most ``late_ms`` after its instant of submission.
    """

    home: GatewayBoard
    layouts: LayoutStore
    shards: Sequence[ShardDocuments]
    _: KW_ONLY
    keeps_to_parts: Callable[[], Awaitable[bool]]
    clock: Clock
    late_ms: int

    def __post_init__(self) -> None:
        self._seen: dict[int, _LastPass] = {}
        self._carried: set[int] = set()
        self._handing_over = asyncio.Lock()
        """Hand over one partition at a time: another change of the layout would force a new pass."""
        self._checks = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            await repeat(partial(self._check, tasks), lambda: _CHECK_EVERY_S, "move_failed")

    async def _check(self, tasks: asyncio.TaskGroup) -> None:
        self._checks += 1
        layout = await self._known_layout() if self.home.leading else None
        if layout is None:
            return
        # Take all that have arrived, so that they open, and others while few are under way.
        leaving = [each for each in layout.leaving if each not in self._carried]
        room = max(_AT_ONCE_MAX - len(self._carried) - len(leaving), 0)
        for partition in [*leaving, *[each for each in layout.moving if each not in self._carried][:room]]:
            self._carried.add(partition)
            tasks.create_task(self._carry(partition), name=f"move-{partition:02x}")
        if self._checks % _CHECKS_A_SWEEP == 0:
            await self.sweep(layout, self._checks // _CHECKS_A_SWEEP % len(layout.shards))

    def is_moving(self) -> bool:
        """Return True if this replica is moving a partition."""
        return bool(self._carried)

    async def step(self, partition: int) -> bool:
        """Take the next step of that partition; return False if it is at rest."""
        layout = await self._known_layout()
        way = None if layout is None else _way(layout, partition)
        if way is None:
            return False
        try:
            here, there = await self._holds_on(way)
            layout = await self._known_layout()
            if layout is None or _way(layout, partition) != way:
                return True
            await (self._advance if way.began else self._leave)(layout, way, here, there)
        except _Overtaken:
            pass
        return True

    async def sweep(self, layout: Layout, index: int) -> None:
        """Take live documents of partitions that rest elsewhere out of that shard: they came late."""
        keys = [hold.key for hold in (await self.shards[index].holds.all()).values() if hold.is_held]
        held = {each for each in map(partition_of_key, keys) if each is not None and layout.shard_of[each] != index}
        for partition in await self.shards[index].tenants.live(held) if held else ():
            way = _FromTo(partition, index, layout.shard_of[partition], 0)
            here, there = await self._holds_on(way)
            now = await self._known_layout()
            is_stray = now is not None and now.is_at_rest(partition) and now.shard_of[partition] == way.target
            if is_stray and here is not None and here.is_held and there is not None:
                await self._take(way, here, there, live_only=True)

    async def _carry(self, partition: int) -> None:
        reminders = Reminders()
        try:
            while self.home.leading:
                try:
                    if not await self.step(partition):
                        return
                    reminders.over()
                    await asyncio.sleep(_STEP_S)
                except (StoreUnavailable, InvalidInput) as error:
                    if reminders.is_due(str(error), self.clock.mono_ms()):
                        log.warning("move_failed", error=str(error), partition=partition)
                    await asyncio.sleep(_CHECK_EVERY_S)
        finally:
            self._carried.discard(partition)
            self._seen.pop(partition, None)

    # While the source counts

    async def _advance(self, layout: Layout, way: _FromTo, here: Hold | None, there: Hold | None) -> None:
        seen = self._seen.get(way.partition)
        if there is None or not there.is_held or not there.is_silent:
            # A deployment that has just grown may still exceed caps: an empty shard must not start more.
            if await self.home.all_know(way.target) and (way.target in layout.shard_of or await self.keeps_to_parts()):
                await self._put(way.target, way, there, is_held=True, is_silent=True)
        elif here is None:
            await self._put(way.source, way, None, is_held=False)
        elif here.is_held and seen is None:
            # The earlier mover's pass is lost, and a full pass takes longer than a pause may.
            await self._replaced(layout, layout.thawed(way.partition))
            await self._put(way.source, way, here, is_held=False)
        elif here.is_released and there.is_released:
            await self._hand_over(layout, way, here, there)
        elif not here.is_held:
            differing, _ = await self._equalize(way, here, there)
            # Under full load they may stay many: another pass helps only if fewer differ than in the last.
            is_enough = differing <= _NEARLY_EQUAL or (seen is not None and differing >= seen.differing)
            if is_enough and there.is_released:
                await self._put(way.source, way, here, is_held=True)
        elif seen is not None and self.clock.wall_ms() - seen.began_ms >= _EQUALIZE_EVERY_MS:
            await self._equalize(way, here, there)

    async def _hand_over(self, layout: Layout, way: _FromTo, here: Hold, there: Hold) -> None:
        if self._handing_over.locked():
            return
        async with self._handing_over:
            if not layout.is_frozen(way.partition):
                layout = await self._replaced(layout, layout.freezing(way.partition))
            if not await self.home.all_have(layout.epoch, _ACKNOWLEDGED_S):
                return
            here = await self._put(way.source, way, here, is_held=True, is_released=True)
            there = await self._put(way.target, way, there, is_held=True, is_silent=True, is_released=True)
            if not (await self._equalize(way, here, there))[1]:
                return
            layout = await self._replaced(layout, layout.arrived(way.partition))
        log.info("partition_moved", partition=way.partition, shard=layout.shards[way.target], epoch=layout.epoch)
        await self._leave(layout, way, here, there)

    async def _equalize(self, way: _FromTo, here: Hold, there: Hold) -> tuple[int, bool]:
        """Make the target equal to the source; return how many documents differed, and True if none does now."""
        source, target = self.shards[way.source].tenants, self.shards[way.target].tenants
        before, began_ms = self._seen.get(way.partition), self.clock.wall_ms()
        tenants = await self._tenants(way)
        since = None if before is None else WallMs(before.began_ms - self.late_ms)
        known = () if before is None else before.live
        found, wanted = await asyncio.gather(*(each.versions(tenants, since, known) for each in (target, source)))
        wanted |= await source.versions_of(found.keys() - wanted.keys())
        found |= await target.versions_of(wanted.keys() - found.keys())
        if before is not None and (changed := _changed(wanted, found, before.began_ms - self.late_ms // 2)):
            wanted |= await source.verdicts(changed)
            found |= await target.verdicts(changed)
        late = [key for key, version in found.items() if _is_late(version, wanted.get(key))]
        await self._copied(target, source, here, late, mark=0)
        foreign = {key: each for key, each in found.items() if key not in wanted or each.mark != way.began}
        for batch in _batches([*foreign]):
            await target.take(there, {key: foreign[key] for key in batch})
        differing = [key for key, each in wanted.items() if key in foreign or not each.is_same(found.get(key))]
        differing.sort(key=lambda key: key not in found)  # a present job may free the key of an absent one
        now = differing[: _BATCH * _BATCHES_A_STEP]
        left_out = await self._copied(source, target, there, now, mark=way.began)
        if left_out:  # the pass missed that an earlier job lost its key: the next pass is full
            self._seen.pop(way.partition, None)
        elif len(now) == len(differing):
            self._seen[way.partition] = _LastPass(
                [key for key, each in wanted.items() if each.is_live], began_ms, len(differing)
            )
        return len(differing), not late and not left_out and len(now) == len(differing)

    # While the target counts

    async def _leave(self, layout: Layout, way: _FromTo, here: Hold | None, there: Hold | None) -> None:
        if here is None or there is None:
            raise StoreUnavailable(f"a hold on partition {way.partition:02x} was deleted")
        if there.is_held:
            if not here.is_silent:
                there = await self._put(way.target, way, there, is_held=True, is_silent=True, is_released=True)
                here = await self._put(way.source, way, here, is_held=True, is_silent=True, is_released=True)
            if not await self._take(way, here, there, live_only=True):
                return
            there = await self._put(way.target, way, there, is_held=False)
        if layout.is_frozen(way.partition):
            await self._replaced(layout, layout.thawed(way.partition))
        elif await self._take(way, here, there, live_only=False):
            await self._put(way.source, way, here, is_held=True, is_released=True)
            emptied = await self._replaced(layout, layout.emptied(way.partition))
            log.info("partition_emptied", partition=way.partition, epoch=emptied.epoch)

    async def _take(self, way: _FromTo, here: Hold, there: Hold, *, live_only: bool) -> bool:
        """Take documents out of a shard that the partition has left; return True if none remains there.

        A version that the target has not seen is copied there first.
        """
        source, target = self.shards[way.source].tenants, self.shards[way.target].tenants
        tenants = await self._tenants(way)
        known, found = await asyncio.gather(
            *(each.versions(tenants, None, (), live_only=live_only) for each in (target, source))
        )
        if live_only:  # a job that just ended in the source is still live in the target
            found |= await source.versions_of(known.keys() - found.keys())
        else:  # the schedules have left before their verdicts
            found |= await source.verdicts([key.id for key in known if key.collection == "schedules"])
        known |= await target.versions_of(found.keys() - known.keys())
        left = len(found)
        for batch in _batches([*found] if live_only else [*found][: _BATCH * _BATCHES_A_STEP], _TAKEN_AT_ONCE):
            late = [key for key in batch if key.collection in _LATE and found[key].is_after(known.get(key))]
            await self._copied(source, target, there, late, mark=0)
            left -= await source.take(here, {key: found[key] for key in batch})
        return not left

    # Shared by both

    async def _known_layout(self) -> Layout | None:
        layout = await self.layouts.get()
        if layout is not None and len(layout.shards) > len(self.shards):
            return None  # a replica that knows all shards of the layout is about to lead the home
        return layout

    async def _holds_on(self, way: _FromTo) -> tuple[Hold | None, Hold | None]:
        key = partition_key(way.partition)
        return await self.shards[way.source].holds.get(key), await self.shards[way.target].holds.get(key)

    async def _tenants(self, way: _FromTo) -> Sequence[str]:
        ends = self.shards[way.source].tenants, self.shards[way.target].tenants
        here, there = await asyncio.gather(*(each.tenants(way.partition) for each in ends))
        return sorted({*here, *there})

    async def _copied(
        self, source: MongoTenantStore, target: MongoTenantStore, hold: Hold, keys: Sequence[Key], *, mark: int
    ) -> bool:
        """Copy the documents; return True if jobs were left out because of their keys."""
        is_left_out = False
        for batch in _batches(keys):
            left = batch
            while left and (documents := await source.read(left)):
                is_left_out |= bool(await target.put(hold, documents, mark=mark))
                left = [key for key in left if key not in documents]
        return is_left_out

    async def _put(
        self, index: int, way: _FromTo, before: Hold | None, *, is_held: bool, is_silent: bool = False,
        is_released: bool = False,
    ) -> Hold:  # fmt: skip
        """Replace the hold ``before``; the new one is released only if that was and nothing was decided since."""
        rev = 1 if before is None else before.rev + 1
        hold = Hold(partition_key(way.partition), rev, is_held, is_silent, rev if is_released else 0)
        if not await self.shards[index].holds.put(hold):
            raise _Overtaken
        return hold

    async def _replaced(self, layout: Layout, changed: Layout) -> Layout:
        if not await self.layouts.replace(layout.epoch, changed):
            raise _Overtaken
        return changed


def _way(layout: Layout, partition: int) -> _FromTo | None:
    if partition in layout.moving:
        to, began = layout.moving[partition]
        return _FromTo(partition, layout.shard_of[partition], to, began)
    if partition in layout.leaving:
        return _FromTo(partition, layout.leaving[partition], layout.shard_of[partition], 0)
    return None


def _is_late(there: Version, here: Version | None) -> bool:
    """Return True if a request wrote that document into the target, and the source has not seen it."""
    return not there.mark if here is None else there.is_after(here)


def _changed(wanted: Mapping[Key, Version], found: Mapping[Key, Version], since_ms: int) -> Sequence[str]:
    """Return the schedules whose old verdicts may have changed.

    Those are schedules with another revision in the target, as an edit withdraws some, and those that have gone on from
    before that instant: a successor may have applied an old decision only now.
    """
    schedules = {key: each for key, each in wanted.items() if key.collection == "schedules"}
    return [
        key.id
        for key, each in schedules.items()
        if (there := found.get(key)) is None
        or each[:2] != there[:2]
        or (each.cursor_ms != there.cursor_ms and there.cursor_ms < since_ms)
    ]


def _batches(keys: Sequence[Key], size: int = _BATCH) -> Iterable[Sequence[Key]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
