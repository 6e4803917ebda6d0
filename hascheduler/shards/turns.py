"""Caps below the number of shards: each is whole in one shard at a time, and goes round the shards that want it.

The home has one document per cap: the owner, whether it is giving the cap away, and who wants it. Each shard has a hold
on the cap: held, its core starts nothing that counts against the cap; lifted, it has all of it. Without such a hold the
first shard has all of it, and the others have nothing. The leader of a shard takes its steps::

    document                   the shard            its step
    owner: another             lacks the cap        adds itself to ``wanted``
    owner: it                                       lifts its hold, at this revision
    owner: it                  others want the cap  marks it ``giving``, at the next revision
    owner: it, giving                               puts its hold, at this revision
    owner: it, giving          released its hold    makes the next that wants it the owner, at the next revision

*Two shards never have one cap.* A hold is lifted by its shard's leader alone, at a revision r at which the document
named the shard as owner. The document can't have passed r + 1 (*giving*) by then: it goes on only after a release at
r + 1, the hold of r + 1 is put before that, and from then on the store refuses one of r. So the shard of a lifted hold
is the owner in the document. The owner changes only after the release: nothing that counts against the cap runs there
or is promised, and no leader of that shard starts any until a later revision lifts the hold. Revisions come from the
document alone, which changes by compare-and-set: a process that stalled, or no longer leads, puts an earlier one. So
neither documents nor holds are ever deleted; there are as many as there ever were caps that small.

*Nobody waits forever.* Those who want the cap get it in the order of shards. The owner gives it at once if none of its
jobs waits for any such cap, else after a while. A job may need several: a shard that lacks one keeps those after it, in
the order of their keys, only shortly, so of two shards that each have what the other lacks one gets both.

If the home alone was restored to an earlier state, a hold that is ahead of the document stays as it is.

A shard without partitions gets the first one only if every shard keeps to its part of each cap (`keeps_to_parts`). A
deployment that has just grown may still run the whole cap in the old shards, and nothing that runs is stopped. Every
core has the new parts once all replicas know all shards, so the excess only shrinks.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from pymongo.errors import DuplicateKeyError

from hascheduler.daemon.replica import Replica
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.collection import Collection as Stored
from hascheduler.model.job import OCCUPYING
from hascheduler.model.partition import Hold
from hascheduler.model.values.fields import identifier, positive, text
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.ports import Clock
from hascheduler.ports.leadership import HoldStore
from hascheduler.schema.definition import Definition
from hascheduler.shards.repeating import repeat

log = structlog.get_logger(__name__)

_TURN_S = 0.2
_KEPT_MS = 5_000
"""How long an owner keeps the cap while its jobs wait."""
_KEPT_IN_VAIN_MS = 1_000
"""The same if they may wait for a cap that comes before this one."""


@dataclass(frozen=True, slots=True)
class CapTurn:
    """The turn of one cap. ``rev`` grows with each change of ``owner`` or ``is_giving``."""

    key: str
    rev: int
    owner: str
    is_giving: bool = False
    wanted: frozenset[str] = frozenset()


class MongoTurnStore:
    """The turns in the home. Every write is acknowledged by a majority."""

    def __init__(self, home: Database) -> None:
        self._turns = home["turns"].with_options(write_concern=MAJORITY)

    async def read(self, keys: Collection[str], owners: Collection[str]) -> Sequence[CapTurn]:
        """Return the readable turns of these caps, and those of these owners that anybody wants."""
        wanted = {"owner": {"$in": sorted(owners)}, "wanted.0": {"$exists": True}}
        with faults("read the turns of caps"):
            found = await self._turns.find({"$or": [{"_id": {"$in": sorted(keys)}}, wanted]}).to_list(None)
        return readable_turns(found)

    async def want(self, key: str, shard: str, first: str) -> None:
        """Add the shard to those that want the cap; ``first`` is the owner if nobody wanted it until now."""
        made = {"rev": 1, "owner": first, "giving": False}
        change: dict[str, Any] = {"$setOnInsert": made, "$addToSet": {"wanted": shard}}
        with faults("request a cap"):
            for _ in range(2):  # the first try may race with another insert
                with suppress(DuplicateKeyError):
                    await self._turns.update_one({"_id": key}, change, upsert=True)
                    return

    async def replace(self, before: CapTurn, after: CapTurn) -> bool:
        """Change the owner, ``is_giving`` and the revision; return False if the revision has changed since ``before``.

        A new owner no longer wants the cap.
        """
        now = {"rev": after.rev, "owner": after.owner, "giving": after.is_giving}
        change = {"$set": now} if after.owner == before.owner else {"$set": now, "$pull": {"wanted": after.owner}}
        with faults("change the owner of a cap"):
            done = await self._turns.update_one({"_id": before.key, "rev": before.rev}, change)
        return done.matched_count == 1


@dataclass(eq=False)
class CapTurns:
    """Owner of when the shards that this process leads got their caps.

    ``holds`` are the stores of ``shards``, in their order; ``hosted`` returns the replicas of those hosted now.
    """

    turns: MongoTurnStore
    shards: Sequence[str]
    holds: Sequence[HoldStore]
    hosted: Callable[[], Sequence[Replica]]
    clock: Clock
    _since: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        await repeat(self.turn, lambda: _TURN_S, "turns_delayed")

    async def turn(self) -> None:
        """Take the next step of each cap; raise an error of one shard once all others had their turn."""
        led = {replica.scheduler: replica for replica in self.hosted() if replica.view.leading}
        if not led:
            return
        short = {name: frozenset(replica.short_of()) for name, replica in led.items()}
        turns = {each.key: each for each in await self.turns.read(frozenset().union(*short.values()), led)}
        self._since = {key: since for key, since in self._since.items() if key in turns}
        failed: WorldError | None = None
        for name, replica in led.items():
            try:
                for key in short[name]:
                    turn = turns.get(key) or CapTurn(key, 0, self.shards[0])
                    if name != turn.owner and name not in turn.wanted:
                        await self.turns.want(key, name, self.shards[0])
                for turn in turns.values():
                    if name == turn.owner:
                        await self._step(turn, replica.nouns(Stored.HOLDS).get(turn.key), short[name])
            except WorldError as error:
                failed = error
        if failed is not None:
            raise failed

    async def _step(self, turn: CapTurn, hold: Hold | None, short: Collection[str]) -> None:
        """Take the owner's next step; ``hold`` is its hold as this process has seen it."""
        store, others = self.holds[self.shards.index(turn.owner)], turn.wanted - {turn.owner}
        seen_rev = 0 if hold is None else hold.rev
        has_it = turn.owner == self.shards[0] if hold is None else seen_rev == turn.rev
        if turn.is_giving and seen_rev < turn.rev:
            await store.put(Hold(turn.key, turn.rev, is_held=True))
        elif turn.is_giving:
            if hold is not None and hold.is_released and seen_rev == turn.rev:
                given = replace(turn, rev=turn.rev + 1, owner=self._next(turn.owner, others), is_giving=False)
                await self.turns.replace(turn, given)
        elif others and not self._keeps(turn, short, has_it=has_it):
            giving = replace(turn, rev=turn.rev + 1, is_giving=True)
            if await self.turns.replace(turn, giving):
                await store.put(Hold(turn.key, giving.rev, is_held=True))
        elif not has_it and seen_rev < turn.rev:
            await store.put(Hold(turn.key, turn.rev, is_held=False))

    def _keeps(self, turn: CapTurn, short: Collection[str], *, has_it: bool) -> bool:
        """Return True if the owner keeps the cap although others want it."""
        now = self.clock.mono_ms()
        rev, since = self._since.get(turn.key, (0, now))
        if rev != turn.rev or not has_it:
            self._since[turn.key] = turn.rev, (since := now)
        return bool(short) and now - since < (_KEPT_IN_VAIN_MS if min(short) < turn.key else _KEPT_MS)

    def _next(self, owner: str, wanted: Collection[str]) -> str:
        """Return the first shard after the owner, in the round of shards, that wants the cap."""
        at = self.shards.index(owner)
        return next((each for each in (*self.shards[at + 1 :], *self.shards[:at]) if each in wanted), owner)


def readable_turns(documents: Iterable[Mapping[str, Any]]) -> Sequence[CapTurn]:
    """Return the turns that can be read; a cap whose document was damaged by hand stays where it is."""
    turns = []
    for document in documents:
        try:
            key, rev, owner = identifier(document["_id"]), positive(document, "rev"), text(document, "owner")
            wanted = frozenset(map(identifier, document.get("wanted") or ()))
            turns.append(CapTurn(key, rev, owner, document.get("giving") is True, wanted))
        except (InvalidInput, TypeError) as error:
            log.warning("turn_unreadable", error=str(error))
    return turns


async def keeps_to_parts(
    shards: Sequence[Database], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> bool:
    """Return True if no shard runs more jobs than its part of any cap that is divided evenly.

    A smaller cap is in one shard at a time, so a new shard does not have it yet.
    """
    for index, shard in enumerate(shards):
        for running, cap in _counted(await _running(shard), definitions, max_concurrency):
            part = cap // len(shards) + (index < cap % len(shards))
            if cap >= len(shards) and running > part:
                return False
    return True


def _counted(
    running: Mapping[str, int], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> Iterator[tuple[int, int]]:
    """Yield, for each cap, how many running jobs count against it, and the cap."""
    of_tier = Counter[int]()
    for name, count in running.items():
        definition = definitions.get(name, Definition(name=name))
        if definition.max_concurrency is not None:
            yield count, definition.max_concurrency
        if definition.tier is not None:
            of_tier[definition.tier] += count
    yield from ((count, tier) for tier, count in of_tier.items())
    if max_concurrency is not None:
        yield sum(running.values()), max_concurrency


async def _running(shard: Database) -> Mapping[str, int]:
    """Return how many jobs of each definition have a slot."""
    with_slot: list[Any] = [{"$match": {"state": {"$in": sorted(OCCUPYING)}}}, {"$sortByCount": "$definition"}]
    with faults("count running jobs"):
        cursor = await awaited(shard[Stored.JOBS.value].aggregate(with_slot))
        return {str(each["_id"]): int(each["count"]) for each in await cursor.to_list(None)}
