"""Proof of a processor's death, on real sockets; what counts as proof has its tests in test_leader_probe."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.leadership.liveness import wait_for_death_by_connection
from hascheduler.daemon.loop.processor_probe import ProcessorProbe
from hascheduler.dispatch.inputs import ProcessorLost, Resynced
from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from tests.factories import make_processor
from tests.unit.daemon.test_leader_probe import HOST, process

pytestmark = pytest.mark.usefixtures("briskly")


class Watcher:
    """A probe that runs, what it has concluded, and the proofs that it waits for."""

    def __init__(self) -> None:
        self.lost: list[ProcessorLost] = []
        self.watched: list[str] = []
        """The ids of processors whose proof it waits for now."""
        self.looks = 0
        self.changed = asyncio.Event()
        self.probe = ProcessorProbe(self._died, self._wait_for_death)
        self.running = asyncio.create_task(self.probe.run())

    def _died(self, lost: ProcessorLost) -> None:
        self.lost.append(lost)
        self.changed.set()

    async def _wait_for_death(self, id: str, endpoint: str) -> None:
        self.watched.append(id)
        self.changed.set()
        try:
            await wait_for_death_by_connection(id, endpoint)
        finally:
            self.watched.remove(id)
            self.changed.set()

    def sees(self, id: str, endpoint: str | int, **what: Any) -> None:
        where = f"{HOST}:{endpoint}" if isinstance(endpoint, int) else endpoint
        self.probe.seen([ProcessorSeen(make_processor(id, liveness_endpoint=where, **what))])

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def looks_again(self, times: int) -> None:
        """Wait until it has tried to connect so many times more."""
        goal = self.looks + times
        await self.until(lambda: self.looks >= goal)


@pytest.fixture
async def watcher(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watcher]:
    one = Watcher()
    connect = asyncio.open_connection

    async def counted(*where: Any, **how: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        one.looks += 1
        one.changed.set()
        return await connect(*where, **how)

    monkeypatch.setattr(asyncio, "open_connection", counted)
    yield one
    assert not one.running.done(), "the probe ended"
    one.running.cancel()
    await asyncio.wait({one.running})


@pytest.fixture
def greeted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], asyncio.Event]:
    """Makes an event for the next greeting that is read."""
    heard: list[asyncio.Event] = []
    readline = asyncio.StreamReader.readline

    async def noted(reader: asyncio.StreamReader) -> bytes:
        line = await readline(reader)
        for event in heard:
            event.set()
        return line

    monkeypatch.setattr(asyncio.StreamReader, "readline", noted)

    def next_one() -> asyncio.Event:
        heard.append(asyncio.Event())
        return heard[-1]

    return next_one


Greeted = Callable[[], asyncio.Event]


async def comes(event: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await event.wait()


async def let_it_think() -> None:
    """Turns of the loop in which a probe that has something to do would have done it."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_processor_that_greeted_and_whose_port_refuses_is_lost_with_its_newest_beat(
    watcher: Watcher, greeted: Greeted
) -> None:
    met = greeted()
    async with process("p1") as one:
        watcher.sees("p1", one.port, beat=1)
        await comes(met)
        watcher.sees("p1", one.port, beat=7)
        assert watcher.lost == []
    with capture_logs() as lines:
        await watcher.until(lambda: bool(watcher.lost))
    assert watcher.lost == [ProcessorLost("p1", 7)]
    assert [line["event"] for line in lines] == ["processor_died"]


@pytest.mark.parametrize("resynced", [False, True])
async def test_a_beat_of_a_dead_one_that_arrives_later_does_not_bring_it_back(
    watcher: Watcher, greeted: Greeted, resynced: bool
) -> None:
    met = greeted()
    async with process("p1") as one:
        watcher.sees("p1", one.port, beat=7)
        await comes(met)
    await watcher.until(lambda: bool(watcher.lost))
    if resynced:
        watcher.probe.seen([Resynced()])
    watcher.sees("p1", one.port, beat=8)
    await let_it_think()
    assert watcher.lost == [ProcessorLost("p1", 7), ProcessorLost("p1", 8)]
    assert watcher.watched == []


async def test_each_processor_is_proved_dead_by_itself(watcher: Watcher, greeted: Greeted) -> None:
    async with process("lives") as living:
        met = greeted()
        watcher.sees("lives", living.port)
        await comes(met)
        met = greeted()
        async with process("dies") as dying:
            watcher.sees("dies", dying.port)
            await comes(met)
        await watcher.until(lambda: bool(watcher.lost))
        assert [lost.id for lost in watcher.lost] == ["dies"]
        assert watcher.watched == ["lives"]


async def test_one_without_an_endpoint_is_not_watched(watcher: Watcher) -> None:
    watcher.sees("p1", "")
    await let_it_think()
    assert (watcher.watched, watcher.looks) == ([], 0)


@pytest.mark.parametrize("end", [ProcessorGone("p1"), Resynced()], ids=["gone", "resynced"])
async def test_one_that_is_gone_is_watched_no_more(
    watcher: Watcher, greeted: Greeted, end: ProcessorGone | Resynced
) -> None:
    met = greeted()
    async with process("p1") as one:
        watcher.sees("p1", one.port)
        await comes(met)
        watcher.probe.seen([end])
        await watcher.until(lambda: not watcher.watched)
    await let_it_think()
    assert watcher.lost == []


@pytest.mark.parametrize("end", [ProcessorGone("p1"), Resynced()], ids=["gone", "resynced"])
async def test_a_proof_in_the_same_turn_as_the_deregistration_says_nothing(end: ProcessorGone | Resynced) -> None:
    proof = asyncio.Event()
    waits = asyncio.Event()
    lost: list[ProcessorLost] = []

    async def wait_for_proof(_id: str, _endpoint: str) -> None:
        waits.set()
        await proof.wait()

    probe = ProcessorProbe(lost.append, wait_for_proof)
    running = asyncio.create_task(probe.run())
    probe.seen([ProcessorSeen(make_processor("p1", liveness_endpoint="h:1"))])
    await comes(waits)
    proof.set()
    probe.seen([end])
    with capture_logs() as lines:
        await let_it_think()
    assert (running.done(), lost, lines) == (False, [], [])
    running.cancel()
    await asyncio.wait({running})


async def test_one_that_dies_while_it_drains_is_lost_but_no_warning(watcher: Watcher, greeted: Greeted) -> None:
    met = greeted()
    async with process("p1") as one:
        watcher.sees("p1", one.port, draining=True)
        await comes(met)
    with capture_logs() as lines:
        await watcher.until(lambda: bool(watcher.lost))
    assert [(line["event"], line["log_level"]) for line in lines] == [("processor_ended", "info")]


@pytest.mark.parametrize(
    "endpoint", ["nowhere", ":", f"{HOST}:", f"{HOST}:99999", f"{HOST}:-1", "\0:1", "x" * 300 + ":1"]
)
async def test_an_endpoint_that_is_none_ends_nothing(watcher: Watcher, greeted: Greeted, endpoint: str) -> None:
    watcher.sees("nonsense", endpoint)
    await watcher.until(lambda: "nonsense" in watcher.watched)
    await let_it_think()
    met = greeted()
    async with process("p1") as one:
        watcher.sees("p1", one.port)
        await comes(met)
    await watcher.until(lambda: bool(watcher.lost))
    assert [lost.id for lost in watcher.lost] == ["p1"]
