"""Where the story is told: all it asks of the system that it shows, wherever that runs.

`local` is this machine, `kubernetes` a cluster. A stage kills and restores as its place does it, measures takeovers by
the clock of that place, and hands over the evidence: the handlers' outputs as files, and the jobs as they are stored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType

from hascheduler.model.instants import WallMs


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One replica or processor, by the name that it goes by in the API; ``where`` is its pid or its node."""

    name: str
    where: str
    running: bool


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    name: str
    term: int


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answers of one replica that is ready: ``/v1/cluster``, and the items of ``/v1/processors``."""

    cluster: dict[str, Any]
    processors: list[dict[str, Any]]


class DemoEnvironment(Protocol):
    """Its methods raise a `WorldError` when the place does not do what was asked of it in good time."""

    title: str
    where: str
    """What `ProcessStatus.where` is."""
    prefix: str
    """With which the names of its schedules begin; the place may have others."""
    look_every_s: float
    ways: Sequence[str]
    """How leaders are ended here, in that order; each reads well before a name, as in ``kill -9`` replica-1."""
    processor_way: str
    cuts_outputs: bool
    """Whether a processor that is killed may take the last lines of its output along."""

    def wall_ms(self) -> WallMs:
        """The clock of the processes on stage."""
        ...

    def replicas(self) -> Sequence[ProcessStatus]: ...

    def processors(self) -> Sequence[ProcessStatus]: ...

    def outputs(self) -> Sequence[Path]:
        """The handlers' outputs so far, in files that only grow."""
        ...

    def listing(self) -> Sequence[RenderableType]:
        """Where everything is, for a person who goes on from here."""
        ...

    async def look(self) -> ClusterSnapshot | None:
        """None while no replica answers that is ready."""
        ...

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schedule as the API returned it."""
        ...

    async def leader(self) -> CurrentLeader:
        """Who leads, once somebody does."""
        ...

    async def end_leader(self, leader: CurrentLeader, way: str) -> int:
        """End it, wait until a later term has decided something, and say for how many ms nothing was decided."""
        ...

    async def restore(self, leader: CurrentLeader) -> str:
        """The name of the replica that takes the place of the one that was ended, once it is ready."""
        ...

    async def busiest_processor(self) -> str:
        """The id of the processor that runs most, once one runs something; any, if none does for a while."""
        ...

    async def end_processor(self, id: str) -> str:
        """End it by `processor_way`; the name of the one that takes its place, which may still be starting."""
        ...

    async def ended(self, ids: Collection[str]) -> bool:
        """Whether all those jobs are there and none is live."""
        ...

    async def read_jobs(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """State, attempt and attempts of the jobs, by id. Those whose effect was not ``seen`` are read most closely."""
        ...

    async def complete_outputs(self) -> None:
        """Return when `outputs` holds all that handlers have written by now."""
        ...
