"""What a demo needs of the system that it runs on, wherever that is.

`local` is this machine, `kubernetes` a cluster. An environment kills and restores processes in the ways that it has,
measures takeovers by its own clock, and provides the evidence: the handlers' outputs as files, and the jobs as they are
stored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType

from hascheduler.demo.replica_api import ClusterSnapshot, ReplicaApi
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One replica or processor, by the name that it goes by in the API; ``where`` is its pid or its node."""

    name: str
    where: str
    running: bool


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    """``shards``: the terms of those that it leads, by their names; empty where the system has one."""

    name: str
    term: int
    shards: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Takeover:
    """For how many ms nothing was decided; of several shards in each that the leader led, by name, and the longest."""

    took_ms: int
    of_shards: Mapping[str, int] = field(default_factory=dict)


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
    """The names of several; empty where there is one, or what is shown is of one."""
    tenants: Sequence[str] = ()
    """To own the schedules, in turns, so that each of several shards has some; empty: none in particular."""
    ways: Sequence[str]
    """How leaders are ended, in that order; each reads well before a name, as in ``kill -9`` replica-1."""
    processor_way: str
    cuts_outputs: bool
    """Whether the last output lines of a killed processor may be lost."""

    def wall_ms(self) -> WallMs:
        """The clock of the environment's processes."""
        ...

    def replicas(self) -> Sequence[ProcessStatus]: ...

    def processors(self) -> Sequence[ProcessStatus]: ...

    def outputs(self) -> Sequence[Path]:
        """The handlers' outputs so far, in files that only grow."""
        ...

    def listing(self) -> Sequence[RenderableType]:
        """Where everything is, for a user who explores the system after the demo."""
        return ()

    async def snapshot(self) -> ClusterSnapshot | None:
        """None while no replica answers that is ready."""
        return await self.api.snapshot()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schedule as the API returned it."""
        return await self.api.create(body)

    def shard_of(self, tenant: str) -> str:
        """Of several shards the one that has what is of that tenant."""
        return ""

    async def leader(self) -> CurrentLeader:
        """The leader, as soon as there is one; of several shards who leads most, as soon as all of them are led."""
        ...

    async def end_leader(self, leader: CurrentLeader, way: str) -> Takeover:
        """End it, and wait until a later term has decided something in each shard that it led."""
        ...

    async def restore(self, leader: CurrentLeader) -> str:
        """The name of the ended replica's replacement, once that is ready."""
        ...

    async def end_processor(self, id: str) -> str:
        """End it by `processor_way`; the name of its replacement, which may still be starting."""
        ...

    async def count_unended(self, ids: Collection[str]) -> int:
        """How many of those jobs are not there yet, or live; all of them where that is not known."""
        ...

    async def read_jobs(self, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """State, attempt and attempts of the jobs, by id."""
        ...

    async def complete_outputs(self) -> None:
        """Return when `outputs` holds all that handlers have written by now."""
        ...
