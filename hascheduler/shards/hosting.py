"""Which shards this process hosts: all of them, or the home and those that it is a candidate of.

With `HASCHEDULER_SHARD_CANDIDATES` each replica goes by the same rule and nearly the same list, and none tells another.
Twice a second it looks at the names of the replicas that live in the home's mirror, and at who is a candidate of which
shard (`hascheduler.election.preferences`)::

    a candidate for a while ──► begin: stream, mirror, core, election ──► mirror complete: it answers and may lead
          ▲                                                                        │
          │ a candidate again                                                      ▼ none for a while, and that shard's
          └──────────── end: hands the lease over as on SIGTERM,  ◄─────────── own mirror shows all candidates ready
                        and forgets the mirror

*Replicas that leave at once never leave a shard to nobody.* The candidates are the first of an order of all names that
is the same for everybody, so each of them comes before a replica that leaves to them. Whatever the replicas see of each
other, of those that host a shard the first in that order never leaves it.

A replica that comes and goes costs little. Who took over for it goes on for ``after_ms`` once it is back, a candidate
begins beside others only after `BEGIN_AFTER_MAX_MS`, and at most `READING_MAX` snapshots are read here at once. If a
replica sees less (its home stream is silent), it leaves things as they are. None of this is safety: any replica that
hosts a shard may lead it, by its lease and its journal. If for a moment none does, nothing is decided there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakMethod

import structlog

from hascheduler.api.services import ApiServices
from hascheduler.daemon.leadership.liveness import Silencing
from hascheduler.election.preferences import candidates_of
from hascheduler.errors import WorldError
from hascheduler.model.collection import Collection as Stored
from hascheduler.ports import Clock
from hascheduler.shards.placement import PlacedReplica
from hascheduler.telemetry.health import ABOUT_TO_END, NOT_LEADING, NOT_TURNING

log = structlog.get_logger(__name__)

READING_MAX = 8
ALONE_AFTER_MS, BEGIN_AFTER_MAX_MS = 1_000, 5_000
"""For so long it has been a candidate before it begins with a shard that no ready replica hosts, and with any other."""
LEAVE_AFTER_MS = 30_000
_TURN_S = 0.5
_READ_LIMIT_S = 1.0


class HostedReplica(PlacedReplica, Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    http_endpoint: str

    async def run(self) -> None: ...

    def nouns(self, collection: Stored) -> Mapping[str, Any]: ...

    def short_of(self) -> Collection[str]: ...

    def stop(self) -> None: ...

    def forget(self) -> None: ...

    def is_out_of_touch(self) -> bool: ...


Make = Callable[[Silencing], tuple[HostedReplica, ApiServices]]
"""Makes the replica of a shard, which has not begun, and the services on it."""
Run = Callable[[HostedReplica], Coroutine[Any, Any, None]]
"""Runs a replica to its end."""
HostsOf = Callable[[int], Awaitable[Collection[str]]]
"""Reads the ids of the ready replicas of the shard of that index; `WorldError` if its database does not answer."""


class HostedShard:
    """One shard as this process has it. Owner of its replica and its services, while the process hosts it."""

    def __init__(self, index: int, name: str, make: Make, liveness: Silencing) -> None:
        self.index = index
        self.name = name
        self.replica: HostedReplica | None = None
        self._services: ApiServices | None = None
        self._make = make
        self._silencing = _SilencedByNewest(liveness)
        self.is_fixed = False
        """Whether it is hosted from the start to the end of the process."""
        self._is_ready = self._is_ending = False

    @property
    def services(self) -> ApiServices | None:
        """What answers here; None if another replica has to: the mirror is not complete yet, or the shard is left.
        One that is hosted from the start answers from the start."""
        return self._services if self.is_fixed or self.is_ready else None

    @property
    def is_ready(self) -> bool:
        """Whether its mirror has been complete since it began here."""
        if self.replica is None or self._is_ending:
            return False
        self._is_ready = self._is_ready or self.replica.view.ready
        return self._is_ready

    def begin(self, http_endpoint: str = "") -> HostedReplica:
        """Return the replica that hosts it from now on, which the caller runs."""
        assert self.replica is None
        self.replica, self._services = self._make(self._silencing)
        self.replica.http_endpoint = http_endpoint
        return self.replica

    def leave(self) -> None:
        """Let others answer from now on, and stop the replica; `gone` when it has ended."""
        self._is_ending = True
        if self.replica is not None:
            self.replica.stop()

    def gone(self) -> None:
        """Keep nothing of the replica that has ended: its mirror is what takes memory."""
        if self.replica is not None:
            self.replica.forget()
        self.replica = self._services = None
        self._is_ready = self._is_ending = False


class Hosting:
    """Owner of since when this process should host a shard that it does not, and the other way round.

    ``shards`` are all, the home first, which is hosted from the start to the end. ``name`` is this replica's, ``most``
    how many candidates each other shard has; 0: all are hosted from the start to the end. It leaves a shard after
    ``after_ms``. It is `telemetry.health.Health` of the whole process.
    """

    def __init__(
        self, shards: Sequence[HostedShard], hosts_of: HostsOf, *, name: str, most: int, clock: Clock, after_ms: int
    ) -> None:
        self.shards = shards
        self.http_endpoint = ""
        """Where the API answers, for the heartbeats; set before `run`."""
        self._hosts_of = hosts_of
        self._name = name
        self._most = most
        self._clock = clock
        self._leave_after_ms = after_ms or LEAVE_AFTER_MS
        self._begin_after_ms = min(self._leave_after_ms, BEGIN_AFTER_MAX_MS)
        self._wanted_since: dict[str, int] = {}
        self._unwanted_since: dict[str, int] = {}
        self._wanted: Sequence[HostedShard] | None = None if most else shards
        self._is_settled = False
        self._stopping = asyncio.Event()
        self._others = shards[1:] if most else ()
        for shard in shards[:1] if most else shards:
            shard.is_fixed = True
            shard.begin()

    @property
    def home(self) -> HostedReplica:
        assert self.shards[0].replica is not None
        return self.shards[0].replica

    @property
    def replicas(self) -> Sequence[HostedReplica]:
        """The replicas of the shards that are hosted now, that of the home first."""
        return [shard.replica for shard in self.shards if shard.replica is not None]

    async def run(self, run: Run) -> None:
        """Host until `stop`, and until what is hosted then has ended in good order."""
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            for replica in self.replicas:
                replica.http_endpoint = self.http_endpoint
                tasks.create_task(run(replica), name=replica.scheduler)
            while not self._stopping.is_set():
                for shard in await self.turn():
                    running[shard.name] = tasks.create_task(run(shard.begin(self.http_endpoint)), name=shard.name)
                    log.info("shard_hosted", shard=shard.name)
                self._clear(running)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TURN_S if self._others else None):
                        await self._stopping.wait()
            for replica in self.replicas:
                replica.stop()

    def stop(self) -> None:
        """Begin to end in good order: hand the leases over first."""
        self._stopping.set()

    async def turn(self) -> Sequence[HostedShard]:
        """Look once: leave what is to be left, and return the shards to begin with now."""
        if not self._others or not self.home.view.ready:
            return ()
        now, live = self._clock.mono_ms(), self.home.live_replicas()
        names = [shard.name for shard in self.shards]
        candidates = candidates_of(names, {*(status.name for status in live), self._name}, self._most)
        self._wanted = [shard for shard in self._others if self._name in candidates[shard.name]]
        for shard in self._others:
            if shard in self._wanted:
                self._unwanted_since.pop(shard.name, None)
            else:
                self._wanted_since.pop(shard.name, None)
                self._consider_leaving(shard, candidates[shard.name], now)
        waiting = [shard for shard in self._wanted if shard.replica is None]
        living = {status.id for status in live}
        due = await asyncio.gather(*(self._may_begin(shard, living, now) for shard in waiting))
        reading = sum(shard.replica is not None and not shard.is_ready for shard in self._others)
        return [shard for shard, is_due in zip(waiting, due, strict=True) if is_due][: max(READING_MAX - reading, 0)]

    async def _may_begin(self, shard: HostedShard, living: Set[str], now: int) -> bool:
        lasted_ms = now - self._wanted_since.setdefault(shard.name, now)
        if lasted_ms >= self._begin_after_ms:
            return True
        return lasted_ms >= ALONE_AFTER_MS and not await self._is_hosted(shard, living)

    async def _is_hosted(self, shard: HostedShard, living: Set[str]) -> bool:
        """Return whether a ready replica hosts it, and True if that can't be read. The record of one that was killed
        stays for a minute, so it counts only while it lives in the home, which all host."""
        try:
            async with asyncio.timeout(_READ_LIMIT_S):
                hosts = await self._hosts_of(shard.index)
        except (WorldError, TimeoutError) as error:
            log.debug("hosts_unread", shard=shard.name, error=str(error))
            return True
        return not living.isdisjoint(hosts)

    def _consider_leaving(self, shard: HostedShard, candidates: Collection[str], now: int) -> None:
        if shard.replica is None:
            self._unwanted_since.pop(shard.name, None)
            return
        lasted_ms = now - self._unwanted_since.setdefault(shard.name, now)
        ready = {status.name for status in shard.replica.live_replicas() if status.ready}
        if lasted_ms >= self._leave_after_ms and shard.replica.view.ready and ready.issuperset(candidates):
            shard.leave()

    def _clear(self, running: dict[str, asyncio.Task[None]]) -> None:
        for shard in self._others:
            if shard.name in running and running[shard.name].done():
                del running[shard.name]
                shard.gone()
                log.info("shard_left", shard=shard.name)

    # Health of the process

    def not_alive(self) -> str:
        return "" if all(replica.view.alive for replica in self.replicas) else NOT_TURNING

    def not_ready(self) -> str:
        """Why the process should not be asked now: the home is not ready, or a shard that it should host has not been
        yet. Once all were, one that falls behind answers for itself."""
        if self.home.view.stopping or self._stopping.is_set():
            return ABOUT_TO_END
        if self.home.view.unready_reason or self._is_settled:
            return self.home.view.unready_reason
        if self._wanted is None:
            return "it does not know yet which shards it should host"
        unready = next((shard.name for shard in self._wanted if not shard.is_ready), "")
        self._is_settled = not unready
        return f"shard {unready}: it is not ready here yet" if unready else ""

    def not_leading(self) -> str:
        return "" if any(replica.view.leading for replica in self.replicas) else NOT_LEADING


class _SilencedByNewest:
    """`Silencing` for one shard: the newest replica that hosts it has a say, and none that has ended is kept."""

    def __init__(self, liveness: Silencing) -> None:
        self._newest: WeakMethod[Callable[[], bool]] | None = None
        liveness.silence_while(self._is_silenced)

    def silence_while(self, silenced: Callable[[], bool]) -> None:
        self._newest = WeakMethod(silenced)

    def _is_silenced(self) -> bool:
        silenced = None if self._newest is None else self._newest()
        return silenced is not None and silenced()
