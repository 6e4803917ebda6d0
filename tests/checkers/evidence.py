"""What really happened, written down outside the application: effects of handlers, and the commits of the database.

All times are true ones, in seconds since `Evidence.epoch_ms`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hascheduler.model.collection import Collection
from hascheduler.testing.memory.database import Document


@dataclass
class Effect:
    """One run of a handler, in true time; ``ended_s`` None: it was cut short by the death of its process."""

    job_id: str
    attempt: int
    processor: str
    began_s: float
    ended_s: float | None = None


@dataclass(frozen=True)
class Commit:
    """A majority has this version of a document; ``after`` None: it was deleted."""

    at_s: float
    collection: Collection
    before: Document | None
    after: Document | None

    @property
    def id(self) -> Any:
        document = self.after or self.before
        assert document is not None
        return document["_id"]


class SeenEvent(NamedTuple):
    """What a follower of events got: a job's id, and what happened to it."""

    job: str
    type: str


@dataclass
class Submitted:
    """A submit or a schedule that was asked for. ``acknowledged`` is an obligation; otherwise it may or may not be."""

    id: str
    asked_s: float
    acknowledged: bool = False


@dataclass(frozen=True)
class Sighting:
    """Who believed at that moment that it leads, of those awake: ``deaf`` on a stream that has long been silent,
    ``lapsed`` on a lease that was renewed too long ago; ``overtaken`` are those who stood still, or were cut off, not
    long before, and were followed in the meantime."""

    at_s: float
    leaders: tuple[str, ...]
    deaf: tuple[str, ...]
    lapsed: tuple[str, ...]
    clocks_differ: bool
    overtaken: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class LocalFire:
    """A fire, and the wall time that it is by the time-zone data of the leader that decided it."""

    nominal_ms: int
    wall_s: int
    holder: str


@dataclass
class Evidence:
    """Owner of all that the checkers judge by. ``skew_ms`` bounds how wrong any wall clock ever was."""

    effects: list[Effect] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    copies: list[Commit] = field(default_factory=list)
    """Of several shards: what came from another one, or went there; nothing happened to it."""
    submits: list[Submitted] = field(default_factory=list)
    cancels: list[tuple[str, float]] = field(default_factory=list)
    """Jobs that were acknowledged as cancelled, and when the answer had come."""
    sightings: list[Sighting] = field(default_factory=list)
    needless: list[tuple[float, str]] = field(default_factory=list)
    """Leaders that were awake, if short of CPU, and connected, and were followed all the same before their leases ran
    out."""
    events: list[list[SeenEvent]] = field(default_factory=list)
    """Runs of events of jobs, each from a follower that was told of no gap."""
    schedules: dict[str, Any] = field(default_factory=dict)
    """Those that were acknowledged: name → `NewSchedule`."""
    pauses: dict[str, list[list[float]]] = field(default_factory=dict)
    """By processor id: spans in which its process stood still."""
    deaths: dict[str, float] = field(default_factory=dict)
    epoch_ms: int = 0
    """The wall time at second 0 of all the times here."""
    skew_ms: int = 0
    until_ms: int = 0
    """Nominal times up to here are due."""
    documents: dict[Collection, dict[Any, Document]] = field(default_factory=dict)
    """The database at the end."""
    local_fires: list[LocalFire] = field(default_factory=list)
    """Of one schedule whose local times are `local_every_s` apart, where leaders differ in their time-zone data."""
    local_every_s: int = 0

    def of(self, collection: Collection) -> Iterator[Commit]:
        return (commit for commit in self.commits if commit.collection is collection)
