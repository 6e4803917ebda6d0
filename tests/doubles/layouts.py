"""The layout of several shards, in memory."""

from hascheduler.model.collection import Collection
from hascheduler.shards.layout import LAYOUT_ID, Layout, decode_layout, encode_layout
from hascheduler.testing.memory.database import MemoryStore


class MemoryLayoutStore(MemoryStore):
    """A `hascheduler.shards.home.LayoutStore` in memory, with the methods that movers use."""

    async def get(self) -> Layout | None:
        async with self._connection.exchange("layout.get") as database:
            found = database.find(Collection.ROUTING, LAYOUT_ID)
            return None if found is None else decode_layout(found)

    async def replace(self, epoch: int, layout: Layout) -> bool:
        async with self._connection.exchange("layout.replace") as database:
            found = database.find(Collection.ROUTING, LAYOUT_ID)
            if found is None or found["epoch"] != epoch:
                return False
            database.replace(Collection.ROUTING, encode_layout(layout))
            return True
