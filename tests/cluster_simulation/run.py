"""One seed, one story: load and faults for half a minute, then peace, then the question whether all promises hold."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Any

import structlog

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.model.job import LIVE, TERMINAL
from hascheduler.testing.memory.database import Document, put_of
from tests.checkers import ALL
from tests.checkers.evidence import Commit, Evidence, SeenEvent, Sighting
from tests.cluster_simulation.broker import SimBroker
from tests.cluster_simulation.cluster import DEADLINE_MS, LEASE_MS, RETRY_MS, STANDSTILL_MS, Bugs, Cluster
from tests.cluster_simulation.database import Server, SimDatabase
from tests.cluster_simulation.faults import FAULTS, SKEW_MS_MAX, Faults
from tests.cluster_simulation.load import Load, handlers_that_tell
from tests.cluster_simulation.loop import EPOCH_MS, THE_WORLD, SimLoop, current_process
from tests.cluster_simulation.network import Network

FOLLOWED_S = 10.0
"""So long after clocks that ran at different rates a trust that was measured by them may last."""
LAPSED_S = DEADLINE_MS / 1000 + 0.1
"""A leader trusts a renewal from its beginning, so this is more than it may have left."""
DEAF_S = 3 * RETRY_MS / 1000 + 1.0
"""A stream that was silent for three renewals is stale; and a moment to notice."""
APART_S = STANDSTILL_MS / 1000 + 0.5
"""A leader that was paused or cut off so lately may be followed for that."""
_NEVER_S = -1_000.0
TROUBLE_S = 30.0
CONVERGENCE_S = 30.0
PEACE_S = 60.0
"""As long as the slowest repair may take: a lease, a heartbeat, some rounds of back-off, a queue of work."""


@dataclass
class Result:
    """``violations`` by checker; ``transcript`` is what happened, line by line; equal digests are equal runs.
    ``figures`` are how often what happened."""

    seed: int
    violations: dict[str, list[str]] = field(default_factory=dict)
    transcript: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)

    @property
    def digest(self) -> str:
        return blake2b("\n".join(self.transcript).encode(), digest_size=8).hexdigest()


def run_seed(seed: int, only: Sequence[str] = (), bugs: Bugs | None = None) -> Result:
    """Run that seed's story; see `run_story`."""
    return run_story(
        seed,
        lambda loop, result, say: _Story(loop, Random(f"{seed} story"), result, say, bugs or Bugs()).tell(tuple(only)),
    )


Say = Callable[[str], None]


def run_story(seed: int, tell: Callable[[SimLoop, Result, Say], Coroutine[Any, Any, None]]) -> Result:
    """What ``tell`` comes to. It must be the only thing that its process does: logging and chance are the whole's."""
    # The retries of the application draw their jitter from here.
    random.seed(seed)
    loop = SimLoop(Random(seed))
    result = Result(seed)

    def say(what: str) -> None:
        result.transcript.append(f"{loop.now_s:9.4f}  {what}")

    _capture_logs(say)
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(
        lambda _, context: say(f"EXCEPTION {context.get('message')} {context.get('exception')!r}")
    )
    try:
        loop.run_until_complete(tell(loop, result, say))
    except Exception as error:  # whatever ends a run is a finding
        result.violations["run"] = [f"{type(error).__name__}: {error}"]
    return result


def documents_of(database: SimDatabase) -> dict[Collection, dict[Any, Document]]:
    """All that is in it, by collection, then by id."""
    return {
        collection: {_plain(document): document for document in database.documents(collection)}
        for collection in Collection
    }


async def peace(loop: SimLoop, faults: Faults, result: Result, what_is_not_well: Callable[[], str]) -> bool:
    """Wait until all that is due has ended and everybody is well, or long enough to say that it never will be."""
    limit_s, trouble = loop.now_s + PEACE_S, ""
    while loop.now_s < limit_s:
        # Again and again: one that was asked to end may take its time.
        faults.start_missing()
        await asyncio.sleep(1.0)
        trouble = what_is_not_well()
        if not trouble:
            return True
    result.violations["it_recovers"] = [f"{PEACE_S:.0f} s after everything was mended: {trouble}"]
    return False


def tell_of_lives(evidence: Evidence, cluster: Cluster) -> None:
    """When each process stood still, and when it died."""
    for life in cluster.lives:
        evidence.pauses[life.id] = life.pauses
        if life.died_s is not None:
            evidence.deaths[life.id] = life.died_s


def obligations_of(evidence: Evidence) -> int:
    """What was submitted, and what was fired."""
    return len(evidence.submits) + sum(
        commit.before is None and commit.after is not None and commit.after.get("nominal_ms") is not None
        for commit in evidence.of(Collection.JOBS)
    )


class _Story:
    def __init__(self, loop: SimLoop, chance: Random, result: Result, say: Callable[[str], None], bugs: Bugs) -> None:
        self._loop = loop
        self._result = result
        self._say = say
        self._evidence = Evidence(epoch_ms=EPOCH_MS)
        self._renewed_s: dict[str, float] = {}
        self._apart_s: dict[str, float] = {}
        """When a replica last stood still, or could not exchange a word with the database or another replica."""
        self._starved_s: dict[str, float] = {}
        database = SimDatabase(self._committed)
        network = self._network = Network(loop, chance)
        self._server = Server(loop, database, chance)
        self._broker = SimBroker(network)
        handlers = handlers_that_tell(self._evidence, loop, chance)
        self._cluster = Cluster(loop, network, self._server, self._broker, handlers, say, bugs)
        self._load = Load(network, self._server, self._evidence, chance, say, bugs.jobs)
        self._faults = Faults(self._cluster, network, self._server, self._broker, chance, say)

    async def tell(self, only: tuple[str, ...]) -> None:
        loop, evidence = self._loop, self._evidence
        background = [loop.create_task(self._server.run()), loop.create_task(self._watch())]
        await self._load.prepare()
        for host in ("r1", "r2", "r3", "p1", "p2", "p3"):
            self._cluster.start(host)
        await asyncio.sleep(3)
        end_s = loop.now_s + TROUBLE_S
        await asyncio.gather(self._load.run(end_s), self._faults.run(end_s, only or tuple(sorted(FAULTS))))
        self._faults.heal()
        await self._load.let_all_days_count()
        evidence.until_ms = EPOCH_MS + int(loop.now_s * 1000)
        self._say("the end is set")
        if await peace(loop, self._faults, self._result, self._what_is_not_well):
            await self._converge()
        for task in background:
            task.cancel()
        evidence.skew_ms = SKEW_MS_MAX + 1_500 if not only or any(name.startswith("clock") for name in only) else 0
        tell_of_lives(evidence, self._cluster)
        logs = [life.actor.events for life in self._cluster.up("r")]
        evidence.events = [
            [SeenEvent(each.job, each.type.value) for each in map(log.at, range(log.first, log.end)) if each.job]
            for log in logs
            if log.is_open
        ]
        evidence.documents = documents_of(self._server.database)
        violations = self._result.violations
        for name, checker in ALL.items():
            found = checker(evidence)
            if found:
                violations[name] = found
        leases = self._server.database.find(Collection.LEASES, "default")
        self._result.figures |= {
            "obligations": obligations_of(evidence),
            "effects": len(evidence.effects),
            "terms": leases["term"] if leases else 0,
            "leaders followed needlessly": len(evidence.needless),
        }

    async def _watch(self) -> None:
        """Who believes to lead, looked at again and again."""
        clocks_differed_s = -FOLLOWED_S
        while True:
            await asyncio.sleep(0.05)
            replicas = self._cluster.up("r")
            if any(life.process.rate != 1 for life in replicas):
                clocks_differed_s = self._loop.now_s
            for life in replicas:
                peers = {"db", *(other.host for other in replicas)} - {life.host}
                is_cut = not all(self._network.both_ways(life.host, other) for other in peers)
                if life.is_starved:
                    self._starved_s[life.id] = self._loop.now_s
                elif is_cut or life.process.is_paused:
                    self._apart_s[life.id] = self._loop.now_s
            awake = [life for life in replicas if not life.process.is_paused]
            leaders = tuple(life.id for life in awake if life.leads)
            for life in awake:
                assert life.source is not None
                if life.source.flowing.is_set():
                    life.heard_s = self._loop.now_s
            deaf = tuple(life.id for life in awake if self._loop.now_s - life.heard_s > DEAF_S and life.id in leaders)
            lapsed = tuple(id for id in leaders if self._loop.now_s - self._renewed_s.get(id, 0) > LAPSED_S)
            if len(leaders) > 1 or deaf or lapsed:
                clocks_differ = self._loop.now_s - clocks_differed_s < FOLLOWED_S
                newest = self._cluster.leader()
                overtaken = tuple(
                    id
                    for id in leaders
                    if (newest is None or id != newest.id)
                    and self._loop.now_s - max(self._last_apart_s(id), self._starved_s.get(id, _NEVER_S)) <= LAPSED_S
                )
                self._evidence.sightings.append(
                    Sighting(self._loop.now_s, leaders, deaf, lapsed, clocks_differ, overtaken)
                )

    def _last_apart_s(self, id: str) -> float:
        return self._apart_s.get(id, _NEVER_S)

    def _followed_early(self, before: Document, after: Document) -> None:
        """Was there a reason that could be seen from outside?"""
        holder, now_s = before["holder"], self._loop.now_s
        is_taken = holder and after["holder"] not in ("", holder)
        if not is_taken or now_s - self._renewed_s.get(holder, _NEVER_S) >= LEASE_MS / 1000:
            return
        life = next(life for life in self._cluster.lives if life.id == holder)
        self._say(f"{holder} is followed early by {after['holder']}")
        if life.is_up and now_s - self._last_apart_s(holder) > APART_S:
            self._evidence.needless.append((now_s, holder))

    def _what_is_not_well(self) -> str:
        until_ms = self._evidence.until_ms
        replicas = self._cluster.up("r")
        unready = [f"{life.id}: {life.actor.view.unready_reason}" for life in replicas if not life.actor.view.ready]
        if unready or len(replicas) < 3:
            return f"{len(replicas)} replicas, not ready: {unready}"
        if self._cluster.leader() is None:
            return "nobody leads"
        undecided_ms = [until_ms - (schedule["cursor_ms"] or 0) for schedule in self._regular()]
        if max(undecided_ms, default=0) > 0:
            return f"a schedule is undecided for {max(undecided_ms)} ms"
        jobs = self._server.database.documents(Collection.JOBS)
        due = [job for job in jobs if (job["nominal_ms"] or 0) <= until_ms]
        live = [job["_id"] for job in due if job["state"] not in TERMINAL]
        return f"{len(live)} jobs have not ended: {live[:3]}" if live else ""

    async def _converge(self) -> None:
        """Wait until every mirror shows what the database holds, once nothing fires any more."""
        self._faults.pause_schedules()
        limit_s = self._loop.now_s + CONVERGENCE_S
        different = self._mirrors_that_differ()
        while different and self._loop.now_s < limit_s:
            await asyncio.sleep(0.23)
            different = self._mirrors_that_differ()
        if different:
            self._result.violations["mirrors_converge"] = different

    def _regular(self) -> list[Document]:
        schedules = self._server.database.documents(Collection.SCHEDULES)
        return [schedule for schedule in schedules if schedule["_id"].startswith("every")]

    def _mirrors_that_differ(self) -> list[str]:
        """Each replica's mirror against one made of the documents as they are."""
        true = Mirror()
        database = self._server.database
        for collection in MIRRORED:
            if collection in (Collection.REPLICAS, Collection.PROCESSORS, Collection.LEASES, Collection.JOURNAL):
                continue  # these change all the time
            live = [
                document
                for document in database.documents(collection)
                if collection is not Collection.JOBS or document["state"] in LIVE
            ]
            true.fold([put_of(collection, document) for document in live])
        wrong = []
        for life in self._cluster.up("r"):
            mirror = life.actor.feeder.mirror
            for collection in (Collection.JOBS, Collection.SCHEDULES, Collection.DEFINITIONS):
                theirs, ours = mirror.nouns(collection), true.nouns(collection)
                different = sorted(id for id in theirs.keys() | ours.keys() if theirs.get(id) != ours.get(id))
                if different:
                    wrong.append(f"{life.id} differs in {len(different)} of {collection}: {different[:3]}")
        return wrong

    def _committed(self, collection: Collection, before: Document | None, after: Document | None) -> None:
        self._evidence.commits.append(Commit(self._loop.now_s, collection, before, after))
        if collection is Collection.LEASES and before is not None and after is not None:
            self._followed_early(before, after)
        if collection is Collection.LEASES and after is not None:
            self._renewed_s[after["holder"]] = self._loop.now_s
        if collection is Collection.JOURNAL and after is not None and before is None:
            kind, term = after["kind"], after["term"]
            self._say(
                f"journal {after['_id']['seq']} {kind} term {term} {after['holder']}: {_short(after['decisions'])}"
            )
        if collection is Collection.JOBS and after is not None:
            stands = f"{after['state']} attempt {after['attempt']} rev {after['rev']} {after['processor'] or ''}"
            self._say(f"commit {after['_id']} {stands}")


def _short(decisions: Any) -> str:
    text = str(decisions)
    return text if len(text) < 300 else f"{text[:300]}…"


def _plain(document: Document) -> Any:
    id = document["_id"]
    return id if isinstance(id, str) else tuple(sorted(id.items()))


def _capture_logs(say: Callable[[str], None]) -> None:
    def capture(_: Any, level: str, event: structlog.typing.EventDict) -> str:
        process = current_process()
        if process is not THE_WORLD and level != "debug":
            fields = " ".join(f"{name}={value}" for name, value in event.items() if name not in ("event", "exc_info"))
            say(f"{process.name} {level} {event['event']} {fields}")
        raise structlog.DropEvent

    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
