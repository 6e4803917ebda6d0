"""A standby's watch over the leader's process, for proof of death.

The standby keeps a connection to the endpoint in the lease. Proof is only this: the process had greeted as the holder,
the line closed, and the same endpoint now *refuses* a connection or answers as somebody else. A time-out, an
unreachable host or a line that just stays silent proves nothing, and the standby waits for the lease. Without a
greeting before, a refusal proves nothing either: the endpoint may be one that only the leader's own host can reach.

An early challenge is safe in any case, because the journal fences the old leader; proof only makes it quick.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hascheduler.daemon.liveness import GREETING
from hascheduler.model.lease import LeaseRecord

log = structlog.get_logger(__name__)

_CONNECT_TIMEOUT_S = 1.0
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.01, 0.5
"""A process that dies may take a connection for the last time after it has closed its lines: short at first."""

Outlive = Callable[[str, str], Awaitable[None]]
"""Returns when there is proof that the process of that holder, at that endpoint, is dead."""


class Vigil:
    """Owner of the one watch. ``died`` is called with the holder's id, at most once per holder."""

    def __init__(self, candidate_id: str, died: Callable[[str], None], outlive: Outlive | None = None) -> None:
        self._candidate_id = candidate_id
        self._died = died
        self._outlive = outlive or outlive_by_connection
        self._lease: LeaseRecord | None = None
        self._changed = asyncio.Event()

    def watch(self, lease: LeaseRecord | None) -> None:
        """Watch that lease's holder from now on."""
        known, self._lease = self._lease, lease
        if (known.holder if known else "") != (lease.holder if lease else ""):
            self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            lease = self._lease
            if lease is None or lease.holder in ("", self._candidate_id) or not lease.endpoint:
                await self._changed.wait()
                continue
            # Whichever ends first: the watch with its finding, or the reason for it.
            watch = asyncio.ensure_future(self._outlive(lease.holder, lease.endpoint))
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({watch, changed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                watch.cancel()
                await asyncio.gather(changed, watch, return_exceptions=True)
            if not watch.cancelled() and watch.exception() is None:
                log.info("leader_process_died", holder=lease.holder, endpoint=lease.endpoint)
                self._died(lease.holder)
                await self._changed.wait()


async def outlive_by_connection(holder: str, endpoint: str) -> None:
    """`Outlive`, by a connection that is kept."""
    host, _, port = endpoint.rpartition(":")
    expected = GREETING.format(id=holder).encode()
    greeted = False
    pause_s = _PAUSE_MIN_S
    while True:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(host, int(port), limit=1_024)
        except ConnectionRefusedError:
            if greeted:
                return
        except (OSError, TimeoutError, ValueError, OverflowError):
            pass  # the last two: an endpoint that is none
        else:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    greeting = await reader.readline()
                if greeting == expected:
                    greeted, pause_s = True, _PAUSE_MIN_S
                    while await reader.read(256):
                        pass
                    # The line closed: look again at once.
                    continue
                if greeted and greeting.endswith(b"\n"):  # the holder's own, cut short, would prove nothing
                    return
            except (OSError, TimeoutError, ValueError):
                if greeted:
                    continue
            finally:
                writer.close()
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
