"""The layout in the home.

The first replica of several shards makes it; every process (replica, processor, `migrate`, `check`) compares it with
its settings at its start.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from pymongo.errors import DuplicateKeyError

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.schema.definition import ConflictScope, Definition
from hascheduler.schema.noun import read_document
from hascheduler.shards.layout import LAYOUT_ID, Layout, decode_layout, encode_layout
from hascheduler.shards.names import Names, slices
from hascheduler.shards.repeating import repeat

_SETTING = ("HASCHEDULER_SHARDS",)
_READ_EVERY_S, _BUSY_READ_EVERY_S = 0.5, 0.05


class LayoutStore:
    """The layout in the home. Every write is one compare-and-set on the epoch, acknowledged by a majority."""

    def __init__(self, home: Database) -> None:
        self.database = home.name
        self._layouts = home[Collection.ROUTING.value].with_options(write_concern=MAJORITY)

    async def get(self) -> Layout | None:
        """Return the newest majority-committed layout; raise `InvalidInput` if it can't be read."""
        with faults("read the layout"):
            found = await self._layouts.find_one({"_id": LAYOUT_ID})
        try:
            return None if found is None else decode_layout(found)
        except InvalidInput as error:
            where = f"{error.problem}, in the layout of the database {quoted(self.database)}"
            raise InvalidInput(("layout", *error.path), where, error.expected) from None

    async def create(self, layout: Layout) -> bool:
        """Insert the first layout; return False if there is one."""
        with faults("create the layout"), suppress(DuplicateKeyError):
            await self._layouts.insert_one(encode_layout(layout))
            return True
        return False

    async def replace(self, epoch: int, layout: Layout) -> bool:
        """Replace the layout of that epoch by a later one; return False if the epoch has changed."""
        with faults("change the layout"):
            done = await self._layouts.replace_one({"_id": LAYOUT_ID, "epoch": epoch}, encode_layout(layout))
        return done.matched_count == 1


class LayoutWatch:
    """Owner of the newest layout that this process has read. During an outage it keeps the last one."""

    def __init__(self, store: LayoutStore, now: Layout) -> None:
        self._store = store
        self.now = now

    @property
    def is_busy(self) -> bool:
        """Return True if something moves."""
        return bool(self.now.moving or self.now.leaving)

    async def read_again(self) -> Layout:
        """Return the newest layout of the home; ignore one older than the known layout, from a server that lags."""
        read = await self._store.get()
        if read is not None and read.epoch > self.now.epoch:
            self.now = read
        return self.now

    async def run(self) -> None:
        await repeat(self.read_again, lambda: _BUSY_READ_EVERY_S if self.is_busy else _READ_EVERY_S, "layout_unread")


async def agreed_layout(home: Database, shards: Sequence[str], now: Callable[[], WallMs]) -> Layout | None:
    """Return the layout of these shards, the home's name first; None for one shard, which has none.

    Of several replicas that start at once, one makes the layout and the others find it. If the home was used as the
    only shard, it has all partitions, and added shards have none: `hascheduler shards apply` moves some there. Raise
    `InvalidInput` if the home has more shards than these, or others, an unreadable layout, or a definition that several
    shards can't keep.
    """
    store = LayoutStore(home)
    stored = await store.get()
    known = tuple(shards[:1]) if stored is None else stored.shards
    if len(shards) > len(known) and tuple(shards[: len(known)]) == known:
        await require_keepable(home, len(shards))
        if stored is not None:
            await store.replace(stored.epoch, stored.extended(shards))
        elif await _is_unused(home):
            await store.create(Layout.even(shards))
        else:
            await Names(home, now).reserve_all(home)
            await store.create(Layout.all_at_home(shards))
        stored = await store.get()
    _require_as_many(stored, len(shards), home.name)
    if stored is not None and stored.shards != tuple(shards):
        first = stored.shards[0]
        problem = f"{quoted(shards[0])}, but the deployment in the database {quoted(home.name)} calls its first shard"
        raise InvalidInput(("HASCHEDULER_SHARD",), f"{problem} {quoted(first)}", first)
    return stored


async def stored_layout(store: LayoutStore, shards: int) -> Layout | None:
    """Return the layout of a deployment of that many shards; None for one shard, which has none.

    Raise `StoreUnavailable` while a deployment of several shards has none yet: a replica is about to make it. Raise
    `InvalidInput` if the home has another number of shards, or an unreadable layout.
    """
    layout = await store.get()
    if layout is None and shards > 1:
        raise StoreUnavailable(f"the database {quoted(store.database)} has no layout yet; a replica creates it")
    _require_as_many(layout, shards, store.database)
    return layout


def _require_as_many(layout: Layout | None, shards: int, database: str) -> None:
    there = 1 if layout is None else len(layout.shards)
    if there != shards:
        has = f"{there} shard{'s' if there > 1 else ''}"
        problem = f"{shards}, but the deployment in the database {quoted(database)} has {has}"
        raise InvalidInput(_SETTING, problem, f"{there}")


async def _is_unused(home: Database) -> bool:
    with faults("find jobs and schedules"):
        found = [await home[each.value].find_one({}, ["_id"]) for each in (Collection.JOBS, Collection.SCHEDULES)]
    return found == [None, None]


# What several shards can't promise


async def require_keepable(home: Database, shards: int) -> None:
    """Raise `InvalidInput`, with its name, for a stored definition that this many shards can't keep."""
    found = home[Collection.DEFINITIONS.value].find({})
    async for batch in slices(found, "read the definitions"):
        for stored in batch:
            try:
                broken = why_not_keepable(read_document(Definition, stored["_id"], stored), shards)
            except InvalidInput:
                continue  # an unreadable one limits nothing, in one shard or several
            if broken is not None:
                problem = f"{shards}, but the definition {quoted(stored['_id'])} has a {broken.path[0]} that several"
                raise InvalidInput(_SETTING, f"{problem} shards can't enforce: {broken.problem}", broken.expected)


def why_not_keepable(definition: Definition, shards: int) -> InvalidInput | None:
    """Return what is wrong with the limits of a definition for this many shards; None if they can keep them.

    A shard with no part of a rate's count would let its jobs wait forever. Jobs of different tenants, which may be in
    different shards, could exclude each other only in one order of all that runs.
    """
    rate = definition.rate_limit
    if rate is not None and rate.count < shards:
        problem = f"{rate.count} can't be divided between {shards} shards"
        return InvalidInput(("rate_limit", "count"), problem, f"{shards} or more, at least one for each shard")
    if definition.conflict_group is not None and definition.conflict_scope is ConflictScope.SHARED:
        problem = f"jobs of different tenants may be in different ones of {shards} shards, and can't exclude each"
        return InvalidInput(("conflict_scope",), f"{problem} other", "tenant")
    return None
