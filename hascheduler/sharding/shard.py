"""One shard as this process has it: followed, with a replica of its own, or heard of from others.

The process has one of these for each shard, for as long as it lives, and everything that goes over all shards has the
same: whether it is followed at the moment is decided here alone. What a replica has begun to follow is answered from
its mirror once that is complete; until then it counts as heard of.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol, TypeVar, overload

from hascheduler.model.collection import Collection
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.replica import ReplicaStatus, ShardReport
from hascheduler.ports import ClusterView, EventFeed
from hascheduler.sharding.distant import DistantView
from hascheduler.sharding.reports import ShardReports, report_of

_Of = TypeVar("_Of")


class FollowingReplica(Protocol):
    """`hascheduler.daemon.replica.Replica`, as far as it is used here."""

    events: Any
    view: Any

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    def forget(self) -> None: ...

    @property
    def shard(self) -> str: ...

    @property
    def lease_holder(self) -> str: ...

    def nouns(self, collection: Collection) -> Mapping[str, Any]: ...

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]: ...

    def short_of(self) -> frozenset[str]: ...

    def kept_aside(self, slot: int) -> int: ...

    def live_replicas(self) -> Sequence[ReplicaStatus]: ...

    def hurry(self) -> None: ...

    def leave_first_try_ms(self, delay_ms: int) -> None: ...

    def expect_lease(self, *, expected: bool) -> None: ...

    async def hand_over(self) -> None: ...


class Shard:
    """Owner of the replica that follows it here, if one does. ``make`` makes one that has not begun; ``reports`` is
    None where the shard is followed for ever."""

    def __init__(
        self,
        shard: str,
        make: Callable[[], FollowingReplica],
        reports: ShardReports | None,
        home: "Shard | None" = None,
    ) -> None:
        self.shard = shard
        self._make = make
        self._distant = None if reports is None or home is None else DistantView(shard, reports, home.view)
        self._listeners: list[Callable[[Any], None]] = []
        self._stored_holds: Mapping[str, Hold] = {}
        self._was_ready = False
        self._is_ending = False
        self.is_leaving = False
        """It is about to be followed no more, and the heartbeat says so; still it is."""
        self.replica: FollowingReplica | None = make() if self._distant is None else None

    @property
    def distant(self) -> DistantView:
        """What others tell of it, for a shard that is not followed for ever."""
        assert self._distant is not None
        return self._distant

    # Whether it is followed

    @property
    def is_followed(self) -> bool:
        """Its answers are this process's own."""
        if self._distant is None:
            return True
        if self.replica is None or self._is_ending:
            return False
        self._was_ready = self._was_ready or self.replica.view.ready
        return self._was_ready

    def when_followed(self, listener: Callable[[Any], None]) -> None:
        """Call ``listener`` with each replica that follows the shard here, before it runs, and with None once it has
        ended."""
        self._listeners.append(listener)
        if self.replica is not None:
            listener(self.replica)

    def begin(self) -> FollowingReplica:
        """The replica that follows it from now on, to be run by the caller."""
        assert self.replica is None
        self.replica = self._make()
        for listener in self._listeners:
            listener(self.replica)
        return self.replica

    def leave(self) -> None:
        """Answer from what others tell from now on; the replica is to be stopped, and `gone` when it has ended."""
        self._is_ending = True
        if self.replica is not None:
            self.replica.stop()

    def gone(self) -> None:
        """Keep nothing of the replica that has ended: its mirror is what takes memory."""
        if self.replica is not None:
            self.replica.forget()
        self.replica = None
        self._was_ready = self._is_ending = self.is_leaving = False
        for listener in self._listeners:
            listener(None)

    def report(self) -> ShardReport | None:
        """What this process tells of it; None: it does not follow it."""
        return None if self.replica is None or self._is_ending else report_of(self.replica, leaving=self.is_leaving)

    def keep_holds(self, holds: Mapping[str, Hold] | None) -> None:
        """Keep the holds that its database has, for as long as no mirror here shows them; None: they were not read."""
        self._stored_holds = holds or {}
        if self._distant is not None:
            self._distant.holds_are_read = holds is not None

    @property
    def _own(self) -> FollowingReplica | None:
        return self.replica if self.is_followed else None

    # As `Replica`

    @property
    def view(self) -> ClusterView:
        view: ClusterView = self.distant if self._own is None else self._own.view
        return view

    @property
    def events(self) -> EventFeed | None:
        """None: it is not followed here."""
        return None if self._own is None else self._own.events

    @property
    def lease_holder(self) -> str:
        return "" if self.replica is None else self.replica.lease_holder

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        """Of a shard that is not followed holds alone, as they were read last."""
        if self._own is not None:
            return self._own.nouns(collection)
        return self._stored_holds if collection is Collection.HOLDS else {}

    def live_jobs(self) -> Mapping[str, Mapping[str, int]]:
        return self.distant.led.definitions if self._own is None else self._own.live_jobs()

    def short_of(self) -> Set[str]:
        return frozenset(self.distant.led.short_of) if self._own is None else self._own.short_of()

    def kept_aside(self, slot: int) -> int:
        if self._own is not None:
            return self._own.kept_aside(slot)
        return self.distant.led.kept_aside.get(partition_key(slot), 0)

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        return () if self.replica is None else self.replica.live_replicas()

    def hurry(self) -> None:
        if self.replica is not None:
            self.replica.hurry()

    def leave_first_try_ms(self, delay_ms: int) -> None:
        if self.replica is not None:
            self.replica.leave_first_try_ms(delay_ms)

    def expect_lease(self, *, expected: bool) -> None:
        if self.replica is not None:
            self.replica.expect_lease(expected=expected)

    async def hand_over(self) -> None:
        if self.replica is not None:
            await self.replica.hand_over()


class EachNow(Sequence[_Of]):
    """Something of each shard, as it is at the moment of each look."""

    def __init__(self, shards: Sequence[Shard], of: Callable[[int, Shard], _Of]) -> None:
        self._shards = shards
        self._of = of

    @overload
    def __getitem__(self, index: int) -> _Of: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[_Of]: ...

    def __getitem__(self, index: int | slice) -> _Of | Sequence[_Of]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        return self._of(index, self._shards[index])

    def __len__(self) -> int:
        return len(self._shards)


class KnownShard:
    """`hascheduler.sharding.moves.MovedShard` where not all follow all: there ``live_replicas`` are those that know the
    shard, that is route to it. Which of them follow it is up to `Following`, and `view` says whether one is ready."""

    def __init__(self, index: int, shard: Shard, reports: ShardReports) -> None:
        self._index = index
        self._shard = shard
        self._reports = reports

    @property
    def shard(self) -> str:
        return self._shard.shard

    @property
    def view(self) -> ClusterView:
        return self._shard.view

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        return self._shard.nouns(collection)

    def kept_aside(self, slot: int) -> int:
        return self._shard.kept_aside(slot)

    def hurry(self) -> None:
        self._shard.hurry()

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        following = {status.id for status in self._shard.live_replicas()}
        return [
            status
            for status in self._reports.live()
            if self._index == 0 or status.id in following or (status.shards or 0) > self._index
        ]
