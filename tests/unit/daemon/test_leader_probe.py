"""Proof of death, on real sockets, and what follows from the proof of a processor's death."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.leadership import liveness as liveness_room
from hascheduler.daemon.leadership.liveness import (
    LeaderProbe,
    LivenessServer,
    greets_in_time,
    wait_for_death_by_connection,
)
from hascheduler.daemon.loop.processor_probe import ProcessorProbe
from hascheduler.dispatch.inputs import ProcessorLost, Resynced
from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from tests.factories import make_lease, make_processor
from tests.unit.daemon.doubles import comes, running, until

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def briskly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a proof of death looks again at once."""
    monkeypatch.setattr(liveness_room, "_PAUSE_MIN_S", 0.001)
    monkeypatch.setattr(liveness_room, "_PAUSE_MAX_S", 0.001)
    monkeypatch.setattr(liveness_room, "_CONNECT_TIMEOUT_S", 0.2)


class Standby:
    """A probe that runs, and what it has concluded."""

    def __init__(self) -> None:
        self.dead: list[str] = []
        self.news = asyncio.Event()
        self.probe = LeaderProbe("me", self._died, wait_for_death_by_connection)
        self.connects = 0
        self.connected = asyncio.Event()
        self.greeted = asyncio.Event()

    def _died(self, holder: str) -> None:
        self.dead.append(holder)
        self.news.set()

    def watch(self, holder: str, port: int | str) -> None:
        self.probe.watch(make_lease(holder, endpoint=f"{HOST}:{port}"))

    async def learns_of_a_death(self) -> list[str]:
        await comes(self.news)
        return self.dead

    async def connects_again(self, times: int) -> None:
        """Wait until it has tried to connect that many more times."""
        goal = self.connects + times
        await until(lambda: self.connects >= goal, self.connected)


@pytest.fixture
async def standby(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Standby]:
    one = Standby()
    connect = asyncio.open_connection

    async def watched(*where: Any, **how: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        one.connects += 1
        one.connected.set()
        reader, writer = await connect(*where, **how)
        readline = reader.readline

        async def read_greeting() -> bytes:
            line = await readline()
            one.greeted.set()
            return line

        monkeypatch.setattr(reader, "readline", read_greeting)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", watched)
    async with running(one.probe.run()):
        yield one


@asynccontextmanager
async def process(id: str, port: int = 0) -> AsyncIterator[LivenessServer]:
    """A process that lives until the block ends; then the kernel closes its lines and its port."""
    one = LivenessServer(HOST, port, id)
    await one.bind()
    async with running(one.run()):
        await asyncio.sleep(0)  # a task that is cancelled before its first step closes nothing
        yield one


@asynccontextmanager
async def impostor(says: bytes) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Something else on that port, which ``says`` that to each that connects, and then holds the line."""
    met = asyncio.Event()
    lines: set[asyncio.StreamWriter] = set()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.add(writer)
        writer.write(says)
        met.set()
        await reader.read(256)
        writer.close()

    server = await asyncio.start_server(greet, HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1], met
    finally:
        server.close()
        for line in lines:
            line.close()


async def greeted_by(standby: Standby, leader: LivenessServer) -> None:
    standby.greeted.clear()
    standby.watch("leader", leader.port)
    await comes(standby.greeted)


async def let_it_think() -> None:
    """Turns of the loop in which a probe that has something to do would have done it."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_line_that_closed_and_a_port_that_refuses_prove_a_death_once(standby: Standby) -> None:
    async with process("leader") as one:
        await greeted_by(standby, one)
        assert standby.dead == []
    assert await standby.learns_of_a_death() == ["leader"]
    connects = standby.connects
    standby.watch("leader", one.port)
    await let_it_think()
    assert (standby.dead, standby.connects) == (["leader"], connects)


async def test_a_process_that_is_silenced_is_not_proved_dead(standby: Standby) -> None:
    async with process("leader") as one:
        await greeted_by(standby, one)
        one.silence_while(lambda: True)
        for line in list(one._connections):
            line.close()
        await comes(standby.greeted)
        await comes(standby.greeted)
        assert standby.dead == []


async def test_another_process_on_the_same_port_proves_a_death(standby: Standby) -> None:
    async with process("leader") as one:
        await greeted_by(standby, one)
        # The old process ends and the new one takes the port before the standby comes back.
        port = one.port
        successor = LivenessServer(HOST, port, "successor")
        one._server.close()  # type: ignore[union-attr]
        await successor.bind()
        serving = asyncio.create_task(successor.run())
        for line in list(one._connections):
            line.close()
        assert await standby.learns_of_a_death() == ["leader"]
        serving.cancel()
        await asyncio.wait({serving})


async def test_a_port_that_takes_a_last_connection_while_its_process_dies_is_soon_tried_again(
    standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness_room, "_PAUSE_MAX_S", 60)
    met = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        met.set()

    async with process("leader") as one:
        await greeted_by(standby, one)
        one._server.close()  # type: ignore[union-attr]
        dying = await asyncio.start_server(say_nothing, HOST, one.port)
        for line in list(one._connections):
            line.close()
        await comes(met)
        dying.close()
        assert await standby.learns_of_a_death() == ["leader"]


@pytest.mark.parametrize(
    "says", [b"", b"hascheduler another\n", b"HTTP/1.1 400 Bad Request\r\n", b"x" * 5_000, b"\xff\n"]
)
async def test_another_process_without_a_greeting_before_proves_nothing(standby: Standby, says: bytes) -> None:
    async with impostor(says) as (port, met):
        standby.watch("leader", port)
        await comes(met)
        await standby.connects_again(2)
    await standby.connects_again(3)
    assert standby.dead == []


async def test_a_greeting_that_is_cut_short_proves_nothing(standby: Standby) -> None:
    cut = asyncio.Event()
    visits = 0

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        writer.write(b"hascheduler leader\n" if visits == 1 else b"hasched")
        await writer.drain()
        writer.close()
        if visits == 4:
            cut.set()

    server = await asyncio.start_server(greet, HOST, 0)
    async with server:
        standby.watch("leader", server.sockets[0].getsockname()[1])
        await comes(cut)
        assert standby.dead == []


@pytest.mark.parametrize(
    "endpoint", ["", "nowhere", ":", f"{HOST}:", f"{HOST}:99999", f"{HOST}:-1", "\0:1", "x" * 300 + ":1"]
)
async def test_an_endpoint_that_is_none_is_tried_in_vain_and_at_leisure_and_none_greets_there(
    standby: Standby, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness_room, "_PAUSE_MIN_S", 60)
    standby.probe.watch(make_lease("leader", endpoint=endpoint))
    await let_it_think()
    assert standby.connects <= 1
    assert standby.dead == []
    assert not await greets_in_time("leader", endpoint, 10)


async def test_all_ids_of_a_process_are_greeted_and_no_other_and_one_that_it_gave_up_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    greetings, names = asyncio.Semaphore(0), liveness_room._names

    def hearing(greeting: bytes, holder: str) -> bool:
        greetings.release()
        return names(greeting, holder)

    async with process("p.1") as server, asyncio.timeout(20):
        where = f"{HOST}:{server.port}"
        server.greet_as("p.2", "p.1")
        ids = ("p.1", "p.2", "p", "1", "p.", "p.3", "p.2 p")
        assert [id for id in ids if await greets_in_time(id, where, 10)] == ["p.1", "p.2"]
        monkeypatch.setattr(liveness_room, "_names", hearing)
        given_up, kept = (asyncio.create_task(wait_for_death_by_connection(id, where)) for id in ("p.1", "p.2"))
        for _ in range(2):
            await greetings.acquire()
        server.greet_as("p.2")
        for line in list(server._connections):
            line.close()
        await given_up
        assert not kept.done()
        kept.cancel()


class Watcher:
    """A probe that runs, and what it has concluded. A processor is dead once its event in ``proofs`` is set."""

    def __init__(self) -> None:
        self.lost: list[ProcessorLost] = []
        self.watched: list[str] = []
        self.proofs: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.probe = ProcessorProbe(self.lost.append, self._wait_for_death)
        self.running = asyncio.create_task(self.probe.run())

    async def _wait_for_death(self, id: str, endpoint: str) -> None:
        assert endpoint == "h:1"
        self.watched.append(id)
        try:
            await self.proofs[id].wait()
        finally:
            self.watched.remove(id)

    async def sees(self, id: str, endpoint: str = "h:1", **what: Any) -> None:
        self.probe.seen([ProcessorSeen(make_processor(id, liveness_endpoint=endpoint, **what))])
        await let_it_think()

    async def dies(self, id: str) -> list[dict[str, Any]]:
        """Return the log lines of it."""
        with capture_logs() as lines:
            self.proofs[id].set()
            await let_it_think()
        return [dict(line) for line in lines]


@pytest.fixture
async def watcher() -> AsyncIterator[Watcher]:
    one = Watcher()
    yield one
    assert not one.running.done(), "the probe ended"
    one.running.cancel()
    await asyncio.wait({one.running})


@pytest.mark.parametrize(
    ("draining", "event", "level"), [(False, "processor_died", "warning"), (True, "processor_ended", "info")]
)
async def test_a_processor_is_lost_with_its_newest_beat_which_is_no_warning_while_it_drains(
    watcher: Watcher, draining: bool, event: str, level: str
) -> None:
    await watcher.sees("p1", beat=1)
    await watcher.sees("p1", beat=7, draining=draining)
    assert watcher.lost == []
    [line] = await watcher.dies("p1")
    assert watcher.lost == [ProcessorLost("p1", 7)]
    assert (line["event"], line["log_level"]) == (event, level)


@pytest.mark.parametrize("resynced", [False, True])
async def test_a_beat_of_a_dead_one_that_arrives_later_does_not_bring_it_back(watcher: Watcher, resynced: bool) -> None:
    await watcher.sees("p1", beat=7)
    await watcher.dies("p1")
    if resynced:
        watcher.probe.seen([Resynced()])
        await let_it_think()
    await watcher.sees("p1", beat=8)
    await watcher.sees("p2")
    assert watcher.watched == ["p2"]
    assert watcher.lost == [ProcessorLost("p1", 7), ProcessorLost("p1", 8)]


@pytest.mark.parametrize("end", [ProcessorGone("p1"), Resynced()], ids=["gone", "resynced"])
@pytest.mark.parametrize("in_the_same_turn", [False, True])
async def test_one_that_is_gone_is_watched_no_more_and_a_proof_in_the_same_turn_says_nothing(
    watcher: Watcher, end: ProcessorGone | Resynced, in_the_same_turn: bool
) -> None:
    await watcher.sees("p1")
    if in_the_same_turn:
        watcher.proofs["p1"].set()
    watcher.probe.seen([end])
    await let_it_think()
    assert watcher.watched == []
    assert await watcher.dies("p1") == []
    assert watcher.lost == []
