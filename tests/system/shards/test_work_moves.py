"""Workers over HTTP that begin in one shard, and jobs that wait in others: real replicas, real workers, and kills."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from hascheduler.api.routing.forwarding import NONE_ANSWERS
from hascheduler.embedded.children import Daemon, start_daemon
from tests.system.processes import eventually
from tests.system.shards.processes import SHARD_COUNT, TENANTS, ShardedProcesses

EXAMPLES = Path(__file__).parents[3] / "processors"
DEFINITION = "nap"
_TRIES = 5
_NOT_CARRIED_OUT = NONE_ANSWERS.partition("{}")[0]
LIVE = {"state": {"$in": ["pending", "dispatched", "running"]}}


class Worker:
    """Speaks to another replica with each request, and does what the API asks: registers again, or comes again later.

    What it was given to do is in ``started``, under the ids with which it was registered then.
    """

    def __init__(self, processes: ShardedProcesses, seconds: float = 0.0) -> None:
        self._processes = processes
        self._seconds = seconds
        self._turn = count()
        self.ids: list[str] = []
        self.started: list[tuple[str, str, int]] = []

    async def run(self) -> None:
        await self._register()
        while True:
            body = {"processor": self.ids[-1], "wait": "2s"}
            status, answer = await self._ask("fetch", body)
            if status == 404:
                assert answer["type"] == "urn:hascheduler:problem:not-registered"
                await self._register()
                continue
            for attempt in answer["attempts"]:
                await self._carry_out({"processor": self.ids[-1], **attempt})

    async def _carry_out(self, named: Mapping[str, Any]) -> None:
        status, _ = await self._ask("start", named)
        if status == 409:
            return
        self.started.append((named["processor"], named["job"], named["attempt"]))
        await asyncio.sleep(self._seconds)
        status, answer = await self._ask("finish", {**named, "outcome": "succeeded"})
        assert (status, answer["answer"]) == (200, "done")

    async def _register(self) -> None:
        _, answer = await self._ask("processors", {"name": "far", "definitions": [DEFINITION], "slots": 1})
        self.ids.append(answer["processor"])

    async def _ask(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = await self._posted(path, body)
        for _ in range(_TRIES - 1):
            if answer.status_code != 503 or _NOT_CARRIED_OUT not in answer.text:
                break
            # While replicas begin and leave shards, for a moment none may answer for one.
            await asyncio.sleep(int(answer.headers["Retry-After"]))
            answer = await self._posted(path, body)
        assert answer.status_code in (200, 201, 404, 409), answer.text
        return answer.status_code, answer.json()

    async def _posted(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        urls = [replica.url for replica in self._processes.replicas.values() if replica.running]
        url = urls[next(self._turn) % len(urls)]
        return await self._processes.http.post(f"{url}/v1/work/{path}", json=body)


@asynccontextmanager
async def working(*workers: Worker) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(worker.run()) for worker in workers]
        yield
        for task in running:
            task.cancel()


async def submit(processes: ShardedProcesses, tenant: str, number: int, seconds: float = 0.0) -> list[str]:
    job = {"definition": DEFINITION, "tenant": tenant, "payload": {"seconds": seconds}}
    answer = await processes.post("/v1/jobs:batch", {"jobs": [job] * number})
    return [each["job"] for each in answer["results"]]


async def registered(processes: ShardedProcesses) -> list[dict[str, Any]]:
    """In each shard, by index: the workers that are registered, with ``at``."""
    return [
        {**processor, "at": index}
        for index, database in enumerate(processes.databases)
        async for processor in database.processors.find({"definitions": DEFINITION})
    ]


async def are_registered(processes: ShardedProcesses, number: int) -> list[dict[str, Any]]:
    async def look() -> list[dict[str, Any]] | None:
        found = await registered(processes)
        return found if len(found) == number else None

    return await eventually(look, f"{number} workers are registered")


async def assert_each_ran_once(processes: ShardedProcesses, jobs: list[str], *, lost: int = 0) -> None:
    losses = 0
    for id in jobs:
        job = await processes.get(f"/v1/jobs/{id}")
        outcomes = [attempt["outcome"] for attempt in job["attempts"] if attempt["outcome"] != "given_back"]
        assert (job["state"], outcomes.count("succeeded"), outcomes[-1]) == ("succeeded", 1, "succeeded"), job
        losses += len(outcomes) - 1
        assert set(outcomes[:-1]) <= {"lost"}
    assert losses <= lost


@pytest.mark.parametrize("candidates", ["0", pytest.param("2", marks=pytest.mark.thorough)])
async def test_jobs_of_one_shard_are_run_by_workers_that_begin_in_others(
    processes: ShardedProcesses, candidates: str
) -> None:
    await processes.together("one", "two", "three", HASCHEDULER_SHARD_CANDIDATES=candidates)
    workers = [Worker(processes), Worker(processes)]
    async with working(*workers):
        places = {worker["at"] for worker in await are_registered(processes, 2)}
        assert len(places) == 2, "who registers at one replica at the same instant spreads"
        away = next(index for index in range(SHARD_COUNT) if index not in places)
        jobs = await submit(processes, TENANTS[away], 20)
        await processes.none_live()
    await assert_each_ran_once(processes, jobs)
    # Each job was started under the id of one shard, its own.
    by = {id for worker in workers for id, _, _ in worker.started}
    assert {id.rpartition("@")[2] for id in by} == {f"{away:04d}" if away else "default"}
    assert sum(len(worker.started) for worker in workers) == len(jobs)


@pytest.mark.thorough
async def test_one_worker_serves_shards_in_turn_and_an_idle_deployment_is_at_rest(processes: ShardedProcesses) -> None:
    await processes.together("one", "two")
    worker, jobs = Worker(processes), list[str]()
    async with working(worker):
        await are_registered(processes, 1)
        for tenant in (*TENANTS[:2], *TENANTS[:2]):
            jobs += await submit(processes, tenant, 3)
            await processes.none_live()
        moved = len(worker.ids)
        assert moved <= 5
    await assert_each_ran_once(processes, jobs)


@pytest.mark.thorough
async def test_a_busy_worker_goes_round_and_nothing_starves(processes: ShardedProcesses) -> None:
    await processes.together("one", "two")
    worker = Worker(processes, seconds=0.3)
    jobs: list[str] = []
    async with working(worker):
        await are_registered(processes, 1)
        # More than a turn's.
        for tenant in TENANTS[:2]:
            jobs += await submit(processes, tenant, 45)

        async def both() -> bool:
            return all(
                [
                    await database.jobs.count_documents({"state": "succeeded"}) > 0
                    for database in processes.databases[:2]
                ]
            )

        await eventually(both, "both shards get their turn", 60)
        left = [await database.jobs.count_documents(LIVE) for database in processes.databases[:2]]
        assert max(left) > 0, "the worker left while it had jobs"
        await processes.none_live()
    await assert_each_ran_once(processes, jobs)


async def example(processes: ShardedProcesses, name: str, program: str) -> Daemon:
    needed = {"worker.mjs": ["node"], "worker.sh": ["curl", "jq", "timeout"]}[program]
    for each in needed:
        if shutil.which(each) is None:
            pytest.skip(f"{program} needs {each}")
    command = [str(EXAMPLES / program)]
    if program == "worker.sh":
        command += [DEFINITION, "sh", "-c", 'sleep "$(jq .seconds)"; echo null']
    process = processes.processors[name] = await start_daemon(
        name,
        command[1:],
        processes.folder / f"{name}.err",
        environment={**os.environ, "HASCHEDULER_URL": processes.any_url(), "NAME": DEFINITION, "SLOTS": "2"},
        program=command[:1],
        output=processes.folder / f"{name}.out",
    )
    return process


@pytest.mark.thorough
@pytest.mark.parametrize("program", ["worker.mjs", "worker.sh"])
async def test_the_examples_in_other_languages_go_on_in_another_shard(
    processes: ShardedProcesses, program: str
) -> None:
    # None is killed here: a worker that gets no CPU for some seconds is not dead.
    await processes.replica("one", HASCHEDULER_HEARTBEAT_TIMEOUT="1m")
    worker = await example(processes, "far", program)
    [first] = await are_registered(processes, 1)
    jobs: list[str] = []
    for step in range(1, SHARD_COUNT):
        jobs += await submit(processes, TENANTS[(first["at"] + step) % SHARD_COUNT], 3, 0.1)
        await processes.none_live()
    await assert_each_ran_once(processes, jobs)
    assert worker.running, worker.last_lines(20)


@pytest.mark.thorough
async def test_a_worker_is_killed_while_it_moves_and_nothing_is_lost_or_doubled(processes: ShardedProcesses) -> None:
    await processes.together("one", "two")
    first = await example(processes, "first", "worker.mjs")
    [at] = [worker["at"] for worker in await are_registered(processes, 1)]
    here, there = TENANTS[at], TENANTS[(at + 1) % SHARD_COUNT]
    # Longer than its turn, so that it is told to go while they run.
    jobs = await submit(processes, here, 2, 20)
    jobs += await submit(processes, here, 4, 0.1)
    jobs += await submit(processes, there, 4, 0.1)

    async def moves() -> bool:
        return any(worker.get("moving") and worker["draining"] for worker in await registered(processes))

    await eventually(moves, "it is told to move")
    running = await processes.databases[at].jobs.count_documents({"state": "running"})
    assert running == 2, "what runs goes on"
    await first.kill()
    await example(processes, "second", "worker.mjs")
    await processes.none_live()
    await assert_each_ran_once(processes, jobs, lost=2)
