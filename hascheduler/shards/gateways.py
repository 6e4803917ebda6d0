"""The layout that each replica knows: a mover waits for all live replicas, by the clock of the home's server alone.

Each writes one document to the home: how many shards it knows, and the newest epoch without a write under way there in
a partition that it freezes. The same collection holds the key by which replicas know each other
(`hascheduler.api.http.server`): processors have no right to read it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta

import structlog
from pymongo import ReturnDocument

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.shards.home import LayoutWatch
from hascheduler.shards.repeating import repeat

log = structlog.get_logger(__name__)

_BEAT_S = 1.0
_CHECK_EVERY_S, _BUSY_CHECK_EVERY_S = 0.5, 0.02
"""How often it checks for a newer epoch to publish."""
_LIVES_FOR = timedelta(seconds=5)
_KEPT_FOR = timedelta(minutes=2)
"""Longer than the heartbeat of a dead replica is kept."""
_KNOWN_FOR_S = 1.0
_KEY = "*peers"
_AFTER = ReturnDocument.AFTER


async def peer_key(home: Database, new_key: str) -> bytes:
    """Return the key by which the replicas of a deployment know each other; the first to ask makes it ``new_key``."""
    gateways, made = home["gateways"].with_options(write_concern=MAJORITY), {"$setOnInsert": {"key": new_key}}
    with faults("read the key of the replicas"):
        found = await gateways.find_one_and_update({"_id": _KEY}, made, upsert=True, return_document=_AFTER)
    assert found is not None, "an upsert returned no document"
    return str(found["key"]).encode()


@dataclass
class GatewayBoard:
    """The document of this replica, and those of the others; `hascheduler.shards.moves.HomeState`.

    ``shards`` is how many this process knows, ``acknowledged`` returns its epoch, ``is_leading`` is True if it leads
    the home.
    """

    home: Database
    replica_id: str
    watch: LayoutWatch
    _: KW_ONLY
    shards: int
    acknowledged: Callable[[], int]
    is_leading: Callable[[], bool]

    def __post_init__(self) -> None:
        self._gateways = self.home["gateways"].with_options(write_concern=MAJORITY)
        self._replicas = self.home[Collection.REPLICAS.value]
        self._published = 0
        self._beat: tuple[datetime, float] | None = None
        """When the last heartbeat was written, by the server's clock and by this process's."""
        self._known_at: dict[int, float] = {}
        self._asked = 0, 0.0

    @property
    def leading(self) -> bool:
        return self.is_leading()

    async def run(self) -> None:
        """Send a heartbeat once a second, and at once if there is a newer epoch to publish."""

        async def publish() -> None:
            if self._beat is None or self._published != self.acknowledged() or _now_s() - self._beat[1] >= _BEAT_S:
                await self.beat()

        def every_s() -> float:
            return _BUSY_CHECK_EVERY_S if self.watch.is_busy else _CHECK_EVERY_S

        await repeat(publish, every_s, "gateway_report_failed")

    async def beat(self) -> datetime:
        """Publish what this replica knows; return when, by the server's clock."""
        epoch, began_s = self.acknowledged(), _now_s()
        known = {"$set": {"shards": self.shards, "epoch": epoch}, "$currentDate": {"at": True}}
        with faults("publish the epoch of this gateway"):
            written = await self._gateways.find_one_and_update(
                {"_id": self.replica_id}, known, ["at"], upsert=True, return_document=_AFTER
            )
        assert written is not None, "an upsert returned no document"
        at: datetime = written["at"]
        self._published, self._beat = epoch, (at, began_s)
        return at

    async def leave(self) -> None:
        """Delete the document of this replica, which answers no more requests: no mover waits for it."""
        with faults("delete the document of this gateway"):
            await self._gateways.delete_one({"_id": self.replica_id})

    async def all_know(self, index: int) -> bool:
        """Return True if all replicas know the shard of that index; cached for a second.

        A replica of an earlier release, or of a single shard, publishes nothing here: while its heartbeat is kept, it
        does not know.
        """
        if _now_s() - self._known_at.get(index, -_KNOWN_FOR_S) < _KNOWN_FOR_S:
            return True
        now = await self._server_now()
        with faults("read the shards that gateways know"):
            await self._gateways.delete_many({"at": {"$lt": now - _KEPT_FOR}})
            know, living = [
                {each["_id"] for each in await self._gateways.find(which, ["_id"]).to_list(None)}
                for which in ({"shards": {"$gt": index}}, {"at": {"$gte": now - _LIVES_FOR}})
            ]
            found = await self._replicas.find({"expire_at": {"$gt": now}}, ["_id"]).to_list(None)
        if not (living | {each["_id"] for each in found}) <= know:
            return False
        self._known_at[index] = _now_s()
        return True

    async def all_have(self, epoch: int, patience_s: float) -> bool:
        """Return True if all live gateways acknowledge that epoch, or have had ``patience_s`` to do so.

        The time counts from when this replica first asked for it; a gateway that is behind then writes late.
        """
        if self._asked[0] != epoch:
            self._asked = epoch, _now_s()
        since = await self._server_now() - _LIVES_FOR
        with faults("read the epochs of gateways"):
            behind = await self._gateways.find_one({"at": {"$gte": since}, "epoch": {"$lt": epoch}}, ["_id"])
        if behind is None:
            return True
        if _now_s() - self._asked[1] < patience_s:
            return False
        log.warning("gateway_behind", replica=behind["_id"], epoch=epoch)
        return True

    async def _server_now(self) -> datetime:
        if self._beat is None:
            return await self.beat()
        at, began_s = self._beat
        return at + timedelta(seconds=_now_s() - began_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
