"""What a demo needs of the system that it runs on, wherever that is, and its API by any replica that answers.

`local` is this machine, `kubernetes` a cluster. An environment kills and restores processes in the ways that it has,
measures takeovers by its own clock, and provides the evidence: the handlers' outputs as files, and the jobs as they are
stored.
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
_OWN_TROUBLE = (404, 429)
_REFUSED = (401, 403)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One replica or processor, by the name that it goes by in the API; ``where`` is its pid or its node."""

    name: str
    where: str
    running: bool


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    """``terms`` are those of the shards that it leads, by their names."""

    name: str
    terms: Mapping[str, int]

    @property
    def term(self) -> int:
        return max(self.terms.values())


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answers of one replica that is ready: ``/v1/cluster``, and the items of ``/v1/processors``."""

    cluster: dict[str, Any]
    processors: list[dict[str, Any]]


class ReplicaApi:
    """``urls`` has the addresses of those that may answer now, by name; ``scheduler_of`` gives the SDK for one."""

    def __init__(self, scheduler_of: Callable[[str], AsyncScheduler], urls: Callable[[], Mapping[str, str]]) -> None:
        self._scheduler_of = scheduler_of
        self._urls = urls

    async def ask(self, question: Callable[[AsyncScheduler], Awaitable[T]], *, avoid: str = "") -> T:
        """Return the first answer that is not the replica's own trouble; ``avoid`` is asked last.

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
        """Return the schedule as it was created; also if an earlier answer got lost."""
        try:
            return await self.ask(lambda scheduler: scheduler.schedules.create_document(document))
        except Refused as refused:
            if refused.status != 409:
                raise
        return await self.ask(lambda scheduler: scheduler.schedules.get(document["name"]))

    async def snapshot(self, *, avoid: str = "") -> ClusterSnapshot | None:
        """Return what a replica sees that is ready; None if none is."""
        try:
            cluster = await self.ask(lambda scheduler: scheduler.cluster.status(), avoid=avoid)
            processors = await self.ask(lambda scheduler: scheduler.cluster.processors(), avoid=avoid)
        except StoreUnavailable:
            return None
        return ClusterSnapshot({**cluster}, [{**one} for one in processors]) if cluster["ready"] else None


@asynccontextmanager
async def open_replica_api(urls: Callable[[], Mapping[str, str]], **options: Any) -> AsyncIterator[ReplicaApi]:
    """With the ``options`` of `AsyncScheduler`; each replica is asked once, and the next one instead."""
    async with AsyncExitStack() as stack:
        opened: dict[str, AsyncScheduler] = {}

        def scheduler_of(url: str) -> AsyncScheduler:
            if url not in opened:
                opened[url] = AsyncScheduler(url, patience=0, answer_timeout=ANSWER_S, **options)
                stack.push_async_exit(opened[url])
            return opened[url]

        yield ReplicaApi(scheduler_of, urls)


class DemoEnvironment(Protocol):
    """Its methods raise a `WorldError` when the system does not do in time what they ask of it."""

    title: str
    api: ReplicaApi
    where: str
    """What `ProcessStatus.where` is."""
    prefix: str
    """The names of the demo's schedules begin with it; the system may have others."""
    poll_every_s: float
    shards: Sequence[str] = ()
    """The names of several; empty if there is one, or what is shown is of one."""
    tenants: Sequence[str] = ()
    """To own the schedules, in turns, so that each of several shards has some; empty: none in particular."""
    ways: Sequence[str]
    """How leaders are ended, in that order; each reads well before a name, as in ``kill -9`` replica-1."""
    processor_way: str
    cuts_outputs: bool
    """Whether the last output lines of a killed processor may be lost."""

    def wall_ms(self) -> WallMs:
        """Return the time by the clock of the environment's processes."""
        ...

    def replicas(self) -> Sequence[ProcessStatus]: ...

    def processors(self) -> Sequence[ProcessStatus]: ...

    def outputs(self) -> Sequence[Path]:
        """Return the handlers' outputs so far, in files that only grow."""
        ...

    def listing(self) -> Sequence[RenderableType]:
        """Return where everything is, for a user who explores the system after the demo."""
        return ()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schedule as the API returned it."""
        return await self.api.create(body)

    def shard_of(self, tenant: str) -> str:
        """Of several shards the one that has what is of that tenant."""
        return ""

    async def leader(self) -> CurrentLeader:
        """Return the leader, once there is one; of several shards who leads most, once all of them are led."""
        ...

    async def end_leader(self, leader: CurrentLeader, way: str) -> Mapping[str, int]:
        """End it, and wait until a later term has decided something in each shard that it led.

        Returns for how many ms nothing was decided there, by shard.
        """
        ...

    async def restore(self, leader: CurrentLeader) -> str:
        """Return the name of the ended replica's replacement, once that is ready."""
        ...

    async def end_processor(self, id: str) -> str:
        """End it by `processor_way`; return the name of its replacement, which may still be starting."""
        ...

    async def read_jobs(self, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return state, attempt and attempts by id, of those jobs that are known to be there."""
        ...

    async def complete_outputs(self) -> None:
        """Return when `outputs` holds all that handlers have written by now."""


async def until(
    look: Callable[[], Awaitable[T | None]], what: str, patience_s: float = 60.0, every_s: float = 0.2
) -> T:
    """Return the first result that is not None; a `WorldError` counts as None until the time is over."""
    trouble = ""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = await look()
                except WorldError as error:
                    found, trouble = None, f" ({error})"
                if found is not None:
                    return found
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise StoreUnavailable(f"not within {patience_s:g} s: {what}{trouble}") from None
