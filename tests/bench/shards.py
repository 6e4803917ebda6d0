"""What several shards cost, and whom it disturbs that one replica leads two of them and is lost.

*CPU*: jobs that do nothing are submitted one by one over HTTP at a steady rate, for many tenants in turns, as many of
them in each shard: first where one shard has them all, then where four share them, each at every rate. CPU is the
kernel's account of all replicas, processors and servers, without what the load costs itself; *ratios* are the figures
with four shards divided by those with one, within one run, as machines differ.

*A takeover*: schedules of tenants in all shards fire every second, so many that in each shard something is due every
few dozen ms, and so few that the machine has room. The replica that leads two shards gets SIGKILL. ``dispatch_…`` is
from the signal to the first dispatch of the next term in each of its two shards, by the journal; so two for each kill.
``others_…`` are the lags of fires of the shards that it did not lead, from the nominal time to the start of the
handler, by the handler's own clock: of those due in the second before the signal, and of those due in the second after
it. In that second the lost replica is not started again, as that would be a disturbance of its own. Then it is, and
its two shards are handed back to it: ``returned_…`` is from the last dispatch of the leader before to its first, the
time to the next fire included.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from signal import SIGKILL
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effect, Effects
from hascheduler.election.preferences import preferred_leaders
from hascheduler.embedded.stack import Stack
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.partition import shard_database, shard_name
from hascheduler.shards.layout import Layout
from hascheduler.simulate.report import percentile
from tests.bench.cast import Cast, cpu_s, leading, servers
from tests.bench.failover import dispatch_pause_ms, journal_end, next_dispatch
from tests.bench.figures import Figures
from tests.bench.load import Load, loading
from tests.bench.made_schedules import interval_bodies, make_schedules
from tests.bench.stacks import DATABASE, Crew, on_stack

SHARDS = 4
REPLICAS = 3
"""So one of them leads two shards."""
PROCESSORS = 4
ONE, SEVERAL, RATIOS, KILLED = "1 shard", f"{SHARDS} shards", f"{SHARDS} shards to 1", "a replica with 2 shards"
_KINDS = ("replica", "processor", "mongod", "rabbitmq")
_REBALANCE_AFTER = "1s"
"""A replica that was killed soon has its shards again."""
_SETTLE_S = 5
_WARM_UP_S = 5
_TAIL_S = 1
_QUIET_S = 2.5
_SPAN_MS = 1_000
"""In which each schedule is due once."""
_PATIENCE_S = 60
_FIRES_MIN = 10 * SHARDS
"""Where less is due, another leads long before anything shows it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Each of ``rates`` of jobs a second for so many ``tenants``, observed for ``seconds``; then ``fires_per_s`` and so
    many ``kills``, which may be 0."""

    rates: Sequence[int]
    seconds: int
    tenants: int
    fires_per_s: int
    kills: int
    slots: int

    def __post_init__(self) -> None:
        if self.tenants % SHARDS:
            raise InvalidInput(("--tenants",), f"{self.tenants}", f"a multiple of {SHARDS}, as many in each shard")
        if self.fires_per_s < _FIRES_MIN:
            raise InvalidInput(
                ("--fires",), f"{self.fires_per_s} a second are too few to see a takeover", f"{_FIRES_MIN} or more"
            )


def measure_shards(plan: Plan) -> dict[str, Figures]:
    """One run: one shard, several, the one divided by the other, and the kills."""
    tenants = tenants_of_all(plan.tenants)

    async def measure_one(stack: Stack) -> dict[int, Figures]:
        async with _deployed(stack, _database(1), 1) as deployment:
            return await _measure_rates(deployment, plan, tenants)

    async def measure_several(stack: Stack) -> tuple[dict[int, Figures], Figures | None]:
        async with _deployed(stack, _database(SHARDS), SHARDS) as deployment:
            jobs = await _measure_rates(deployment, plan, tenants)
            return jobs, await _measure_takeovers(deployment, plan, tenants) if plan.kills else None

    one = on_stack("shards", _crew(plan, 1), measure_one, _settings(1))
    several, killed = on_stack("shards", _crew(plan, SHARDS), measure_several, _settings(SHARDS))
    found: dict[str, Figures] = {}
    for rate in plan.rates:
        load = f", {rate:,} jobs/s"
        found[f"{ONE}{load}"] = one[rate]
        found[f"{SEVERAL}{load}"] = several[rate]
        found[f"{RATIOS}{load}"] = ratios(several[rate], one[rate])
    return found if killed is None else {**found, KILLED: killed}


def tenants_of_all(total: int) -> list[str]:
    """The first so many that are spread evenly, the shards' in turns."""
    layout = Layout.even([shard_name("default", index) for index in range(SHARDS)])
    found: list[list[str]] = [[] for _ in range(SHARDS)]
    for number in count(1):
        if all(len(tenants) >= total // SHARDS for tenants in found):
            break
        tenant = f"bench-{number}"
        found[layout.index_of(tenant)].append(tenant)
    return [found[index][turn] for turn in range(total // SHARDS) for index in range(SHARDS)]


def ratios(several: Figures, one: Figures) -> Figures:
    """What is a cost of a job, with several shards by what it is with one; what costs nothing is left out."""
    return {
        name.replace("_ms_per_job", "_ratio"): round(several[name] / one[name], 3)
        for name in one
        if name.endswith("_per_job") and one[name]
    }


@dataclass(frozen=True, slots=True)
class _Deployment:
    stack: Stack
    databases: Sequence[Any]
    """Of each shard, the home's first."""

    @property
    def names(self) -> list[str]:
        return [shard_name("default", index) for index in range(len(self.databases))]

    async def leaders(self) -> list[tuple[str, int]]:
        """Of each shard, with its term."""
        pairs = zip(self.databases, self.names, strict=True)
        return [await leading(self.stack, database, shard) for database, shard in pairs]

    async def settled(self) -> list[tuple[str, int]]:
        """The same, once each shard is led by the replica that should lead it: nothing is handed over any more."""
        preferred = [order[0] for order in preferred_leaders(self.names, list(self.stack.replicas)).values()]
        led: list[tuple[str, int]] = []
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    led = await self.leaders()
                    # An only shard is never handed over, whichever replica leads it.
                    if len(led) == 1 or [name for name, _ in led] == preferred:
                        return led
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise WorldError(f"after {_PATIENCE_S} s leaders are not where they should be: {led}") from None

    def logs(self) -> list[Any]:
        return [self.stack.log_of(name) for name in self.stack.processors]

    def cast(self) -> Cast:
        """By kind; servers only where they were started here."""
        replicas = [psutil.Process(child.pid) for child in self.stack.replicas.values()]
        processors = [psutil.Process(child.pid) for child in self.stack.processors.values()]
        return {"replica": replicas, "processor": processors, **servers()}


@asynccontextmanager
async def _deployed(stack: Stack, database: str, shards: int) -> AsyncIterator[_Deployment]:
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        yield _Deployment(stack, [client[shard_database(database, index)] for index in range(shards)])


async def _measure_rates(deployment: _Deployment, plan: Plan, tenants: Sequence[str]) -> dict[int, Figures]:
    return {rate: await _measure_jobs(deployment, plan, rate, tenants) for rate in plan.rates}


async def _measure_jobs(deployment: _Deployment, plan: Plan, rate: int, tenants: Sequence[str]) -> Figures:
    await asyncio.sleep(_SETTLE_S)
    led, cast, effects = await deployment.settled(), deployment.cast(), Effects()
    urls = tuple(deployment.stack.urls.values())
    load = Load(urls, rate, _WARM_UP_S + plan.seconds + _TAIL_S, tenants=tuple(tenants))
    async with loading(load) as under_way:
        await asyncio.sleep(_WARM_UP_S)
        effects.read(deployment.logs())
        before = cpu_s(cast)
        await asyncio.sleep(plan.seconds)
        spent_s = {kind: after - before[kind] for kind, after in cpu_s(cast).items()}
        jobs = len(effects.read(deployment.logs()))
        sent = await under_way.sent()
    if not jobs:
        raise WorldError("no job has started")
    if await deployment.leaders() != led:
        raise WorldError("a leader has changed while the cost of jobs was measured")
    return {
        "failed": sent.failed,
        "load_late_max_ms": sent.late_max_ms,
        "jobs_per_s": round(jobs / plan.seconds, 1),
        "cpu_ms_per_job": round(1_000 * sum(spent_s.values()) / jobs, 3),
        **{f"{kind}_cpu_ms_per_job": round(1_000 * spent_s[kind] / jobs, 3) for kind in _KINDS if kind in spent_s},
    }


async def _measure_takeovers(deployment: _Deployment, plan: Plan, tenants: Sequence[str]) -> Figures:
    shard_of = await _make_schedules(deployment, plan, tenants)
    takeovers = _Takeovers(deployment, shard_of)
    return figures_of([await takeovers.measure() for _ in range(plan.kills)])


async def _make_schedules(deployment: _Deployment, plan: Plan, tenants: Sequence[str]) -> Mapping[str, int]:
    """One for each fire in a second, evenly spread over it in every shard; by name the shard of each."""
    bodies = interval_bodies(plan.fires_per_s, tenants=tenants)
    await make_schedules(list(deployment.stack.urls.values()), bodies)
    # Tenants are listed the shards' in turns.
    return {f"bench-{number}": number % SHARDS for number in range(plan.fires_per_s)}


@dataclass(frozen=True, slots=True)
class Takeover:
    """``dispatch_ms`` of each shard that was led there, and ``returned_ms`` as it came back; lags of the others' fires,
    ``unstarted`` of which had none when it was looked for; ``moved``: how many of the others had another leader in the
    end."""

    dispatch_ms: Sequence[int]
    returned_ms: Sequence[int]
    lags_before_ms: Sequence[int]
    lags_after_ms: Sequence[int]
    unstarted: int
    moved: int


class _Takeovers:
    def __init__(self, deployment: _Deployment, shard_of: Mapping[str, int]) -> None:
        self._deployment = deployment
        self._shard_of = shard_of
        self._clock = SystemClock()
        self._effects = Effects()

    async def measure(self) -> Takeover:
        """Of the replica that leads two; then all is as it was."""
        deployment, stack = self._deployment, self._deployment.stack
        led = await deployment.settled()
        self._effects.read(deployment.logs())
        self._effects.all.clear()
        await asyncio.sleep(_QUIET_S)
        [(name, leads)] = Counter(name for name, _ in led).most_common(1)
        if leads != 2:
            raise WorldError(f"{name} leads {leads} shards, and not two")
        lost = {index: term for index, (leader, term) in enumerate(led) if leader == name}
        newest = {index: await journal_end(deployment.databases[index]) for index in lost}
        at_ms = self._clock.wall_ms()
        stack.replicas[name].signal(SIGKILL)
        async with asyncio.timeout(_PATIENCE_S):
            dispatched = await asyncio.gather(
                *(next_dispatch(deployment.databases[index], newest[index], term) for index, term in lost.items())
            )
        await asyncio.sleep((at_ms + _SPAN_MS - self._clock.wall_ms()) / 1_000 + _TAIL_S)
        self._effects.read(deployment.logs())
        now = await deployment.leaders()
        before, after = (self._lags(lost, from_ms) for from_ms in (at_ms - _SPAN_MS, at_ms))
        await stack.replicas[name].wait()
        await stack.start_replica(name)
        await stack.ready(name)
        back = await deployment.settled()
        async with asyncio.timeout(_PATIENCE_S):
            returned = [
                await dispatch_pause_ms(deployment.databases[index], newest[index], back[index][1]) for index in lost
            ]
        due = sum(shard not in lost for shard in self._shard_of.values())
        return Takeover(
            [first_ms - at_ms for first_ms, _ in dispatched],
            returned,
            before,
            after,
            2 * due - len(before) - len(after),
            sum(now[index] != led[index] for index in range(SHARDS) if index not in lost),
        )

    def _lags(self, lost: Mapping[int, int], from_ms: int) -> list[int]:
        """Of each fire of the other shards that was due within a second from then on."""
        return [effect.lag_ms for effect in self._effects.all if self._counts(effect, lost, from_ms)]

    def _counts(self, effect: Effect, lost: Mapping[int, int], from_ms: int) -> bool:
        shard, nominal_ms = self._shard_of.get(effect.schedule), effect.nominal_ms
        if shard is None or shard in lost or nominal_ms is None:
            return False
        return from_ms <= nominal_ms < from_ms + _SPAN_MS


def figures_of(takeovers: Sequence[Takeover]) -> Figures:
    """Of all kills together; ``others_p99_ratio``: the second after the signal by the one before it."""
    dispatches_ms = [took_ms for each in takeovers for took_ms in each.dispatch_ms]
    returned_ms = [took_ms for each in takeovers for took_ms in each.returned_ms]
    before_ms = [lag_ms for each in takeovers for lag_ms in each.lags_before_ms]
    after_ms = [lag_ms for each in takeovers for lag_ms in each.lags_after_ms]
    figures: dict[str, Any] = {
        "kills": len(takeovers),
        "takeovers": len(dispatches_ms),
        **{f"dispatch_p{part}_ms": percentile(dispatches_ms, part) for part in (50, 99)},
        "dispatch_max_ms": max(dispatches_ms),
        **{f"returned_p{part}_ms": percentile(returned_ms, part) for part in (50, 99)},
        "returned_max_ms": max(returned_ms),
    }
    for span, lags_ms in (("before", before_ms), ("after", after_ms)):
        figures |= {f"others_{span}_p{part}_ms": percentile(lags_ms, part) for part in (50, 99)}
    return {
        **figures,
        "others_p99_ratio": round(figures["others_after_p99_ms"] / max(1, figures["others_before_p99_ms"]), 2),
        "others_moved": sum(each.moved for each in takeovers),
        "unstarted": sum(each.unstarted for each in takeovers),
        "dispatches_ms": dispatches_ms,
        "returns_ms": returned_ms,
        "others_before_lags_ms": before_ms,
        "others_after_lags_ms": after_ms,
    }


def _crew(plan: Plan, shards: int) -> Crew:
    return Crew(REPLICAS, PROCESSORS, plan.slots, shards)


def _database(shards: int) -> str:
    """One for each number of shards, which can't change, as a server that is not the stack's own keeps it."""
    return DATABASE if shards == 1 else f"{DATABASE}-of-{shards}"


def _settings(shards: int) -> dict[str, str]:
    return {
        "HASCHEDULER_DATABASE": _database(shards),
        "HASCHEDULER_REBALANCE_AFTER": _REBALANCE_AFTER,
    }
