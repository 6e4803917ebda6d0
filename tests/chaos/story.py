"""One row, start to end: start everything, let users ask for work, make the trouble, wait for peace, judge."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
from pymongo.errors import PyMongoError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE
from hascheduler.simulate.report import percentile
from hascheduler.triggers import next_nominal
from tests.chaos import zone_data
from tests.chaos.evidence import (
    decisions,
    dispatches,
    read_effects,
    terms,
    took_over_s,
    what_needs_a_person,
    worst_gap_s,
)
from tests.chaos.row import STRAY, Databases, Row
from tests.chaos.shards import OF_A_SHARD, evidence_of, evidence_of_all, evidence_of_what_stays, layout_of
from tests.chaos.stage import Servers, Stage, open_stage
from tests.chaos.users import Follower
from tests.chaos.waiting import NotWithin
from tests.checkers import ALL
from tests.checkers.evidence import Evidence, Submitted
from tests.checkers.jobs import caps_kept

PEACE_S = 60.0
"""As long as the slowest repair may take to begin: a lease, a heartbeat, some rounds of back-off."""
_WARM_UP_S = 2.0
_BATCH = 1_000
_LAST_CHANCE_S = 20.0
_JUDGES = {name: checker for name, checker in ALL.items() if name != "one_leader"}
"""That checker needs to see which process believes to lead, and a real process says that itself alone."""
_LOST = ("nothing_lost",)
_DOUBLED = ("one_effect", "attempts_apart", "nothing_extra")


@dataclass
class Result:
    """What a row showed. ``skipped``: why it could not be; ``violations`` by checker, and by what it had to meet."""

    row: Row
    violations: dict[str, list[str]] = field(default_factory=dict)
    skipped: str = ""
    obligations: int = 0
    reruns: int = 0
    terms: int = 0
    worst_gap_s: float = 0.0
    takeovers_ms: list[int] = field(default_factory=list)
    recovery_s: float = 0.0
    took_s: float = 0.0

    @property
    def green(self) -> bool:
        return not self.violations and not self.skipped

    @property
    def lost(self) -> int:
        return sum(len(self.violations.get(name, ())) for name in _LOST)

    @property
    def doubled(self) -> int:
        return sum(len(self.violations.get(name, ())) for name in _DOUBLED)

    @property
    def broken(self) -> int:
        return sum(map(len, self.violations.values())) - self.lost - self.doubled

    @property
    def takeover_p99_ms(self) -> int | None:
        return percentile(self.takeovers_ms, 99) if self.takeovers_ms else None


async def run_row(
    row: Row, servers: Servers, folder: Path, *, smoke: bool, seed: int, bug: str = "", say: Callable[[str], None]
) -> Result:
    """Whatever goes wrong in telling it is a violation too."""
    result = Result(row)
    began = time.monotonic()
    try:
        async with open_stage(row, servers, folder, smoke=smoke, seed=seed, bug=bug, say=say) as stage:
            try:
                await _Story(stage, result).run()
            except NotWithin:
                await stage.cluster.log_tasks()
                raise
    except (NotWithin, StoreUnavailable) as error:
        # What a row waits for is what the system does by itself: another leads, another processor has the job.
        result.violations.setdefault("it_goes_on", []).append(_shown(error))
        await servers.stop()
    except Exception as error:
        result.violations.setdefault("failed", []).append(f"{type(error).__name__}: {_shown(error)}")
        await servers.stop()
    result.took_s = time.monotonic() - began
    return result


class _Story:
    def __init__(self, stage: Stage, result: Result) -> None:
        self._stage = stage
        self._result = result
        self._trouble_s = (0.0, 0.0)
        self._until_ms = 0
        self._follower = Follower(stage.load)
        self._of_all: Evidence | None = None
        """Of all shards as of one, if partitions move."""

    async def run(self) -> None:
        stage, result = self._stage, self._result
        following = asyncio.create_task(stage.follow()) if stage.row.databases is Databases.TINY else None
        await stage.load.prepare()
        loading = asyncio.create_task(stage.load.run())
        reading = asyncio.create_task(self._follower.run())
        try:
            await stage.leader()
            await asyncio.sleep(_WARM_UP_S)
            began_s = stage.now_s()
            await stage.row.trouble(stage)
            while stage.row.main and stage.load.obligations(_wall_ms()) < stage.row.obligations_min:
                await stage.row.trouble(stage)
            self._trouble_s = (began_s, stage.now_s())
            stage.load.over = True
            self._until_ms = _wall_ms()
            async with asyncio.timeout(_LAST_CHANCE_S):
                await loading
            await stage.everybody_well()
            await self._peace()
            uri = stage.mongods.uri
            result.violations["audit"] = await what_needs_a_person(uri, stage.cluster.database, stage.row.shards)
            if following is not None:
                following.cancel()
                await asyncio.wait([following])
            await stage.oplog.read()
            evidence = await self._evidence()
        finally:
            loading.cancel()
            reading.cancel()
            if following is not None:
                following.cancel()
        self._judge(evidence)
        self._figures(evidence)
        self._hold_to_the_bounds()
        result.violations = {name: found for name, found in result.violations.items() if found}

    async def _peace(self) -> None:
        """Until everything that is due has ended and everybody is well, or for long nothing has become better."""
        began = better = time.monotonic()
        trouble, worse = "nothing is known", 1_000_000
        while trouble and time.monotonic() - better < PEACE_S:
            await asyncio.sleep(0.5)
            left = worse
            try:
                trouble, left = await self._what_is_not_well()
            except (PyMongoError, httpx2.HTTPError) as error:
                trouble = f"{type(error).__name__}: {error}"
            if left < worse:
                # A machine that is busy with other things may take its time.
                worse, better = left, time.monotonic()
        self._result.recovery_s = time.monotonic() - began
        if trouble:
            await self._stage.cluster.log_tasks()
            self._result.violations["it_recovers"] = [f"{self._result.recovery_s:.0f} s after the end: {trouble}"]

    async def _who_is_not_well(self) -> str:
        cluster = self._stage.cluster
        for life in [*cluster.replicas.values(), *cluster.processors.values()]:
            if not life.up:
                return f"{life.name} has ended: {life.child.last_lines(2)}"
        for life in cluster.replicas.values():
            answer = await cluster.http.get(f"{life.url}/readyz")
            if answer.status_code != httpx2.codes.OK:
                return f"{life.name} is not ready: {answer.text[:200]}"
        return ""

    async def _what_is_not_well(self) -> tuple[str, int]:
        """In words, and how much of it there is."""
        stage = self._stage
        trouble = await self._who_is_not_well()
        if trouble:
            return trouble, 1_000_000
        databases = [stage.client[name] for name in stage.cluster.databases]
        stored = {each["_id"]: each for database in databases async for each in database["schedules"].find()}
        for name, schedule in stage.load.schedules.items():
            cursor_ms = stored[name]["cursor_ms"] or schedule.now
            due_ms = next_nominal(schedule.trigger, cursor_ms)
            if due_ms is not None and due_ms <= self._until_ms:
                return f"{name} is undecided since {due_ms}, for {self._until_ms - due_ms} ms", 1_000_000
        due = {"$or": [{"nominal_ms": None}, {"nominal_ms": {"$lte": self._until_ms}}]}
        live = {"state": {"$in": [state.value for state in LIVE]}, **due}
        # By ids, which never change: a scan by states would miss a job that moves from one to another meanwhile.
        fields = {"state": 1, "attempt": 1, "definition": 1}
        left = [job for each in databases async for job in each["jobs"].find(live, fields, hint="_id_")]
        return (f"{len(left)} jobs have not ended: {left[:3]}" if left else ""), len(left)

    async def _evidence(self) -> list[Evidence]:
        """Of each shard."""
        stage = self._stage
        cluster, load = stage.cluster, stage.load
        stored = [await _documents(stage.client[name]) for name in cluster.databases]
        await cluster.stop()
        await stage.oplog.read()
        effects, commits = read_effects(cluster.sink, cluster.epoch_ms), stage.oplog.commits
        if stage.row.stray:
            self._follower.runs = [[event for event in run if STRAY not in event.job] for run in self._follower.runs]
            effects = [effect for effect in effects if STRAY not in effect.job_id]
            commits = [commit for commit in commits if STRAY not in str(commit.id)]
            stored = [
                {
                    collection: {id: each for id, each in of_one.items() if STRAY not in str(id)}
                    for collection, of_one in documents.items()
                }
                for documents in stored
            ]
        unanswered = [one for documents in stored for one in _unanswered(load.keys, documents[Collection.JOBS])]
        whole = Evidence(
            effects=effects,
            commits=commits,
            submits=[*load.submits, *unanswered],
            cancels=load.cancels,
            # Of several shards each has a history of its own.
            events=self._follower.runs if len(stored) == 1 else [],
            schedules=load.schedules,
            pauses=cluster.pauses,
            deaths=cluster.deaths,
            epoch_ms=cluster.epoch_ms,
            skew_ms=stage.row.skew_ms,
            until_ms=self._until_ms,
            documents=stored[0],
            local_fires=await zone_data.local_fires(stage.client[cluster.database]) if stage.row.zone_data else [],
            local_every_s=zone_data.EVERY_S,
        )
        if len(stored) == 1:
            return [whole]
        if stage.row.partitions_move:
            of_each = zip(cluster.databases, stored, strict=True)
            shards = [
                evidence_of_what_stays(whole, stage.oplog.commits_of[name], documents) for name, documents in of_each
            ]
            self._of_all = evidence_of_all(whole, shards, commits)
            return shards
        layout = layout_of(len(stored))
        return [
            evidence_of(shard, replace(whole, documents=documents), stage.oplog.commits_of[name], layout)
            for shard, (name, documents) in enumerate(zip(cluster.databases, stored, strict=True))
        ]

    def _judge(self, shards: Sequence[Evidence]) -> None:
        """Judge each shard, and all together what no shard can show alone: a cap, and all that moves."""
        found = self._result.violations
        for name, checker in _JUDGES.items():
            if self._of_all is not None and name not in OF_A_SHARD:
                found[name] = checker(self._of_all)
                continue
            for shard, evidence in enumerate(shards):
                where = f"shard {shard}: " if len(shards) > 1 else ""
                found.setdefault(name, []).extend(f"{where}{text}" for text in checker(evidence))
        if len(shards) > 1 and self._of_all is None:
            all_of_them = replace(shards[0], commits=self._stage.oplog.commits)
            found["caps_kept"] += [f"all shards: {text}" for text in caps_kept(all_of_them)]

    def _figures(self, shards: Sequence[Evidence]) -> None:
        result, stage = self._result, self._stage
        of_effects = shards if self._of_all is None else [self._of_all]
        effects = [effect for evidence in of_effects for effect in evidence.effects]
        result.obligations = stage.load.obligations(self._until_ms)
        result.reruns = len(effects) - len({effect.job_id for effect in effects})
        result.terms = sum(terms(evidence.commits) for evidence in shards)
        result.worst_gap_s = max(
            _worst_gap(decisions(evidence.commits), self._trouble_s, [*stage.excused, *stage.excused_in.get(shard, ())])
            for shard, evidence in enumerate(shards)
        )
        dispatched = [dispatches(evidence.commits) for evidence in shards]
        result.takeovers_ms = [
            int(1_000 * min(took_over_s(dispatched[kill.shard], kill.at_s, kill.term), 3_600)) for kill in stage.kills
        ]

    def _hold_to_the_bounds(self) -> None:
        result, row = self._result, self._stage.row
        broken = []
        if row.gap_s is not None and result.worst_gap_s > row.gap_s:
            broken.append(f"nothing was decided for {result.worst_gap_s:.2f} s; the bound is {row.gap_s} s")
        took_ms = result.takeover_p99_ms
        if row.takeover_ms is not None and (took_ms is None or took_ms > row.takeover_ms):
            broken.append(f"takeovers took {took_ms} ms (p99); the bound is {row.takeover_ms} ms")
        if result.recovery_s > row.recovery_max_s:
            broken.append(f"it took {result.recovery_s:.0f} s to recover; the bound is {row.recovery_max_s:.0f} s")
        if row.main and result.obligations < row.obligations_min:
            broken.append(f"{result.obligations} obligations; the least is {row.obligations_min}")
        if broken:
            result.violations["bounds"] = broken


def _worst_gap(
    decided: list[tuple[float, int]], trouble_s: tuple[float, float], excused: list[tuple[float, float]]
) -> float:
    """The worst in what is left of the trouble without the spans in which nobody could decide."""
    worst, from_s = 0.0, trouble_s[0]
    for began_s, ended_s in [*sorted(excused), (trouble_s[1], trouble_s[1])]:
        if began_s > from_s:
            worst = max(worst, worst_gap_s(decided, from_s, began_s))
        from_s = max(from_s, ended_s)
    return worst


async def _documents(database: Any) -> dict[Collection, dict[Any, Any]]:
    return {
        collection: {_plain(each): each async for each in database[collection.value].find(batch_size=_BATCH)}
        for collection in (Collection.JOBS, Collection.VERDICTS, Collection.DEFINITIONS, Collection.SCHEDULES)
    }


def _unanswered(keys: dict[str, Submitted], jobs: dict[Any, Any]) -> list[Submitted]:
    """Submits that nobody acknowledged, of those that are there all the same."""
    by_key = {job.get("idempotency_key"): id for id, job in jobs.items()}
    return [
        Submitted(by_key[key], submit.asked_s)
        for key, submit in keys.items()
        if not submit.acknowledged and key in by_key
    ]


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _plain(document: Any) -> Any:
    id = document["_id"]
    return tuple(sorted(id.items())) if isinstance(id, dict) else id


def _shown(error: BaseException) -> str:
    with suppress(Exception):
        if isinstance(error, BaseExceptionGroup):
            return "; ".join(_shown(each) for each in error.exceptions)
    return str(error)[:600]
