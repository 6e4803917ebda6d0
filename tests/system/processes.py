"""Real processes on real servers, as a test wants them: start, kill, ask over HTTP, wait for an event with a limit.

What happened is read from where the scheduler can't embellish it: the lines that the ``log`` handler writes to its
own output, and the journal in the database. Replicas and processors begin with everything imported, which takes most of
what a start takes; they are real processes all the same. Tests of ``python -m hascheduler`` and of other releases begin
with an interpreter of their own.
"""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import httpx2
from pymongo import AsyncMongoClient

from hascheduler.embedded.children import Daemon, free_port, start_daemon
from hascheduler.model.job import fired_at, schedule_of
from tests.chaos import waiting
from tests.unit.telemetry.scraping import Scrape
from tests.warm import WarmProcess, warm

_MAIN = "from hascheduler.__main__ import main; main()"
_IMPORTED = (
    "hascheduler.__main__",
    "hascheduler.cli.run.whole_system",
    "hascheduler.assembly",
    "hascheduler.assembly_api",
    "hascheduler.assembly_processor",
    "hascheduler.api.app",
)


class _Forked:
    """`asyncio.subprocess.Process`, as far as a `Child` uses it."""

    def __init__(self, process: WarmProcess) -> None:
        self._process = process
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(process.fileno(), self._end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    def send_signal(self, signal: int) -> None:
        self._process.send_signal(signal)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.fileno())
        self._ended.set_result(self._process.wait())


async def start_warm_daemon(
    name: str, arguments: Sequence[str], log: Path, *, environment: Mapping[str, str], url: str, output: Path
) -> Daemon:
    """As `start_daemon`."""
    with ExitStack() as opened:
        nothing = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, nothing)
        outputs = [opened.enter_context(path.open("ab")).fileno() for path in (output, log)]
        process = warm(*_IMPORTED).start(_MAIN, *arguments, environment=environment, descriptors=[nothing, *outputs])
    return Daemon(name, cast(asyncio.subprocess.Process, _Forked(process)), log, output, url)


Found = TypeVar("Found")
_LIVE = ("pending", "dispatched", "running")


async def eventually(find: Callable[[], Awaitable[Found | None]], what: str, limit_s: float = 90) -> Found:
    """As in the chaos, with patience for a machine that runs other tests."""
    return await waiting.eventually(find, what, limit_s)


def fired_times(schedule: str, jobs: Iterable[str]) -> list[int]:
    """Of a graph, its last job stands for the fire."""
    times = (fired_at(job) for job in jobs if schedule_of(job) == schedule)
    return sorted(nominal_ms for nominal_ms in times if nominal_ms is not None)


def environment_of(mongodb_uri: str, amqp_url: str, database: str) -> dict[str, str]:
    """With a short lease, so that the tests of its expiry are short; the proportions are those of the defaults."""
    return {
        "HASCHEDULER_MONGODB_URI": mongodb_uri,
        "HASCHEDULER_AMQP_URL": amqp_url,
        "HASCHEDULER_DATABASE": database,
        "HASCHEDULER_LEASE_DURATION": "3s",
        "HASCHEDULER_RENEW_DEADLINE": "2s",
        "HASCHEDULER_RETRY_PERIOD": "500ms",
        "HASCHEDULER_HEARTBEAT_INTERVAL": "300ms",
        "HASCHEDULER_HEARTBEAT_TIMEOUT": "1500ms",
    }


@dataclass
class Processes:
    """Everything one test started; `stop` kills what is left."""

    folder: Path
    environment: dict[str, str]
    database_uri: str
    database_name: str
    replicas: dict[str, Daemon] = field(default_factory=dict)
    processors: dict[str, Daemon] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = httpx2.AsyncClient(timeout=30)
        self.mongo: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.database_uri)
        self.database = self.mongo[self.database_name]
        self._commands = 0
        self._effects: list[dict[str, Any]] = []
        self._read_to: dict[Path, int] = defaultdict(int)

    async def replica(self, name: str, **environment: str) -> Daemon:
        [process] = await self.together(name, **environment)
        return process

    async def together(self, *names: str, **environment: str) -> list[Daemon]:
        """Replicas that start beside each other, each on its way to be ready while the others are."""
        started = [await self._replica(name, **environment) for name in names]
        for process in started:
            await process.ready()
        return started

    async def processor(self, name: str, *modules: str, slots: int = 8, **environment: str) -> Daemon:
        """One with the handlers of ``modules``, else with ``log`` and ``sleep``; it hears its messages."""
        room = "hascheduler.handlers" if self.code is None else "processors"  # that of release 0.2.0
        handlers = modules or (f"{room}.log", f"{room}.sleep")
        arguments = ["processor", *handlers, "--name", name, "--slots", str(slots)]
        port = environment.setdefault("HASCHEDULER_HEALTH_PORT", str(free_port()))
        process = await self._start(name, arguments, environment, f"http://127.0.0.1:{port}")
        self.processors[name] = process
        await eventually(lambda: self._is_registered(name), f"{name} is registered")
        await process.ready()
        return process

    async def command(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """The status of a command once it has ended, standard output, and standard error."""
        self._commands += 1
        child = await self._start(f"command-{self._commands}", arguments, environment)
        async with asyncio.timeout(180):
            status = await child.wait()
        return status, child.output.read_text(), child.log.read_text()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        await self.kill_all()
        await self.http.aclose()
        await self.mongo.drop_database(self.database_name)
        await self.mongo.close()

    async def kill_all(self) -> None:
        for process in [*self.replicas.values(), *self.processors.values()]:
            if process.running:
                await process.kill()

    # Asking

    def any_url(self) -> str:
        return next(replica.url for replica in self.replicas.values() if replica.running)

    async def post(self, path: str, body: object) -> dict[str, Any]:
        answer = await self.http.post(self.any_url() + path, json=body)
        assert answer.status_code < 300, answer.text
        content: dict[str, Any] = answer.json()
        return content

    async def put(self, path: str, body: object) -> None:
        answer = await self.http.put(self.any_url() + path, json=body)
        assert answer.status_code < 300, answer.text

    async def get(self, path: str, url: str = "") -> dict[str, Any]:
        """From any replica, or that of the ``url``."""
        answer = await self.http.get((url or self.any_url()) + path)
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    async def submit(self, definition: str, **payload: object) -> str:
        """The id of the job."""
        return str((await self.post("/v1/jobs", {"definition": definition, "payload": payload}))["id"])

    async def in_state(self, job_id: str, *states: str) -> dict[str, Any]:
        """The job, once it is in one of these states."""

        async def find() -> dict[str, Any] | None:
            job = await self.get(f"/v1/jobs/{job_id}")
            return job if job["state"] in states else None

        return await eventually(find, f"{job_id} is {' or '.join(states)}")

    async def ended(self, job_id: str) -> dict[str, Any]:
        return await self.in_state(job_id, "succeeded", "failed", "cancelled")

    async def metrics(self, url: str = "") -> Scrape:
        answer = await self.http.get((url or self.any_url()) + "/metrics")
        assert answer.status_code == 200, answer.text
        return Scrape(answer.text)

    def logged(self, event: str, *names: str) -> list[dict[str, Any]]:
        """The lines of that event in the logs of these processes, or of all; those that were killed too."""
        return [line for line in self.lines(*names) if line["event"] == event]

    def lines(self, *names: str) -> list[dict[str, Any]]:
        files = [self.folder / f"{name}.err" for name in names] or sorted(self.folder.glob("*.err"))
        lines = [line for file in files for line in file.read_text().splitlines() if line.startswith("{")]
        return [*map(json.loads, lines)]

    async def holder(self) -> tuple[str, int]:
        """Who has the lease, if anybody, and its term."""
        lease = await self.database.leases.find_one({"_id": "default"})
        return ("", 0) if lease is None else (lease["holder"], lease["term"])

    async def leader(self, *, not_in_term: int = 0) -> tuple[Daemon, int]:
        """The leading replica and its term, once there is one in a later term than ``not_in_term``."""

        async def find() -> tuple[Daemon, int] | None:
            holder, term = await self.holder()
            if not holder or term <= not_in_term:
                return None
            began = await self.database.journal.find_one({"term": term, "kind": "term_began"})
            return (self.replicas[holder.rsplit(".", 1)[0]], term) if began else None

        return await eventually(find, f"a leader after term {not_in_term}")

    async def lose_leader(self) -> Daemon:
        """The leader, which is killed; another leads then."""
        leader, term = await self.leader()
        await leader.kill()
        await self.leader(not_in_term=term)
        return leader

    async def schedule(self, name: str, every: str = "200ms", **job: object) -> None:
        template = {"definition": "log", "target": name, **job}
        await self.post(
            "/v1/schedules", {"name": name, "trigger": {"type": "interval", "every": every}, "job": template}
        )

    async def settled(self, limit_s: float = 90) -> None:
        """Delete all schedules, then wait until no job is live and no fire from before is on its way."""
        for schedule in (await self.get("/v1/schedules?limit=100"))["items"]:
            answer = await self.http.delete(f"{self.any_url()}/v1/schedules/{schedule['name']}")
            assert answer.status_code == 204, answer.text

        async def looked() -> tuple[int, Any]:
            newest = await self.database.journal.find_one(sort=[("_id", -1)])
            live = {"state": {"$in": _LIVE}}
            return await self.database.jobs.count_documents(live), newest and newest["_id"]

        async def none_left() -> bool:
            before = await looked()
            await asyncio.sleep(0.3)  # what was decided before the deletion is carried out in less
            return before[0] == 0 and await looked() == before

        await eventually(none_left, "all jobs end", limit_s)

    # Evidence

    def effects(self) -> dict[str, list[dict[str, Any]]]:
        """What the handlers did, by job id, in the order of their time."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for effect in self._all_effects():
            found[effect["job"]].append(effect)
        return {job: sorted(effects, key=lambda effect: effect["at_ms"]) for job, effects in found.items()}

    def nominal_times(self, schedule: str) -> list[int]:
        """The nominal times for which a job of the schedule had its effect, in order."""
        return fired_times(schedule, {effect["job"] for effect in self._all_effects()})

    async def fired(self, more: int, *schedules: str) -> None:
        """Until each of these has fired so many times more."""
        goals = {name: len(self.nominal_times(name)) + more for name in schedules}

        async def enough() -> bool:
            return all(len(self.nominal_times(name)) >= goal for name, goal in goals.items())

        await eventually(enough, f"every schedule has fired {more} times more")

    def assert_no_gap(self, schedule: str, every_ms: int, at_least: int) -> None:
        """Every nominal time from the first to the last had its effect."""
        times = self.nominal_times(schedule)
        assert len(times) >= at_least, f"{schedule} fired {len(times)} times"
        gaps = [(before, after) for before, after in pairwise(times) if after - before != every_ms]
        assert not gaps, f"{schedule} missed nominal times in {gaps}"

    def assert_no_effect_twice(self) -> None:
        doubled = {job: effects for job, effects in self.effects().items() if len(effects) > 1}
        assert not doubled, f"effects of the same job: {doubled}"

    async def assert_all_fired_once(self, schedules: Mapping[str, int], at_least: int) -> None:
        """When all has ended, every nominal time had its effect, once, and the journal is in order.

        ``schedules`` are the milliseconds between the fires of each.
        """
        await self.settled()
        for name, every_ms in schedules.items():
            self.assert_no_gap(name, every_ms, at_least)
        self.assert_no_effect_twice()
        await self.assert_terms_never_return()

    async def journal_terms(self) -> list[tuple[int, int, str]]:
        """(seq, term, kind) of all entries, in order."""
        entries = await self.database.journal.find().sort("_id", 1).to_list()
        return [(entry["_id"]["seq"], entry["term"], entry["kind"]) for entry in entries]

    async def assert_terms_never_return(self) -> None:
        """Sequence numbers have no gap, and no entry of an older term follows one of a newer."""
        entries = await self.journal_terms()
        assert [seq for seq, _, _ in entries] == list(range(1, len(entries) + 1))
        terms = [term for _, term, _ in entries]
        assert terms == sorted(terms)
        for term in set(terms):
            kinds = [kind for _, of, kind in entries if of == term]
            assert kinds[0] == "term_began"
            assert kinds.count("term_began") == 1

    def _all_effects(self) -> list[dict[str, Any]]:
        """One waits for them by asking again and again: only what was added to the outputs since is read."""
        for output in dict.fromkeys(process.output for process in self.processors.values()):
            with output.open("rb") as lines:
                lines.seek(self._read_to[output])
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read_to[output] += len(line)
                    if line.startswith(b'{"effect"'):
                        self._effects.append(json.loads(line))
        return self._effects

    # Starting

    async def _replica(self, name: str, **environment: str) -> Daemon:
        """One that may not be ready yet."""
        port = free_port()
        url, settings = f"http://127.0.0.1:{port}", {"HASCHEDULER_REPLICA_ID": name, "HASCHEDULER_HTTP_PORT": str(port)}
        process = await self._start(name, ["serve"], {**settings, **environment}, url)
        self.replicas[name] = process
        return process

    @property
    def code(self) -> Path | None:
        """The folder of the code that is started; None: this code, with everything imported."""
        return None

    async def _start(self, name: str, arguments: Sequence[str], settings: Mapping[str, str], url: str = "") -> Daemon:
        log, output, code = self.folder / f"{name}.err", self.folder / f"{name}.out", self.code
        of_code = {} if code is None else {"PYTHONPATH": str(code)}
        environment = {**os.environ, **self.environment, **of_code, **settings, "HASCHEDULER_LOG_FORMAT": "json"}
        if code is None and "PYTHONPATH" not in settings:  # else it is to import something else
            return await start_warm_daemon(name, arguments, log, environment=environment, url=url, output=output)
        return await start_daemon(name, arguments, log, environment=environment, url=url, output=output, folder=code)

    async def _is_registered(self, name: str) -> bool:
        return await self.database.processors.find_one({"name": name}) is not None
