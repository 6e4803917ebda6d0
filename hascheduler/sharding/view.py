"""What this replica sees of all shards together: each answer is one shard's, or the sum, or the worst of all.

What people define (definitions, lanes, calendars, tenants, tokens) is looked up in the home, where it is written.
Nothing is read from a database, and nothing waits. Of shards that this replica does not follow the answer is what
others told (`hascheduler.sharding.distant`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as SomeOf
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from hascheduler.dispatch.explanation import Explanation
from hascheduler.errors import NotFollowedHere
from hascheduler.model.job import schedule_of
from hascheduler.model.processor import ANY_DEFINITION, ProcessorRef, overlap
from hascheduler.model.routing import slot_in
from hascheduler.model.schedule import ScheduleRef
from hascheduler.ports import Cluster, ClusterView, Gauges, LeaderLag, Recording, ShardStatus, Waiter
from hascheduler.sharding.distant import DefinedInHome, DistantView
from hascheduler.sharding.places import ShardPlaces

_QUARANTINE_SHOWN_MAX = 100
_Known = TypeVar("_Known")


class ShardedView(DefinedInHome):
    """`hascheduler.ports.ClusterView` over one view a shard, the home's first.

    It is ready once all shards were, and from then on while the home is: a shard that is away then takes nothing of
    the others away.
    """

    def __init__(
        self,
        places: ShardPlaces,
        shards: Sequence[ClusterView],
        *,
        followers: Callable[[str], Sequence[str]] = lambda _: (),
        unsettled: Callable[[], str] = lambda: "",
    ) -> None:
        """``followers`` gives the names of the replicas that follow a shard, ``unsettled`` why this one does not follow
        yet what it should."""
        super().__init__(shards[0])
        self._places = places
        self._shards = shards
        self._followers = followers
        self._unsettled = unsettled
        self._was_ready: set[int] = set()

    # One job, one processor, one tenant

    def job_end_waiter(self, job_id: str) -> AbstractContextManager[Waiter]:
        return _any_of([shard.job_end_waiter(job_id) for shard in self._likely(job_id)])

    def dispatch_waiter(self, processor_id: str) -> AbstractContextManager[Waiter]:
        knowing = [shard for shard in self._shards if shard.processor(processor_id) is not None]
        return _any_of([shard.dispatch_waiter(processor_id) for shard in knowing or self._shards])

    def dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        return [key for shard in self._shards for key in shard.dispatched_attempts(processor_id)]

    def processor(self, id: str) -> ProcessorRef | None:
        """`NotFollowedHere` for one of a shard that this replica does not follow."""
        return _first(shard.processor(id) for shard in self._shards)

    def occupied(self, processor_id: str) -> int:
        return sum(shard.occupied(processor_id) for shard in self._shards)

    def processors(self) -> Iterable[ProcessorRef]:
        return chain.from_iterable(shard.processors() for shard in self._shards)

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        return _first(shard.explain(job_id, only) for shard in self._likely(job_id))

    def pending(self, tenant: str | None = None) -> int:
        return sum(shard.pending(tenant) for shard in self._places.meant(self._shards, tenant))

    def dependencies(self) -> int:
        return sum(shard.dependencies() for shard in self._shards)

    def runnable(self) -> int:
        return sum(shard.runnable() for shard in self._shards)

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        meant = self._places.meant(self._shards, tenant)
        return _summed(shard.live_jobs(definition=definition, tenant=tenant) for shard in meant)

    def shard_for(self, definitions: frozenset[str]) -> str:
        """The name of the shard that lacks a processor of these definitions the most: with the most jobs of them for
        each slot, and among equals with the fewest slots."""

        def need(index: int) -> tuple[float, int]:
            shard = self._shards[index]
            # Of a shard that others follow it is not known what its slots are for.
            slots = (
                shard.slots
                if isinstance(shard, DistantView)
                else sum(each.slots for each in shard.processors() if overlap(definitions, each.definitions))
            )
            named = [None] if ANY_DEFINITION in definitions else sorted(definitions)
            waiting = sum(_pending(shard, name) for name in named)
            return (waiting / (slots or 0.5), -slots)

        return self._places.shards[max(range(len(self._shards)), key=need)]

    # All shards together

    def unseen_shards(self, tenant: str | None = None) -> SomeOf[str]:
        return [name for shard in self._places.meant(self._shards, tenant) for name in shard.unseen_shards()]

    def schedules(self) -> Mapping[str, ScheduleRef]:
        return _OfAll([shard.schedules() for shard in self._shards])

    def schedules_on(self, calendar: str) -> list[str]:
        return sorted(chain.from_iterable(shard.schedules_on(calendar) for shard in self._shards))

    def unschedulable(self) -> SomeOf[str]:
        return frozenset(chain.from_iterable(shard.unschedulable() for shard in self._shards))

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        known = [shard.learned_cost_ms(definition, target) for shard in self._shards]
        return max((cost_ms for cost_ms in known if cost_ms is not None), default=None)

    def cluster(self) -> Cluster:
        found = [shard.cluster() for shard in self._shards]
        home = found[0]
        counts = _summed(each.counts for each in found)
        return replace(
            home,
            leading=any(each.leading for each in found),
            ready=self.ready,
            processors=sorted(chain.from_iterable(each.processors for each in found), key=lambda row: row[0].id),
            rests={id: rest for each in found for id, rest in each.rests.items()},
            counts={**counts, "definitions": home.counts["definitions"]},
            quarantine=list(chain.from_iterable(each.quarantine for each in found))[:_QUARANTINE_SHOWN_MAX],
            quarantined=sum(each.quarantined for each in found),
            differing=sorted(set(chain.from_iterable(each.differing for each in found))),
            shards=[
                _status(name, each, shard, self._followers(name))
                for name, each, shard in zip(self._places.shards, found, self._shards, strict=True)
            ],
        )

    def gauges(self) -> Gauges:
        found = [shard.gauges() for shard in self._shards]
        home = found[0]
        return replace(
            home,
            leading=any(each.leading for each in found),
            ready=self.ready,
            term=_worst(each.term for each in found),
            stream_lag_ms=_worst(each.stream_lag_ms for each in found),
            decision_lag_ms=_worst(each.decision_lag_ms for each in found),
            loop_age_ms=max(each.loop_age_ms for each in found),
            quarantined=sum(each.quarantined for each in found),
            broker_accepting=all(each.broker_accepting for each in found),
            jobs=_summed(each.jobs for each in found),
            jobs_of_definition=_tables(each.jobs_of_definition for each in found),
            jobs_of_lane=_tables(each.jobs_of_lane for each in found),
            jobs_of_tenant=_tables(each.jobs_of_tenant for each in found),
            unschedulable=sum(each.unschedulable for each in found),
            dependencies=sum(each.dependencies for each in found),
            waited_ms=_worsts(each.waited_ms for each in found),
            schedules=_summed(each.schedules for each in found),
            processors=_summed(each.processors for each in found),
            unable=_summed(each.unable for each in found),
            slots=_summed(each.slots for each in found),
            events_per_s=_summed(each.events_per_s for each in found),
            findings=_findings(each.findings for each in found),
            mirrors_differ=sum(each.mirrors_differ for each in found),
            shards=len(found),
            shards_led=sum(each.leading for each in found),
            shards_followed=sum(not shard.unseen_shards() for shard in self._shards),
        )

    def record(self, for_ms: int) -> Recording | None:
        """Of the first shard that this replica leads."""
        return _first(shard.record(for_ms) for shard in self._shards)

    @property
    def ready(self) -> bool:
        return not self.unready_reason

    @property
    def unready_reason(self) -> str:
        for index, shard in enumerate(self._shards):
            if (index and index in self._was_ready) or shard.unseen_shards():
                continue
            reason = shard.unready_reason
            if reason:
                return f"shard {self._places.shards[index]}: {reason}" if index else reason
            self._was_ready.add(index)
        return self._unsettled()

    @property
    def leader_lag(self) -> LeaderLag:
        lags = [shard.leader_lag for shard in self._shards]
        return LeaderLag(
            max(lag.now_ms for lag in lags), max(lag.least_ms for lag in lags), max(lag.busy for lag in lags)
        )

    @property
    def leading(self) -> bool:
        return any(shard.leading for shard in self._shards)

    @property
    def stopping(self) -> bool:
        return any(shard.stopping for shard in self._shards)

    @property
    def alive(self) -> bool:
        return all(shard.alive for shard in self._shards)

    def _likely(self, job_id: str) -> Sequence[ClusterView]:
        """The shard that the id of a submitted job tells, or that has the schedule by now whose job it is; else all."""
        slot = slot_in(job_id)
        if slot is not None:
            return [self._shards[self._places.of_slot(slot)]]
        schedule = schedule_of(job_id)
        having = [shard for shard in self._shards if schedule is not None and schedule in shard.schedules()]
        return [*having, *(shard for shard in self._shards if shard not in having)]


@contextmanager
def _any_of(waiters: Sequence[AbstractContextManager[Waiter]]) -> Iterator[Waiter]:
    with ExitStack() as held:
        entered = [held.enter_context(waiter) for waiter in waiters]
        yield entered[0] if len(entered) == 1 else _AnyWaiter(entered)


class _AnyWaiter:
    """`hascheduler.ports.Waiter` for news of any of several shards."""

    def __init__(self, waiters: Sequence[Waiter]) -> None:
        self._waiters = waiters

    async def wait(self) -> bool:
        looks = [asyncio.create_task(waiter.wait(), name="any-shard") for waiter in self._waiters]
        try:
            done, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for look in looks:
                look.cancel()
        return all(look.result() for look in done)


class _OfAll(Mapping[str, _Known]):
    """Mappings without a common key, as one; nothing is copied."""

    def __init__(self, parts: Sequence[Mapping[str, _Known]]) -> None:
        self._parts = parts

    def __getitem__(self, key: str) -> _Known:
        for part in self._parts:
            if key in part:
                return part[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


def _first(found: Iterable[_Known | None]) -> _Known | None:
    return next((each for each in found if each is not None), None)


def _worst(found: Iterable[int | None]) -> int | None:
    return max((each for each in found if each is not None), default=None)


def _summed(found: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for counts in found:
        total.update(counts)
    return dict(total)


def _worsts(found: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    worst: dict[str, int] = {}
    for each in found:
        for name, value in each.items():
            worst[name] = max(value, worst.get(name, value))
    return worst


def _tables(found: Iterable[Mapping[str, Mapping[str, int]]]) -> Mapping[str, Mapping[str, int]]:
    total: dict[str, Mapping[str, int]] = {}
    for table in found:
        for name, counts in table.items():
            total[name] = _summed((total[name], counts)) if name in total else counts
    return total


def _findings(found: Iterable[Mapping[str, int] | None]) -> Mapping[str, int] | None:
    looked = [each for each in found if each is not None]
    return _summed(looked) if looked else None


def _pending(shard: ClusterView, definition: str | None) -> int:
    try:
        return shard.live_jobs(definition=definition).get("pending", 0)
    except NotFollowedHere:
        return 0


def _status(name: str, cluster: Cluster, view: ClusterView, followers: Sequence[str]) -> ShardStatus:
    return ShardStatus(
        name=name,
        lease=cluster.lease,
        journal=cluster.journal,
        leading=cluster.leading,
        unready_reason=view.unready_reason,
        stream_lag_ms=cluster.stream_lag_ms,
        counts=cluster.counts,
        processors=view.processors_live
        if isinstance(view, DistantView)
        else sum(is_live for _, _, is_live in cluster.processors),
        followers=followers,
        followed=not view.unseen_shards(),
    )
