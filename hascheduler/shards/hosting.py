"""The shards of this process: all, or with `HASCHEDULER_SHARD_CANDIDATES` the home and those it is a candidate of.

Twice a second each replica works out who is a candidate of which shard (`hascheduler.election.preferences`) from the
names of the live replicas in the home's mirror, and asks no other::

    a candidate for a while ──► begin: stream, mirror, core, election ──► mirror complete: it answers and may lead
          ▲                                                                        │
          │ a candidate again                                                      ▼ none for a while, and that shard's
          └──────────── end: hands the lease over as on SIGTERM,  ◄─────────── own mirror shows all candidates ready
                        and forgets the mirror

*Replicas that leave at once never leave a shard without a host.* The candidates are the first in an order of all names
that is the same for everybody, so each of them precedes a replica that leaves to them. Whatever the replicas see of
each other, the first in that order of those that host a shard never leaves it.

A replica that flaps costs little: its successor goes on for ``after_ms`` once it is back, a candidate joins other
hosts only after `BEGIN_AFTER_MAX_MS`, and at most `READING_MAX` snapshots are read here at once. Safety depends on
none of this: any replica that hosts a shard may lead it, by its lease and its journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence, Set
from dataclasses import KW_ONLY, dataclass

import structlog
from structlog.contextvars import bind_contextvars

from hascheduler.api.services import ApiServices
from hascheduler.daemon.leadership.liveness import Silencing
from hascheduler.daemon.replica import Replica
from hascheduler.election.preferences import candidates_of
from hascheduler.errors import WorldError
from hascheduler.lifecycle import in_time
from hascheduler.ports import Clock
from hascheduler.telemetry.health import ABOUT_TO_END, NOT_LEADING, NOT_TURNING

log = structlog.get_logger(__name__)

READING_MAX = 8
ALONE_AFTER_MS, BEGIN_AFTER_MAX_MS = 1_000, 5_000
"""How long it must be a candidate before it begins: with a shard that no ready replica hosts, and with any other."""
LEAVE_AFTER_MS = 30_000
_TURN_S = 0.5
_READ_LIMIT_S = 1.0


class HostedShard:
    """One shard of this process; owner of its replica and its services while the process hosts it.

    ``make`` makes a replica that has not begun, and the services on it. It is given the `Silencing` of that replica.
    """

    def __init__(
        self, index: int, name: str, make: Callable[[Silencing], tuple[Replica, ApiServices]], liveness: Silencing
    ) -> None:
        self.index = index
        self.name = name
        self.replica: Replica | None = None
        self.is_fixed = False
        """True if it is hosted from the start to the end of the process."""
        self.is_wanted: bool | None = None
        """True if it should be hosted here, since ``since_ms``; None if that is not known yet."""
        self.since_ms = 0
        self._make = make
        self._services: ApiServices | None = None
        self._is_ready = self._is_ending = False
        self._is_silenced: Callable[[], bool] | None = None
        liveness.silence_while(lambda: self._is_silenced is not None and self._is_silenced())

    @property
    def services(self) -> ApiServices | None:
        """Return the services that answer here; None if another replica has to.

        That is so until the mirror is complete, and once the shard is left. A fixed shard answers from the start.
        """
        return self._services if self.is_fixed or self.is_ready else None

    @property
    def is_ready(self) -> bool:
        """Return True if its mirror has been complete since it began here."""
        if self.replica is None or self._is_ending:
            return False
        self._is_ready = self._is_ready or self.replica.view.ready
        return self._is_ready

    def begin(self) -> Replica:
        """Return the replica that hosts it from now on; the caller runs it."""
        assert self.replica is None
        self.replica, self._services = self._make(self)
        return self.replica

    def silence_while(self, silenced: Callable[[], bool]) -> None:
        """Silence this process's liveness while ``silenced`` returns True, for as long as the replica exists."""
        self._is_silenced = silenced

    def leave(self) -> None:
        """Let others answer from now on, and stop the replica; call `gone` when it has ended."""
        assert self.replica is not None
        self._is_ending = True
        self.replica.stop()

    def gone(self) -> None:
        """Release the ended replica: its mirror takes the memory."""
        assert self.replica is not None
        self.replica.forget()
        self.replica = self._services = self._is_silenced = None
        self._is_ready = self._is_ending = False


@dataclass
class Hosting:
    """The shards that this process hosts; `telemetry.health.Health` of the whole process.

    ``shards`` are all, the home first, which is hosted from the start to the end. ``hosts_of`` reads the ids of the
    ready replicas of the shard of that index. ``name`` is this replica's, ``most`` how many candidates each other shard
    has; with 0 all are hosted from the start to the end. A shard is left after ``after_ms``. Heartbeats carry
    ``http_endpoint``, which is set before `run`.
    """

    shards: Sequence[HostedShard]
    hosts_of: Callable[[int], Awaitable[Collection[str]]]
    _: KW_ONLY
    name: str
    most: int
    clock: Clock
    after_ms: int

    def __post_init__(self) -> None:
        self.http_endpoint = ""
        self._leave_after_ms = self.after_ms or LEAVE_AFTER_MS
        self._begin_after_ms = min(self._leave_after_ms, BEGIN_AFTER_MAX_MS)
        self._is_settled = False
        self._stopping = asyncio.Event()
        self._others = self.shards[1:] if self.most else ()
        for shard in self.shards[:1] if self.most else self.shards:
            shard.is_fixed = shard.is_wanted = True
            shard.begin()

    @property
    def home(self) -> Replica:
        return self.replicas[0]

    @property
    def replicas(self) -> Sequence[Replica]:
        """Return the replicas of the shards hosted now, the home's first."""
        return [shard.replica for shard in self.shards if shard.replica is not None]

    async def run(self) -> None:
        """Host until `stop`, and then until every hosted replica has ended in good order."""
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:

            def start(replica: Replica) -> None:
                replica.http_endpoint = self.http_endpoint
                running[replica.scheduler] = tasks.create_task(_run(replica), name=replica.scheduler)

            for replica in self.replicas:
                start(replica)
            while not self._stopping.is_set():
                for shard in await self.turn():
                    start(shard.begin())
                    log.info("shard_hosted", shard=shard.name)
                for shard in self._others:
                    if shard.name in running and running[shard.name].done():
                        del running[shard.name]
                        shard.gone()
                        log.info("shard_released", shard=shard.name)
                await in_time(self._stopping.wait(), _TURN_S if self._others else None)
            for replica in self.replicas:
                replica.stop()

    def stop(self) -> None:
        """Begin to end in good order: hand the leases over first."""
        self._stopping.set()

    async def turn(self) -> Sequence[HostedShard]:
        """Check once: leave the shards that are due, and return those to begin with now."""
        if not self._others or not self.home.view.ready:
            return ()
        now, live = self.clock.mono_ms(), self.home.live_replicas()
        names = [shard.name for shard in self.shards]
        candidates = candidates_of(names, {*(status.name for status in live), self.name}, self.most)
        for shard in self._others:
            is_wanted = self.name in candidates[shard.name]
            if shard.is_wanted is not is_wanted:
                shard.is_wanted, shard.since_ms = is_wanted, now
            if not is_wanted and self._may_leave(shard, candidates[shard.name], now):
                shard.leave()
        waiting = [shard for shard in self._others if shard.is_wanted and shard.replica is None]
        living = {status.id for status in live}
        due = await asyncio.gather(*(self._may_begin(shard, living, now) for shard in waiting))
        reading = sum(shard.replica is not None and not shard.is_ready for shard in self._others)
        return [shard for shard, is_due in zip(waiting, due, strict=True) if is_due][: max(READING_MAX - reading, 0)]

    def _may_leave(self, shard: HostedShard, candidates: Collection[str], now: int) -> bool:
        """Return True if it has been unwanted for long enough, and all candidates are ready in the shard's mirror."""
        if shard.replica is None or not shard.replica.view.ready or now - shard.since_ms < self._leave_after_ms:
            return False
        return {status.name for status in shard.replica.live_replicas() if status.ready}.issuperset(candidates)

    async def _may_begin(self, shard: HostedShard, living: Set[str], now: int) -> bool:
        """Return True if it has been wanted for long enough, which is shorter if no ready replica hosts it.

        The record of a killed replica stays for a minute, so it counts only while the replica lives in the home, which
        all host.
        """
        lasted_ms = now - shard.since_ms
        if lasted_ms >= self._begin_after_ms or lasted_ms < ALONE_AFTER_MS:
            return lasted_ms >= self._begin_after_ms
        try:
            async with asyncio.timeout(_READ_LIMIT_S):
                return living.isdisjoint(await self.hosts_of(shard.index))
        except (WorldError, TimeoutError) as error:
            log.debug("hosts_read_failed", shard=shard.name, error=str(error))
            return False

    # Health of the process

    def not_alive(self) -> str:
        return "" if all(replica.view.alive for replica in self.replicas) else NOT_TURNING

    def not_ready(self) -> str:
        """Return why the process is not ready: the home is not, or a wanted shard has not been yet; "" if it is.

        Once all were ready, a shard that falls behind answers for itself.
        """
        if self.home.view.stopping or self._stopping.is_set():
            return ABOUT_TO_END
        if self.home.view.unready_reason or self._is_settled:
            return self.home.view.unready_reason
        if any(shard.is_wanted is None for shard in self.shards):
            return "it does not know yet which shards to host"
        unready = next((shard.name for shard in self.shards if shard.is_wanted and not shard.is_ready), "")
        self._is_settled = not unready
        return f"shard {unready}: it is not ready here yet" if unready else ""

    def not_leading(self) -> str:
        return "" if any(replica.view.leading for replica in self.replicas) else NOT_LEADING


async def _run(replica: Replica) -> None:
    bind_contextvars(shard=replica.scheduler)  # on the log lines of this task and its subtasks
    await replica.run()
