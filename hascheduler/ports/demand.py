"""What processors ask of all shards of a deployment: where jobs wait that they could run, and who serves them there."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.processor import decode_processor
from hascheduler.model.processor import ProcessorRef, overlap, supports


@dataclass(frozen=True, slots=True)
class Server:
    """A live processor that takes jobs; ``free`` is how many slots it has left."""

    id: str
    definitions: frozenset[str]
    slots: int
    free: int


@dataclass(frozen=True, slots=True)
class Demand:
    """Of one shard, as one processor sees it: jobs and processors that have nothing to do with it are not counted.

    Counts of jobs are bounded, so that a long queue costs no more than a short one.
    """

    shard: int
    waiting: int = 0
    """Jobs that it could run and that wait for nothing but a slot, as far as a look can tell."""
    unserved: int = 0
    """Those of them that no live processor takes."""
    unmet: int = 0
    """Those of them for which there is no slot, the unserved ones too."""
    servers: tuple[str, ...] = ()
    """The ids of the other live processors that take some of the same definitions."""
    slots: int = 0
    """What those have in all."""


class ShardDemand(Protocol):
    async def look(
        self, definitions: frozenset[str], own: Collection[str], shards: Collection[int] | None = None
    ) -> Sequence[Demand]:
        """The demand in each of ``shards`` (None: in all) that answers in time, for a processor with those definitions;
        ``own`` are the ids under which it is registered itself. Bounded work a shard; one that does not answer is not
        there, and holds up none. It raises nothing but a cancellation."""


def demand_of(
    shard: int, definitions: frozenset[str], waiting: Mapping[str, int], servers: Sequence[Server], own: Collection[str]
) -> Demand:
    """``waiting`` counts jobs by definition, and may have others than ``definitions``.

    A free slot is counted for each definition that could have it: what is dispatched in between shows at the next look.
    """
    rivals = [server for server in servers if server.id not in own and overlap(definitions, server.definitions)]
    wanted = {name: count for name, count in waiting.items() if supports(definitions, name)}
    unserved = unmet = 0
    for name, count in wanted.items():
        takers = [server for server in rivals if supports(server.definitions, name)]
        unserved += 0 if takers else count
        unmet += max(0, count - sum(max(0, server.free) for server in takers))
    return Demand(
        shard,
        waiting=sum(wanted.values()),
        unserved=unserved,
        unmet=unmet,
        servers=tuple(sorted(server.id for server in rivals)),
        slots=sum(server.slots for server in rivals),
    )


def expecting(demand: Demand, id: str, slots: int) -> Demand:
    """The same once a processor has come there that runs all of these definitions, and is under way by now."""
    if id in demand.servers:
        return demand
    return replace(
        demand,
        unserved=0,
        unmet=max(0, demand.unmet - slots),
        servers=tuple(sorted((*demand.servers, id))),
        slots=demand.slots + slots,
    )


def readable_processors(documents: Iterable[Mapping[str, Any]]) -> list[ProcessorRef]:
    """The stored registrations, without those that can't be read: no leader sees these either."""
    processors = []
    for document in documents:
        with suppress(InvalidInput):
            processors.append(decode_processor(document["_id"], document))
    return processors


@dataclass(frozen=True, slots=True)
class BeatLimits:
    """In how many ms a beat must change: that of a registration never seen before, and that of one that showed life."""

    unproven_ms: int
    dead_after_ms: int

    @classmethod
    def of(cls, interval_ms: int, timeout_ms: int) -> "BeatLimits":
        """Of beats that come once in ``interval_ms``: something more than that until the first one is expected."""
        return cls(round(1.5 * interval_ms), timeout_ms)


class BeatWatch:
    """Which registrations show life: only a *change* of the beat does. Owner of the beats that were seen.

    One that is seen for the first time is taken for alive, but not for long: a processor that has just started finds
    what others left behind that died. Times are those that are handed in.
    """

    def __init__(self, limits: BeatLimits) -> None:
        self._limits = limits
        self._seen: dict[str, _Beat] = {}

    def living(self, beats: Mapping[str, int], now_ms: int) -> frozenset[str]:
        """``beats`` are all that are registered now, by id: others are forgotten."""
        known = self._seen
        self._seen = {
            id: known[id] if id in known and known[id].beat == beat else _Beat(beat, now_ms, proven=id in known)
            for id, beat in beats.items()
        }
        return frozenset(id for id, last in self._seen.items() if now_ms - last.since_ms < self._patience_ms(last))

    def _patience_ms(self, last: "_Beat") -> int:
        return self._limits.dead_after_ms if last.proven else self._limits.unproven_ms


@dataclass(frozen=True, slots=True)
class _Beat:
    """``proven``: there was another one before."""

    beat: int
    since_ms: int
    proven: bool
