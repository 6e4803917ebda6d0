"""Which layout a process goes by: that of the home, which the first replica of several shards makes, and which every
process (replica, processor, `migrate`, `check`) compares with its settings at its start.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from pymongo.errors import DuplicateKeyError

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.definition import ConflictScope, Definition
from hascheduler.model.documents.definition import decode_definition
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.shards.layout import LAYOUT_ID, Layout, decode_layout, encode_layout
from hascheduler.shards.names import Names, slices
from hascheduler.shards.repeating import repeat

_SETTING = ("HASCHEDULER_SHARDS",)
_LOOK_S, _BUSY_LOOK_S = 0.5, 0.05


class LayoutStore:
    """The layout in the home. Every write is one compare-and-set on the epoch, acknowledged by a majority."""

    def __init__(self, home: Database) -> None:
        self.database = home.name
        self._layouts = home[Collection.ROUTING.value].with_options(write_concern=MAJORITY)

    async def get(self) -> Layout | None:
        """Return the newest majority-committed layout; `InvalidInput` if it can't be read."""
        with faults("read the layout"):
            found = await self._layouts.find_one({"_id": LAYOUT_ID})
        try:
            return None if found is None else decode_layout(found)
        except InvalidInput as error:
            where = f"{error.problem}, in the layout that the database {quoted(self.database)} has"
            raise InvalidInput(("layout", *error.path), where, error.expected) from None

    async def create(self, layout: Layout) -> bool:
        """Insert the first layout; False if there is one."""
        with faults("create the layout"), suppress(DuplicateKeyError):
            await self._layouts.insert_one(encode_layout(layout))
            return True
        return False

    async def replace(self, epoch: int, layout: Layout) -> bool:
        """Replace the layout of that epoch by a later one; False if it is no longer that."""
        with faults("change the layout"):
            done = await self._layouts.replace_one({"_id": LAYOUT_ID, "epoch": epoch}, encode_layout(layout))
        return done.matched_count == 1


class LayoutWatch:
    """Owner of the newest layout that this process has read. During an outage it keeps the last one."""

    def __init__(self, store: LayoutStore, first: Layout) -> None:
        self._store = store
        self._now = first

    @property
    def now(self) -> Layout:
        return self._now

    @property
    def is_busy(self) -> bool:
        """Whether something moves."""
        return bool(self._now.moving or self._now.leaving)

    async def read_again(self) -> Layout:
        """Return the newest layout of the home. An older one than this process knows comes from a server that lags."""
        read = await self._store.get()
        if read is not None and read.epoch > self._now.epoch:
            self._now = read
        return self._now

    async def run(self) -> None:
        await repeat(self.read_again, lambda: _BUSY_LOOK_S if self.is_busy else _LOOK_S, "layout_unread")


async def agreed_layout(home: Database, shards: Sequence[str], now: Callable[[], WallMs]) -> Layout | None:
    """Return the layout of these shards, the home's name first; None for a deployment of one shard, which has none.

    Of several replicas that start at once, one makes the layout and the others find it. If the home was used as the
    only shard, it has all partitions, and shards that are added have none: `hascheduler shards apply` moves some there.
    `InvalidInput` if the home has more shards than these, or others, a layout that can't be read, or a definition that
    several shards can't keep.
    """
    store = LayoutStore(home)
    stored = await store.get()
    if stored is None and len(shards) > 1:
        await require_keepable(home, len(shards))
        is_unused = await _is_unused(home)
        if not is_unused:
            await Names(home, now).reserve_all(home)
        await store.create(Layout.even(shards) if is_unused else Layout.all_at_home(shards))
        stored = await store.get()
    elif stored is not None and _is_extension(shards, stored):
        await require_keepable(home, len(shards))
        await store.replace(stored.epoch, stored.extended(shards))
        stored = await store.get()
    _require_same_shards(stored, shards, home.name)
    return stored


async def stored_layout(store: LayoutStore, shards: int) -> Layout | None:
    """Return the layout of a deployment of so many shards; None for a deployment of one shard, which has none.

    `StoreUnavailable` while a deployment of several shards has none yet: a replica is about to make it. `InvalidInput`
    if the home has another number of shards, or a layout that can't be read.
    """
    layout = await store.get()
    if layout is None and shards > 1:
        raise StoreUnavailable(f"the database {quoted(store.database)} has no layout yet; a replica makes it")
    there = 1 if layout is None else len(layout.shards)
    if there != shards:
        raise _other_number(shards, there, store.database)
    return layout


def _is_extension(shards: Sequence[str], stored: Layout) -> bool:
    return len(shards) > len(stored.shards) and tuple(shards[: len(stored.shards)]) == stored.shards


def _require_same_shards(stored: Layout | None, shards: Sequence[str], database: str) -> None:
    if (stored is None and len(shards) == 1) or (stored is not None and stored.shards == tuple(shards)):
        return
    there = 1 if stored is None else len(stored.shards)
    if stored is None or there != len(shards):
        raise _other_number(len(shards), there, database)
    raise InvalidInput(
        ("HASCHEDULER_SHARD",),
        f"{quoted(shards[0])}, and the deployment in the database {quoted(database)} calls its first shard"
        f" {quoted(stored.shards[0])}",
        stored.shards[0],
    )


def _other_number(shards: int, there: int, database: str) -> InvalidInput:
    has = f"{there} shard{'s' if there > 1 else ''}"
    problem = f"{shards}, and the deployment in the database {quoted(database)} has {has}"
    return InvalidInput(_SETTING, problem, f"{there}")


async def _is_unused(home: Database) -> bool:
    with faults("look for jobs and schedules"):
        found = [await home[each.value].find_one({}, ["_id"]) for each in (Collection.JOBS, Collection.SCHEDULES)]
    return found == [None, None]


# What several shards can't promise


async def require_keepable(home: Database, shards: int) -> None:
    """Raise `InvalidInput`, with its name, for a stored definition that so many shards can't keep."""
    found = home[Collection.DEFINITIONS.value].find({})
    async for batch in slices(found, "read the definitions"):
        for stored in batch:
            try:
                broken = why_not_keepable(decode_definition(stored["_id"], stored), shards)
            except InvalidInput:
                continue  # one that can't be read limits nothing, in one shard or several
            if broken is not None:
                problem = f"{shards}, and the definition {quoted(stored['_id'])} has a {broken.path[0]} that several"
                raise InvalidInput(_SETTING, f"{problem} shards can't keep: {broken.problem}", broken.expected)


def why_not_keepable(definition: Definition, shards: int) -> InvalidInput | None:
    """Return what is wrong with the limits of a definition for so many shards; None if they can keep them.

    Each shard keeps at least one of a rate's count: else its jobs would wait for ever. To exclude jobs of different
    tenants, which may be in different shards, would need one order of all that runs.
    """
    rate = definition.rate_limit
    if rate is not None and rate.count < shards:
        problem = f"{rate.count} can't be divided between {shards} shards"
        return InvalidInput(("rate_limit", "count"), problem, f"{shards} or more: each keeps one at least")
    if definition.conflict_group is not None and definition.conflict_scope is ConflictScope.SHARED:
        problem = f"jobs of different tenants may be in different ones of {shards} shards, which do not exclude each"
        return InvalidInput(("conflict_scope",), f"{problem} other", "tenant")
    return None
