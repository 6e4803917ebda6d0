"""The floor with a process for each replica and processor, as a system has them that goes on when one of them dies.

Replicas take jobs in, in turn, and each follows the stream into a mirror and a core. The leader learns from its own
stream what is pending and what has ended, and reads it as often as the leader of a system; the others rest.

Run as a program, ``python -m tests.bench.floor.in_processes ROLE``, with a `_Role` in JSON, this module is one of those
processes. It says where it is reached once it is ready, and ends with SIGTERM; a processor says then what has started.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import orjson
import psutil
import uvloop

from hascheduler.daemon.loop.batch_delay import PER_CHANGE_MS, PER_DECISION_MS, BatchDelay
from hascheduler.embedded.children import die_with_parent
from hascheduler.errors import WorldError
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.job import JobState
from tests.bench.cast import Cast
from tests.bench.floor.exchanges import (
    PATIENCE_S,
    Leader,
    Start,
    Worker,
    mono_ms,
    open_database,
    open_receiving,
    open_sending,
    wall_ms,
)
from tests.bench.floor.forms import PROCESSORS, Form, Written, fired_id, schedule_names
from tests.bench.floor.intake import Intake, read_body, respond, serving
from tests.bench.floor.plan import FloorPlan, Running
from tests.bench.floor.streams import FOLLOWER_RESTS_S, Fact, follow_mirrored
from tests.bench.http_client import HttpClient, request

_LEADER, _FOLLOWER, _PROCESSOR = "leader", "follower", "processor"
_FIRE_PATIENCE_S = 120
_FIRE_PATH = "/fire"
_OUTPUT_MAX = 64 * 2**20
"""What a processor says at the end, in bytes."""


@dataclass(frozen=True, slots=True)
class _Role:
    """Of a process; ``slots`` are each processor's."""

    kind: str
    name: str
    mongodb_uri: str
    amqp_url: str
    batch_delay_max_ms: int
    slots: int
    at_ms: int
    """Of all that is written."""

    @property
    def written(self) -> Written:
        return Written.of(Form.IN_PROCESSES, self.at_ms)


@asynccontextmanager
async def open_processes(mongodb_uri: str, amqp_url: str, plan: FloorPlan, slots: int) -> AsyncIterator[Running]:
    replicas = [(_FOLLOWER if number else _LEADER, f"replica-{number + 1}") for number in range(plan.replicas)]
    processes: list[_Process] = []
    at_ms = wall_ms()
    try:
        # Processors first: the leader publishes to their queues.
        for kind, name in [*((_PROCESSOR, name) for name in PROCESSORS), *replicas]:
            role = _Role(kind, name, mongodb_uri, amqp_url, plan.batch_delay_max_ms, slots, at_ms)
            processes.append(await _Process.start(role))
        yield _Processes(processes)
    finally:
        for process in processes:
            await process.kill()


class _Process:
    """One that is ready; what it has to say is on its standard output."""

    def __init__(self, kind: str, process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
        self.kind = kind
        self.pid = process.pid
        self.url = ""
        self._process = process
        self._output = output

    @classmethod
    async def start(cls, role: _Role) -> "_Process":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __spec__.name, orjson.dumps(role).decode()),
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=die_with_parent,
            limit=_OUTPUT_MAX,
        )
        assert process.stdout is not None
        started = cls(role.kind, process, process.stdout)
        try:
            started.url = await started._line()
        except BaseException:
            await started.kill()
            raise
        return started

    async def end(self) -> str:
        """Its last words."""
        self._process.terminate()
        return await self._line()

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _line(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            line = await self._output.readline()
        if not line:
            raise WorldError(f"a {self.kind} of the floor has ended with status {await self._process.wait()}")
        return line.decode().strip()


class _Processes:
    def __init__(self, processes: Sequence[_Process]) -> None:
        self._processes = processes
        self.cast: Cast = {
            kind: [psutil.Process(each.pid) for each in processes if each.kind == kind]
            for kind in (_LEADER, _FOLLOWER, _PROCESSOR)
        }
        self.urls = tuple(each.url for each in processes if each.kind != _PROCESSOR)

    async def fire(self, schedules: int) -> None:
        (leader,) = (each for each in self._processes if each.kind == _LEADER)
        async with HttpClient(1, _FIRE_PATIENCE_S) as http:
            await http.send(*request(leader.url + _FIRE_PATH, orjson.dumps(schedules)))

    async def end(self) -> list[Start]:
        told = [await each.end() for each in self._processes if each.kind == _PROCESSOR]
        return [Start(*start) for starts in told for start in orjson.loads(starts)]


class _Leading:
    """A leader that learns from its stream what is pending and what has ended."""

    def __init__(self, leader: Leader, intake: Intake) -> None:
        self._leader = leader
        self._intake = intake
        self._holders: dict[str, str] = {}
        self._known: set[str] = set()
        self._ended = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application: jobs come in, and schedules are fired until their jobs have ended."""
        if scope["path"] != _FIRE_PATH:
            await self._intake(scope, receive, send)
            return
        names = schedule_names(orjson.loads(await read_body(receive)))
        self._known.update(map(fired_id, names))
        self._leader.fire(names)
        while self._ended < len(names):  # noqa: ASYNC110  # asked rarely, as its own turns would count
            await asyncio.sleep(0.1)
        await respond(send, b"{}")

    def see(self, facts: Sequence[Fact]) -> None:
        pending: list[str] = []
        for fact in facts:
            if isinstance(fact, JobGone):
                self._ended += 1
                self._leader.free(self._holders.pop(fact.id), 1)
            elif isinstance(fact, JobSeen) and fact.job.state is JobState.PENDING and fact.job.id not in self._known:
                self._known.add(fact.job.id)
                pending.append(fact.job.id)
        if pending:
            self._leader.add(pending)

    async def run(self) -> None:
        await self._leader.run(self._claimed)

    def _claimed(self, processor: str, ids: Sequence[str]) -> None:
        self._holders.update(dict.fromkeys(ids, processor))


class _LeaderRests:
    """Between two reads of its stream, as a leader does."""

    def __init__(self, delay: BatchDelay) -> None:
        self._delay = delay

    def __call__(self, changes: int) -> float:
        if not changes:
            return 0
        self._delay.passed(changes, mono_ms())
        return self._delay.wait_s(mono_ms())


async def _play(role: _Role) -> None:
    match role.kind:
        case "leader":
            await _lead(role)
        case "follower":
            await _follow(role)
        case _:
            await _work(role)


async def _lead(role: _Role) -> None:
    delay = BatchDelay(PER_DECISION_MS, role.batch_delay_max_ms)
    async with open_database(role.mongodb_uri) as database, open_sending(role.amqp_url) as sending:
        leader = Leader(database, role.written, role.slots, sending, delay)
        leading = _Leading(leader, Intake(database, role.written))
        rests = _LeaderRests(BatchDelay(PER_CHANGE_MS, role.batch_delay_max_ms))
        async with serving(leading) as url, asyncio.TaskGroup() as loops:
            running = [loops.create_task(leading.run())]
            running.append(loops.create_task(follow_mirrored(database, rests, leading.see)))
            await _until_terminated(url, running)


async def _follow(role: _Role) -> None:
    async with (
        open_database(role.mongodb_uri) as database,
        serving(Intake(database, role.written)) as url,
        asyncio.TaskGroup() as loops,
    ):
        following = loops.create_task(follow_mirrored(database, lambda _changes: FOLLOWER_RESTS_S))
        await _until_terminated(url, [following])


async def _work(role: _Role) -> None:
    async with (
        open_database(role.mongodb_uri) as database,
        open_receiving(role.amqp_url, role.name) as (arrived,),
        asyncio.TaskGroup() as loops,
    ):
        worker = Worker(database, role.written.moves[role.name], arrived)
        await _until_terminated(role.name, [loops.create_task(worker.run())])
        _say(orjson.dumps([tuple(start) for start in worker.starts]))


async def _until_terminated(reached: str, running: Sequence[asyncio.Task[None]]) -> None:
    """Says where it is ``reached``, and ends what is ``running`` with SIGTERM."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    _say(reached.encode())
    await terminated.wait()
    for task in running:
        task.cancel()


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    uvloop.run(_play(_Role(**orjson.loads(sys.argv[1]))))
