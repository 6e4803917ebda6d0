"""What a demo needs of the system that it runs on, and access to its API through any replica that answers.

`local` is this machine, `kubernetes` a cluster. An environment kills and restores processes in its own ways, and
provides the evidence: the handlers' outputs as files, and the jobs as they are stored. The API tells who leads.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import RenderableType

from hascheduler.client import AsyncScheduler, Refused, Unavailable
from hascheduler.errors import CallerError, StoreUnavailable, WorldError
from hascheduler.model.values.instants import WallMs

ANSWER_S = 5.0
_TAKEOVER_S = 90.0
_OWN_TROUBLE = (404, 429)
_REFUSED = (401, 403)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One replica or processor, by its name in the API; ``where`` is its pid or its node."""

    name: str
    where: str
    running: bool


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    """The replica that leads; ``terms`` are those of the shards that it leads, by shard name."""

    name: str
    terms: Mapping[str, int]

    @property
    def term(self) -> int:
        return max(self.terms.values())


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answers of one ready replica: ``/v1/cluster``, and the items of ``/v1/processors``."""

    cluster: dict[str, Any]
    processors: list[dict[str, Any]]


class ReplicaApi:
    """The API of any replica; ``urls`` returns those that may answer now, by name, ``scheduler_of`` the SDK for one."""

    def __init__(self, scheduler_of: Callable[[str], AsyncScheduler], urls: Callable[[], Mapping[str, str]]) -> None:
        self._scheduler_of = scheduler_of
        self._urls = urls

    async def ask(self, question: Callable[[AsyncScheduler], Awaitable[T]], *, avoid: str = "") -> T:
        """Return the first answer that is not a failure of the replica itself; ask ``avoid`` last.

        `StoreUnavailable` if none answers, a `CallerError` if the request or the token is refused.
        """
        trouble = "no replica to ask"
        for _, url in sorted(self._urls().items(), key=lambda one: one[0] == avoid):
            try:
                return await question(self._scheduler_of(url))
            except Unavailable as unavailable:
                trouble = str(unavailable)
            except Refused as refused:
                if refused.status in _REFUSED:
                    raise CallerError(f"{url} answered {refused}") from None
                if refused.status not in _OWN_TROUBLE:
                    raise
                trouble = f"{url} answered {refused}"
        raise StoreUnavailable(trouble)

    async def create(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the schedule and return it, even if an earlier answer was lost."""
        try:
            return await self.ask(lambda scheduler: scheduler.schedules.create_document(document))
        except Refused as refused:
            if refused.status != 409:
                raise
        return await self.ask(lambda scheduler: scheduler.schedules.get(document["name"]))

    async def snapshot(self, *, avoid: str = "") -> ClusterSnapshot | None:
        """Return the snapshot of a ready replica; None if none is ready."""
        try:
            cluster = await self.ask(lambda scheduler: scheduler.cluster.status(), avoid=avoid)
            processors = await self.ask(lambda scheduler: scheduler.cluster.processors(), avoid=avoid)
        except StoreUnavailable:
            return None
        return ClusterSnapshot({**cluster}, [{**one} for one in processors]) if cluster["ready"] else None


@asynccontextmanager
async def open_replica_api(urls: Callable[[], Mapping[str, str]], **options: Any) -> AsyncIterator[ReplicaApi]:
    """Open the API with ``options`` of `AsyncScheduler`; each replica is tried once, then the next one."""
    async with AsyncExitStack() as stack:
        opened: dict[str, AsyncScheduler] = {}

        def scheduler_of(url: str) -> AsyncScheduler:
            if url not in opened:
                opened[url] = AsyncScheduler(url, patience=0, answer_timeout=ANSWER_S, **options)
                stack.push_async_exit(opened[url])
            return opened[url]

        yield ReplicaApi(scheduler_of, urls)


class DemoEnvironment(Protocol):
    """The system that a demo runs on; a method raises a `WorldError` if the system does not act in time."""

    title: str
    api: ReplicaApi
    where: str
    """The meaning of `ProcessStatus.where`."""
    prefix: str
    """Prefix of the names of the demo's schedules; the system may have others."""
    poll_every_s: float
    shards: Sequence[str] = ()
    """The names of several shards; empty if there is one, or if only one is shown."""
    tenants: Sequence[str] = ()
    """Own the schedules in turns, so that each of several shards has some; if empty, no tenant does."""
    ways: Sequence[str]
    """The ways to end leaders, in that order; each reads well before a name, as in ``kill -9`` replica-1."""
    processor_way: str
    cuts_outputs: bool
    """True if the last output lines of a killed processor may be lost."""

    def wall_ms(self) -> WallMs:
        """Return the time by the clock of the environment's processes."""
        ...

    def replicas(self) -> Sequence[ProcessStatus]: ...

    def processors(self) -> Sequence[ProcessStatus]: ...

    def outputs(self) -> Sequence[Path]:
        """Return the files with the handlers' outputs so far; they only grow."""
        ...

    def listing(self) -> Sequence[RenderableType]:
        """Return the addresses of everything, for a user who explores the system after the demo."""
        return ()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the schedule and return it as the API did."""
        return await self.api.create(body)

    def shard_of(self, tenant: str) -> str:
        """Return the shard of that tenant, if there are several."""
        return ""

    async def leader(self) -> CurrentLeader:
        """Return the leader once there is one; of several shards, the replica that leads most once all have leaders."""

        async def known_leader() -> CurrentLeader | None:
            snapshot = await self.api.snapshot()
            if snapshot is None:
                return None
            running = {replica.name for replica in self.replicas() if replica.running}
            terms: dict[str, dict[str, int]] = {}
            for shard in self.shards or ("",):
                led = _part_of(snapshot.cluster, shard)["leader"]
                name = led["holder"].rpartition(".")[0] if led else ""
                if name not in running:
                    return None
                terms.setdefault(name, {})[shard] = led["term"]
            return CurrentLeader(*min(terms.items(), key=lambda one: (-len(one[1]), one[0])))

        return await until(known_leader, "a leader")

    async def end_leader(self, leader: CurrentLeader, way: str) -> Mapping[str, int]:
        """End it; return for how many ms nothing was decided in each shard that it led, once something is again."""
        await self.end_replica(leader.name, way)
        took_ms = await asyncio.gather(*(measure_takeover(self.api, leader, shard) for shard in leader.terms))
        return dict(zip(leader.terms, took_ms, strict=True))

    async def end_replica(self, name: str, way: str) -> None:
        """End it in that way, one of `ways`."""
        ...

    async def restore(self, leader: CurrentLeader) -> str:
        """Return the name of the ended replica's replacement, once that is ready."""
        ...

    async def end_processor(self, id: str) -> str:
        """End it by `processor_way`; return the name of its replacement, which may still be starting."""
        ...

    async def read_jobs(self, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return state, attempt and attempts by id, for those of the jobs that are known to exist."""
        ...

    async def complete_outputs(self) -> None:
        """Return once `outputs` holds everything that handlers have written by now."""


async def until(
    find: Callable[[], Awaitable[T | None]], what: str, patience_s: float = 60.0, every_s: float = 0.2
) -> T:
    """Return the first result that is not None, or raise an error with ``what``; a `WorldError` counts as None."""
    trouble = ""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = await find()
                except WorldError as error:
                    found, trouble = None, f" ({error})"
                if found is not None:
                    return found
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise StoreUnavailable(f"timed out after {patience_s:g} s waiting for {what}{trouble}") from None


async def measure_takeover(api: ReplicaApi, leader: CurrentLeader, shard: str) -> int:
    """Return the gap in ms that a living replica sees in the journal, from the old term's last entry to a decision.

    A decision is two entries after the first one seen of a later term: that one may be older, and the next marks the
    start.
    """
    loop = asyncio.get_running_loop()
    last_s, last_seq = loop.time(), 0
    first_seq: int | None = None

    async def gap_s() -> float | None:
        nonlocal last_s, last_seq, first_seq
        asked_s = loop.time()
        snapshot = await api.snapshot(avoid=leader.name)
        part = _part_of(snapshot.cluster, shard) if snapshot else {"leader": None, "journal_seq": None}
        now, seq = part["leader"], part["journal_seq"] or 0
        if now is not None and now["term"] > leader.terms[shard]:
            first_seq = seq if first_seq is None else first_seq
            return loop.time() - last_s if seq >= first_seq + 2 else None
        if now is not None and seq > last_seq:
            last_s, last_seq = asked_s, seq
        return None

    return round(
        await until(gap_s, f"a decision of a leader after term {leader.terms[shard]}", _TAKEOVER_S, 0.02) * 1_000
    )


def _part_of(cluster: Mapping[str, Any], shard: str) -> Mapping[str, Any]:
    """Return the shard's part of a snapshot; without a name all of it."""
    return next(row for row in cluster["shards"] if row["name"] == shard) if shard else cluster
