"""Moves the units of caps and rates over all shards to where jobs wait, for as long as this replica leads the home.

`hascheduler.model.share` has the order in which a unit moves, and why it can't be used twice meanwhile. Here is which
shard gets it (`next_cap`, a pure function), and the loop that writes it down (`ShareKeeper`). The loop is not what
keeps a cap: each write is a compare-and-set on what it was worked out from, so two that run at once, or one that was
asleep, do no harm. A cap of which nothing was ever moved has no document: each shard uses an even share of it.

Who gets a unit: first the shards where jobs wait and nothing of the share is left, the one with the smallest share
first. What is not used elsewhere is taken for them; where all is used, the largest share gives to the smallest until
they are about equal, as jobs end. Of a cap that is smaller than the number of such shards single units go around.

Of a rate each shard keeps one unit at least. In use is what was taken of it lately, and all of it where jobs wait for
nothing but the next token: it fills as fast as it may.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.job import JobState
from hascheduler.model.share import ALL_JOBS, Grant, Share, SharedCap, definition_key, rate_key, rate_of_key, tier_key
from hascheduler.ports import Clock, ClusterView
from hascheduler.ports.sharding import CapStore, ShareStore, StoredCaps
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

CAPS_AT_ONCE_MAX = 200
"""Caps that one turn changes; the others come with the next."""
_TURN_S = 0.5
_LATELY = 3
"""Turns of which the most that ran counts as used: a share that rests between two jobs is not unused."""
_GOES_AROUND_MS = 5_000
_RATE_LEAST = 1
"""What each shard keeps of a rate."""
_HELD_MS = 3_000
"""What a shard got so lately is left there while jobs wait: they may need a unit of another cap too."""


@dataclass(frozen=True, slots=True)
class Use:
    """How many jobs of a cap are dispatched or running in a shard, or were dispatched lately by a rate; and how many
    wait there for nothing else."""

    running: int
    waiting: int


def next_cap(
    cap: SharedCap,
    limit: int,
    uses: Sequence[Use],
    released: Sequence[int],
    *,
    least: int = 0,
    may_go_around: bool = True,
) -> SharedCap:
    """The next revision of ``cap``, which is ``limit`` by now; ``cap`` itself where nothing is to be changed.

    ``released`` is the newest revision that each shard has released. Each shard keeps ``least``, or gets it first;
    ``limit`` is enough for that. ``may_go_around``: the last unit of a shard may go to another one in which none is.
    """
    grants = [
        Grant(grant.target, grant.target, grant.since) if grant.is_shrinking and at_rev >= grant.since else grant
        for grant, at_rev in zip(cap.grants, released, strict=True)
    ]
    targets = [grant.target for grant in grants]
    free = limit - sum(grant.granted for grant in grants)
    excess = sum(targets) - limit
    short = [use.waiting > 0 and use.running >= target for use, target in zip(uses, targets, strict=True)]
    above, below = [max(each - least, 0) for each in targets], [max(least - each, 0) for each in targets]
    if excess > 0:
        wanted = _lowered(targets, above, excess)
    elif free > 0:
        wanted = _raised(grants, uses, short, below, free)
    elif any(grant.is_shrinking for grant in grants):
        wanted = targets
    elif any(below):
        wanted = _lowered(targets, above, sum(below))
    else:
        wanted = _reclaimed(targets, uses, short, above, may_go_around=may_go_around)
    rev = cap.rev + 1
    changed = tuple(
        grant if grant.target == target else Grant(max(grant.granted, target), target, rev)
        for grant, target in zip(grants, wanted, strict=True)
    )
    return cap if (changed, limit) == (cap.grants, cap.cap) else SharedCap(cap.key, rev, limit, changed)


def first_cap(even: SharedCap, running: Sequence[int]) -> SharedCap:
    """The first one that is stored: ``even`` where no shard runs more than that. Where one does, as it was the only
    shard until now, or as the cap was lowered, it has what it runs until that has ended, and the others less."""
    shares = [grant.target for grant in even.grants]
    over = [max(used - share, 0) for used, share in zip(running, shares, strict=True)]
    room = [0 if more else share for share, more in zip(shares, over, strict=True)]
    free = max(even.cap - sum(used for used, more in zip(running, over, strict=True) if more), 0)
    left = _filled([0] * len(shares), room, free)
    grants = [
        Grant(used, share, even.rev) if more else Grant(some, some, even.rev)
        for used, share, more, some in zip(running, shares, over, left, strict=True)
    ]
    return replace(even, grants=tuple(grants))


def _uses_more(even: SharedCap, uses: Sequence[Use]) -> bool:
    return any(use.running > grant.target for use, grant in zip(uses, even.grants, strict=True))


def adopted(cap: SharedCap, shares: Sequence[Share | None]) -> SharedCap:
    """``cap`` where shards have later shares than it knows, as the home's database was put back to an earlier state:
    what they may be using is granted, and each gets a share of a later revision still."""
    rev = max([cap.rev, *(share.rev for share in shares if share is not None)]) + 1
    return replace(
        cap,
        rev=rev,
        grants=tuple(
            Grant(max(grant.granted, 0 if share is None else share.limit), grant.target, rev)
            for grant, share in zip(cap.grants, shares, strict=True)
        ),
    )


def _raised(
    grants: Sequence[Grant], uses: Sequence[Use], short: Sequence[bool], below: Sequence[int], free: int
) -> list[int]:
    """With ``free`` more: first what is ``below`` the least, then the smallest shares of those that are short, then the
    smallest of all. What a shard is about to give back is left to go."""
    room = [0 if grant.is_shrinking else free for grant in grants]
    needs = [min(use.waiting, most) if is_short else 0 for use, is_short, most in zip(uses, short, room, strict=True)]
    targets = [grant.target for grant in grants]
    for most in (below, needs, room):
        more = _filled(targets, most, free)
        free -= sum(more)
        targets = [target + each for target, each in zip(targets, more, strict=True)]
    return targets


def _reclaimed(
    targets: Sequence[int], uses: Sequence[Use], short: Sequence[bool], above: Sequence[int], *, may_go_around: bool
) -> list[int]:
    """Less for some, where others are short, of what is ``above`` the least."""
    if not any(short):
        return list(targets)
    spare = [
        0 if is_short else min(max(target - use.running, 0), most)
        for target, use, is_short, most in zip(targets, uses, short, above, strict=True)
    ]
    if any(spare):
        needed = sum(use.waiting for use, is_short in zip(uses, short, strict=True) if is_short)
        return _lowered(targets, spare, min(needed, sum(spare)))
    wanted = list(targets)
    rivals = [index for index, is_short in enumerate(short) if is_short]
    most, least = max(rivals, key=targets.__getitem__), min(rivals, key=targets.__getitem__)
    apart = targets[most] - targets[least]
    if apart > 1 or (apart == 1 and not targets[least] and may_go_around):
        wanted[most] -= max(apart // 2, 1)
    return wanted


def _lowered(targets: Sequence[int], spare: Sequence[int], less: int) -> list[int]:
    """With ``less`` in the sum, taken where the most is to spare."""
    kept = _filled([0] * len(spare), spare, sum(spare) - less)
    return [target - most + left for target, most, left in zip(targets, spare, kept, strict=True)]


def _filled(levels: Sequence[int], most: Sequence[int], amount: int) -> list[int]:
    """What each gets of ``amount``, at most ``most`` of it: the lowest level rises first, to an even height."""

    def up_to(height: int) -> list[int]:
        return [min(max(height - level, 0), room) for level, room in zip(levels, most, strict=True)]

    amount = min(amount, sum(most))
    low, high = 0, max(map(sum, zip(levels, most, strict=True)), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(up_to(middle)) <= amount else (low, middle - 1)
    filled, higher = up_to(low), up_to(low + 1)
    left = amount - sum(filled)
    for index, height in enumerate(higher):
        if left and height > filled[index]:
            filled[index], left = height, left - 1
    return filled


class CappedShard(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    @property
    def view(self) -> ClusterView: ...

    def nouns(self, collection: Collection) -> Mapping[str, Any]: ...

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]: ...

    def short_of(self) -> Set[str]: ...

    def tokens_taken(self) -> Mapping[str, int]: ...


class ShareKeeper:
    """Owner of how much of each share was used lately. ``shards`` are in the order of the routing, ``stores`` those of
    their shares; ``cap`` is that on all jobs together, None: there is none."""

    def __init__(
        self,
        caps: CapStore,
        stores: Sequence[ShareStore],
        shards: Sequence[CappedShard],
        cap: int | None,
        clock: Clock,
    ) -> None:
        self._caps = caps
        self._stores = stores
        self._shards = shards
        self._cap = cap
        self._clock = clock
        self._lately: dict[str, list[deque[Use]]] = {}
        self._raised_at: dict[tuple[str, int], int] = {}
        self._moved_at: dict[str, int] = {}
        self._reminders = Reminders()

    async def run(self) -> None:
        while True:
            await self.turn()
            await asyncio.sleep(_TURN_S)

    async def turn(self) -> None:
        """One look at all caps; what can't be written now is worked out again by the next."""
        home = self._shards[0].view
        wanted = self._wanted() if home.leading and home.ready else {}
        for table in (self._lately, self._moved_at):
            for key in table.keys() - wanted.keys():
                del table[key]
        if not wanted:
            self._raised_at.clear()
            return
        now = self._clock.mono_ms()
        try:
            stored = await self._caps.all()
            for key, why in stored.unreadable.items():
                self._warn("cap_unreadable", f"{key}: {why}", now)
            await self._move(wanted, stored, now)
            if not stored.unreadable:
                self._reminders.over()
        except StoreUnavailable as error:
            self._warn("shares_delayed", str(error), now)

    async def _move(self, wanted: Mapping[str, int], stored: StoredCaps, now: int) -> None:
        known = {cap.key: cap for cap in stored.caps}
        uses, short, changes = self._uses(wanted), [shard.short_of() for shard in self._shards], 0
        for key, limit in wanted.items():
            cap = known.get(key) or SharedCap.even(key, limit, len(self._shards))
            missing = len(self._shards) - len(cap.grants)
            if key in stored.unreadable or missing < 0:
                continue
            cap = replace(cap, grants=cap.grants + (Grant(0, 0, cap.rev),) * missing)
            changed = self._next(cap, limit, uses[key], short, now) if changes < CAPS_AT_ONCE_MAX else cap
            # Of a rate a shard can't use more than it has: that begins even.
            begins_even = rate_of_key(key) is not None
            is_new = key not in known and not begins_even and _uses_more(cap, uses[key])
            if changed is not cap or is_new:
                changes += 1
                if key not in known:
                    # What holds anyway is written down first; what is to be moved comes with the next turn.
                    changed = cap if begins_even else first_cap(cap, [use.running for use in uses[key]])
                if not await (self._caps.replace(cap.rev, changed) if key in known else self._caps.create(changed)):
                    continue  # another one was first
                self._moved_at[key] = now
                for index, (before, after) in enumerate(zip(cap.grants, changed.grants, strict=True)):
                    if after.target > before.target:
                        self._raised_at[key, index] = now
                log.debug("share_moved", cap=key, grants=[grant.target for grant in changed.grants])
            elif key not in known:
                continue
            await self._put(changed)

    def _next(self, cap: SharedCap, limit: int, uses: Sequence[Use], short: Sequence[Set[str]], now: int) -> SharedCap:
        is_rate = rate_of_key(cap.key) is not None
        lately = self._lately.setdefault(cap.key, [deque(maxlen=_LATELY) for _ in self._shards])
        counted = []
        for index, (use, grant) in enumerate(zip(uses, cap.grants, strict=True)):
            seen = lately[index]
            seen.append(use)
            if len(seen) < _LATELY or not self._shards[index].view.ready:
                counted.append(Use(grant.target, 0))  # it keeps what it has
                continue
            running = max(each.running for each in seen)
            if is_rate and cap.key in short[index]:
                running = max(running, grant.target)  # no token is left, and each that comes is taken
            # Where it does not yet run what it may, it was short of what it had before.
            waiting = use.waiting if running >= grant.target and cap.key in short[index] else 0
            is_held = use.waiting and now - self._raised_at.get((cap.key, index), now - _HELD_MS) < _HELD_MS
            counted.append(Use(grant.target if is_held else running, waiting))
        shares: list[Share | None] = [shard.nouns(Collection.SHARES).get(cap.key) for shard in self._shards]
        if any(share is not None and share.rev > cap.rev for share in shares):
            return adopted(cap, shares)
        released = [0 if share is None else share.released for share in shares]
        rests = now - self._moved_at.get(cap.key, now) < _GOES_AROUND_MS
        least = _RATE_LEAST if is_rate else 0
        return next_cap(cap, limit, counted, released, least=least, may_go_around=not rests)

    async def _put(self, cap: SharedCap) -> None:
        """Write the shares that a shard's mirror does not show: they have just changed, or this broke off before, or
        the shard's database is an older one."""
        for store, shard, share in zip(self._stores, self._shards, cap.shares(), strict=True):
            there: Share | None = shard.nouns(Collection.SHARES).get(cap.key)
            if shard.view.ready and (there is None or there.rev < share.rev):
                await store.put(share)

    # What there is

    def _wanted(self) -> Mapping[str, int]:
        """The caps and rates over all shards, by key. A rate of which some shard would have nothing is left as it is:
        it is from before there were as many shards."""
        definitions: Mapping[str, Definition] = self._shards[0].nouns(Collection.DEFINITIONS)
        wanted = {} if self._cap is None else {ALL_JOBS: self._cap}
        for name, definition in definitions.items():
            if definition.max_concurrency is not None:
                wanted[definition_key(name)] = definition.max_concurrency
            if definition.tier is not None:
                wanted[tier_key(definition.tier)] = definition.tier
            rate = definition.rate_limit
            if rate is not None and rate.count >= len(self._shards) * _RATE_LEAST:
                wanted[rate_key(name)] = rate.count
        return wanted

    def _uses(self, wanted: Mapping[str, int]) -> Mapping[str, Sequence[Use]]:
        """By key: the use of each shard, as this replica's mirrors show it."""
        definitions: Mapping[str, Definition] = self._shards[0].nouns(Collection.DEFINITIONS)
        found = {key: [Use(0, 0) for _ in self._shards] for key in wanted}
        for index, shard in enumerate(self._shards):
            for name, taken in shard.tokens_taken().items():
                if rate_key(name) in found:
                    found[rate_key(name)][index] = Use(taken, 0)
            for name, of_state in shard.live_jobs().items():
                running = of_state.get(JobState.DISPATCHED, 0) + of_state.get(JobState.RUNNING, 0)
                waiting = of_state.get(JobState.PENDING, 0)
                definition = definitions.get(name)
                tier = None if definition is None else definition.tier
                for key in (ALL_JOBS, definition_key(name), "" if tier is None else tier_key(tier)):
                    if key in found:
                        before = found[key][index]
                        found[key][index] = Use(before.running + running, before.waiting + waiting)
                if rate_key(name) in found:
                    found[rate_key(name)][index] = Use(found[rate_key(name)][index].running, waiting)
        return found

    def _warn(self, event: str, why: str, now: int) -> None:
        if self._reminders.is_due(why, now):
            log.warning(event, error=why)
