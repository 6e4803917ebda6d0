"""Poll the lease once a retry period, if its store is not in the change stream.

This loop finds by polling what the stream shows of a lease that is a document of MongoDB: that it was renewed, given
up, taken, deleted. A follower measures its patience by it. A leader learns of its lease by renewing it, so this loop
does not poll while this replica leads. A handover need not wait for the next poll: the leader probe sees the leader's
process end.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import structlog

from hascheduler.daemon.leadership.leader import Leader
from hascheduler.errors import StoreUnavailable
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.leadership import LeaseRecord
from hascheduler.ports import LeaseStore

log = structlog.get_logger(__name__)


@dataclass
class LeasePoller:
    """A loop that calls ``seen`` with every version of the lease that it finds, once; None if there is no lease."""

    leases: LeaseStore
    leader: Leader
    _: KW_ONLY
    name: str
    retry_period_ms: int
    seen: Callable[[LeaseRecord | None], None]
    _passed_on: list[LeaseRecord | None] = field(default_factory=list, init=False)
    _reachable: bool = field(default=True, init=False)

    async def run(self) -> None:
        while True:
            if self.leader.in_term:
                self._passed_on.clear()
            else:
                await self.poll()
            leave_if_cancelled()
            await asyncio.sleep(self.retry_period_ms / 1_000)

    async def poll(self) -> None:
        known = self.leader.lease
        try:
            found = await self.leases.get(self.name)
        except StoreUnavailable as error:
            if self._reachable:
                log.warning("lease_poll_failed", error=str(error))
            self._reachable = False
            return
        if not self._reachable:
            log.info("lease_poll_recovered")
        self._reachable = True
        # If a write of our own ended meanwhile, it is newer than this answer, so drop the answer.
        if self.leader.lease is known and self._passed_on != [found]:
            self._passed_on = [found]
            self.seen(found)
