"""Where workers over HTTP are of use, in a deployment of several shards: which of them move, and where they register.

::

    fetch, heartbeat ─► consider ─► BEGIN_MOVE    stored: it moves, and gets no new jobs, whatever it says of itself
                                    DEREGISTER    it moves and holds nothing: it registers again (404 `not-registered`)
                                    CALL_OFF      nobody lacks it any more: it gets jobs again
    registration     ─► shard_in_need             by the same rules, on the same pictures

The rules are those of processors that move by themselves (`hascheduler.ports.next_shard`). The difference is that what
runs keeps the whole worker: it begins in the next shard once it holds nothing. One that idles stays for a turn while
jobs that it could run wait where it is: the leader may be about to dispatch them.

What must hold:

* Nothing that runs is taken away, and no worker gets jobs of two shards: it is deregistered once this replica's stream
  has shown that it moves and that nothing is dispatched to it or runs there. What the leader may still promise it goes
  back to the queue with the registration.
* A worker rests. Its age is counted from its first request that this replica saw, by this replica's clock: so each
  replica alone counts less than there is, however its requests are spread. What moves it is stored, and so any replica
  goes on with it.
* Not all go for the same jobs: whom this replica has sent, and who registers here, count where they are expected, for
  workers with tokens of the same name. So nobody keeps others away by registrations.
* What requests cost has a bound. They look at *pictures* alone, at most `PICTURE_KEPT_MS` old, one for each token and
  set of definitions. Pictures are taken one after the other, with pauses (`_PAUSE_S`), and the tokens take turns.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from random import randrange
from typing import NamedTuple, TypeVar

import structlog

from hascheduler.model.processor import ANY_DEFINITION, ProcessorRef, with_shard
from hascheduler.ports import Clock
from hascheduler.ports.demand import Demand, ShardDemand, expecting
from hascheduler.ports.next_shard import (
    BARREN_MS,
    JITTER_MS_MAX,
    TURN_MS,
    Standing,
    is_due,
    is_wanted_elsewhere,
    next_shard,
    shard_in_need,
)

log = structlog.get_logger(__name__)

_LOOK_EVERY_MS = 1_000
PICTURE_KEPT_MS = 3_000
_PAUSE_S = 0.25
_PAUSE_FACTOR = 2
"""A pause lasts so many times as long as the look before it, at least: a slow database is not asked more."""
_WANTED_MAX = 100
"""So many pictures may be wanted with tokens of one name."""
_REGISTRATION_WAITS_S = 1.0
_EXPECTED_FOR_MS = 3_000
_EXPECTED_MAX = 100
"""With tokens of one name."""
_TOLD_FOR_MS = 5_000
"""The stream shows by then that a worker moves, or stays after all; else it is asked again. No move is called off
before: pictures are newer by then than the one that this replica or another began it with."""
_SETTLED_MS = 500
"""One that moves has held nothing for so long before it is deregistered: it has had its last answer by then."""
_FORGOTTEN_AFTER_MS = 90_000
"""Longer than a fetch waits."""
_MEMORIES_MAX = 1_000
_NOWHERE = -1
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class MoveStep(Enum):
    """What is to be done with a worker now."""

    NOTHING = "nothing"
    BEGIN_MOVE = "begin_move"
    CALL_OFF = "call_off"
    DEREGISTER = "deregister"


class Group(NamedTuple):
    """The workers for which one picture is enough."""

    token: str | None
    definitions: frozenset[str]


@dataclass(slots=True)
class _Worker:
    since_ms: int
    jitter_ms: int
    idle_since_ms: int | None
    seen_at_ms: int
    worked: bool = False
    told_at_ms: int | None = None
    moves_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Expected:
    """A worker that is under way to a shard. One that was ``sent`` has yet to register there, under another id."""

    id: str
    group: Group
    slots: int
    shard: int
    until_ms: int
    sent: bool


@dataclass(frozen=True, slots=True)
class _Picture:
    at_ms: int
    demands: Sequence[Demand]


class WorkerMoves:
    """Owner of what this replica has seen of workers and shards of late; all of it has a bound, and nothing depends on
    its being complete."""

    def __init__(
        self,
        shards: Sequence[str],
        demand: ShardDemand,
        clock: Clock,
        jitter_ms: Callable[[], int] = lambda: randrange(JITTER_MS_MAX),  # noqa: S311  # no secret
    ) -> None:
        self._shards = shards
        self._demand = demand
        self._clock = clock
        self._new_jitter_ms = jitter_ms
        self._workers: dict[str, _Worker] = {}
        self._forgot_at_ms: int = clock.mono_ms()
        self._pictures: dict[Group, _Picture] = {}
        self._wanted: dict[str | None, dict[Group, asyncio.Event]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._expected: dict[str | None, list[_Expected]] = {}
        self._left_at_ms: dict[tuple[Group, int], int] = {}
        self._barren_until_ms: dict[tuple[Group, int], int] = {}

    # Workers that are registered

    def consider(self, processor: ProcessorRef, *, holds: bool) -> MoveStep:
        """``holds``: something is dispatched to it or runs there. To be asked with each of its requests, and every
        second while one waits."""
        now_ms = self._clock.mono_ms()
        worker = self._seen(processor.id, now_ms, holds=holds)
        if processor.shard not in self._shards:
            return MoveStep.NOTHING
        if processor.moving:
            return self._moving(processor, worker, now_ms)
        worker.moves_since_ms = None
        if processor.draining or self._is_told(worker, now_ms):
            return MoveStep.NOTHING
        standing = self._standing(processor, worker)
        if not is_due(now_ms, standing, worker.jitter_ms):
            return MoveStep.NOTHING
        demands = self._demands(processor, now_ms)
        waits_here = any(demand.shard == standing.at and demand.waiting for demand in demands)
        if waits_here and worker.idle_since_ms is not None and now_ms - worker.idle_since_ms < TURN_MS:
            return MoveStep.NOTHING
        to = next_shard(now_ms, standing, demands, worker.jitter_ms)
        if to is None:
            return MoveStep.NOTHING
        if waits_here and not worker.worked:
            self._barren_until_ms[_of(processor), standing.at] = now_ms + BARREN_MS
        worker.told_at_ms = now_ms
        self._expect(processor.id, _of(processor), processor.slots, to, sent=True)
        log.info("moving", processor=processor.id, shard=processor.shard, to=self._shards[to])
        return MoveStep.BEGIN_MOVE

    def left(self, processor: ProcessorRef) -> None:
        """It is deregistered, and about to register again."""
        self._workers.pop(processor.id, None)
        if processor.shard in self._shards:
            # As the newest: the oldest are forgotten first.
            key = _of(processor), self._shards.index(processor.shard)
            self._left_at_ms.pop(key, None)
            self._left_at_ms[key] = self._clock.mono_ms()

    def _moving(self, processor: ProcessorRef, worker: _Worker, now_ms: int) -> MoveStep:
        if worker.idle_since_ms is not None:
            settled = now_ms - worker.idle_since_ms >= _SETTLED_MS
            return MoveStep.DEREGISTER if settled else MoveStep.NOTHING
        if worker.moves_since_ms is None:
            worker.moves_since_ms = now_ms
        demands = self._demands(processor, now_ms)
        if not demands or self._is_told(worker, now_ms) or now_ms - worker.moves_since_ms < _TOLD_FOR_MS:
            return MoveStep.NOTHING
        if is_wanted_elsewhere(now_ms, self._standing(processor, worker), demands):
            return MoveStep.NOTHING
        worker.told_at_ms = now_ms
        log.info("staying", processor=processor.id, shard=processor.shard)
        return MoveStep.CALL_OFF

    def _seen(self, id: str, now_ms: int, *, holds: bool) -> _Worker:
        self._forget(now_ms)
        worker = self._workers.get(id)
        if worker is None:
            worker = self._workers[id] = _Worker(now_ms, self._new_jitter_ms(), now_ms, now_ms)
        worker.seen_at_ms = now_ms
        if holds:
            worker.idle_since_ms, worker.worked = None, True
        elif worker.idle_since_ms is None:
            worker.idle_since_ms = now_ms
        return worker

    def _standing(self, processor: ProcessorRef, worker: _Worker) -> Standing:
        # That it moved is taken for granted: nobody knows what it was before it registered.
        return replace(
            self._memory(_of(processor), processor.id),
            at=self._shards.index(processor.shard),
            since_ms=worker.since_ms,
            idle_since_ms=worker.idle_since_ms,
        )

    def _is_told(self, worker: _Worker, now_ms: int) -> bool:
        return worker.told_at_ms is not None and now_ms - worker.told_at_ms < _TOLD_FOR_MS

    # Workers that register

    async def shard_in_need(self, group: Group, slots: int, id: str) -> str | None:
        """The shard where one that registers is of most use: the one that it was sent to a moment ago, or what a
        picture tells; it counts there from now on. ``id`` is the one that it gets, without its shard. None where no
        picture came in about a second."""
        for expected in self._expected_of(group.token):
            if expected.sent and (expected.group, expected.slots) == (group, slots):
                self._expected[group.token].remove(expected)
                self._expect(id, group, slots, expected.shard)
                return self._shards[expected.shard]
        picture = self._picture(group, self._clock.mono_ms())
        if picture is None:
            wanted = self._want(group)
            if wanted is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_REGISTRATION_WAITS_S):
                        await wanted.wait()
            picture = self._picture(group, self._clock.mono_ms())
        if picture is None:
            return None
        now_ms = self._clock.mono_ms()
        shard = shard_in_need(now_ms, self._memory(group, id), self._with_expected(picture, group, id, now_ms))
        if shard is None:
            return None
        self._expect(id, group, slots, shard)
        return self._shards[shard]

    # Pictures

    def _demands(self, processor: ProcessorRef, now_ms: int) -> Sequence[Demand]:
        """As that worker sees them: empty where none is known; a newer picture is wanted then, and when it is old."""
        group = _of(processor)
        picture = self._picture(group, now_ms)
        if picture is None or now_ms - picture.at_ms >= _LOOK_EVERY_MS:
            self._want(group)
        return [] if picture is None else self._with_expected(picture, group, processor.id, now_ms)

    def _with_expected(self, picture: _Picture, group: Group, id: str, now_ms: int) -> Sequence[Demand]:
        demands = {demand.shard: demand for demand in picture.demands}
        for each in self._expected_of(group.token):
            runs = each.group.definitions
            covers = ANY_DEFINITION in runs or runs >= group.definitions
            if covers and each.shard in demands:
                demands[each.shard] = expecting(demands[each.shard], each.id, each.slots)
        return [
            replace(demand, servers=tuple(server for server in demand.servers if server != id))
            for demand in demands.values()
        ]

    def _picture(self, group: Group, now_ms: int) -> _Picture | None:
        picture = self._pictures.get(group)
        return None if picture is None or now_ms - picture.at_ms >= PICTURE_KEPT_MS else picture

    def _want(self, group: Group) -> asyncio.Event | None:
        """Have a picture taken when it is this group's turn; None where too many are wanted with its token."""
        of_token = self._wanted.setdefault(group.token, {})
        if group not in of_token:
            if len(of_token) >= _WANTED_MAX:
                return None
            of_token[group] = asyncio.Event()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="worker-moves")
        return of_token[group]

    async def _look(self) -> None:
        """Take the wanted pictures, one after the other; the names of tokens take turns."""
        clock = asyncio.get_running_loop().time
        while self._wanted:
            token, of_token = next(iter(self._wanted.items()))
            del self._wanted[token]
            group, taken = next(iter(of_token.items()))
            del of_token[group]
            if of_token:
                self._wanted[token] = of_token
            began, at_ms = clock(), self._clock.mono_ms()
            demands = await self._demand.look(group.definitions, ())
            self._pictures = {
                each: picture for each, picture in self._pictures.items() if at_ms - picture.at_ms < PICTURE_KEPT_MS
            }
            self._pictures[group] = _Picture(at_ms, demands)
            taken.set()
            await asyncio.sleep(max(_PAUSE_S, _PAUSE_FACTOR * (clock() - began)))

    # What is remembered

    def _memory(self, group: Group, id: str) -> Standing:
        def of(memories: dict[tuple[Group, int], int]) -> dict[int, int]:
            return {index: ms for index in range(len(self._shards)) if (ms := memories.get((group, index))) is not None}

        return Standing(
            id,
            at=_NOWHERE,
            since_ms=0,
            idle_since_ms=None,
            moved=True,
            left_at_ms=of(self._left_at_ms),
            barren_until_ms=of(self._barren_until_ms),
        )

    def _expect(self, id: str, group: Group, slots: int, shard: int, *, sent: bool = False) -> None:
        """``id`` is that of a registration here, or that of the one that it leaves where it was ``sent``."""
        registered_id = id if sent else with_shard(id, self._shards[shard])
        until_ms = self._clock.mono_ms() + _EXPECTED_FOR_MS
        kept = self._expected_of(group.token)[1 - _EXPECTED_MAX :]
        self._expected[group.token] = [*kept, _Expected(registered_id, group, slots, shard, until_ms, sent)]

    def _expected_of(self, token: str | None) -> Sequence[_Expected]:
        now_ms = self._clock.mono_ms()
        return [each for each in self._expected.get(token, ()) if each.until_ms > now_ms]

    def _forget(self, now_ms: int) -> None:
        """What is of no use any more, every few seconds."""
        if now_ms - self._forgot_at_ms < _TOLD_FOR_MS:
            return
        self._forgot_at_ms = now_ms
        self._workers = {
            id: worker for id, worker in self._workers.items() if now_ms - worker.seen_at_ms < _FORGOTTEN_AFTER_MS
        }
        self._expected = {token: left for token in self._expected if (left := list(self._expected_of(token)))}
        barren = {key: until_ms for key, until_ms in self._barren_until_ms.items() if until_ms > now_ms}
        self._barren_until_ms, self._left_at_ms = _newest(barren), _newest(self._left_at_ms)


def _of(processor: ProcessorRef) -> Group:
    return Group(processor.registered_by, processor.definitions)


def _newest(memories: dict[_Key, _Value]) -> dict[_Key, _Value]:
    return dict(list(memories.items())[-_MEMORIES_MAX:])
