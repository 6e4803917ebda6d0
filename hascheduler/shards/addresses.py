"""Which replicas host a shard, as that shard's own database says."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults

log = structlog.get_logger(__name__)

_KEPT_S = 1.0
_LIMIT_S = 2.0
_SILENT_AFTER = timedelta(seconds=5)
_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001  # as the driver reads dates: without a zone


class HostAddresses:
    """Owner of what was read last of the replicas that host one shard."""

    def __init__(self, database: Database, shard: str) -> None:
        self._leases = database[Collection.LEASES.value]
        self._replicas = database[Collection.REPLICAS.value]
        self._shard = shard
        self._known: Sequence[str] = ()
        self._good_until_s = 0.0
        self._reading = asyncio.Lock()

    async def read(self) -> Sequence[str]:
        """Return addresses as ``host:port``: replicas that still beat before silent ones, of these the leader first.
        They are at most a second old; older while the database does not answer."""
        loop = asyncio.get_running_loop()
        async with self._reading:
            if loop.time() >= self._good_until_s:
                try:
                    with faults("read which replicas host a shard", _LIMIT_S):
                        lease = await self._leases.find_one({"_id": self._shard}, {"holder": True})
                        fields = {"http_endpoint": True, "ready": True, "expire_at": True}
                        replicas = await self._replicas.find({}, fields).to_list(None)
                    self._known = _best_first(replicas, None if lease is None else lease.get("holder"))
                except StoreUnavailable as error:
                    log.warning("hosts_unread", shard=self._shard, error=str(error))
                self._good_until_s = loop.time() + _KEPT_S
            return self._known


def _best_first(replicas: Sequence[Mapping[str, Any]], leader: object) -> Sequence[str]:
    """Each beat puts off the end of its record by the server's clock: a replica whose end is long before the latest is
    silent."""
    found = []
    for each in replicas:
        address, end = each.get("http_endpoint"), each.get("expire_at")
        if address and isinstance(address, str):
            end = end if isinstance(end, datetime) and end.tzinfo is None else _LONG_AGO
            found.append((end, each["_id"] != leader, not each.get("ready"), address))
    latest = max((end for end, *_ in found), default=_LONG_AGO)
    found.sort(key=lambda each: (latest - each[0] > _SILENT_AFTER, *each[1:3]))
    return [address for *_, address in found]
