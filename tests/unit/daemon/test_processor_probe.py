"""What follows from the proof of a processor's death; what counts as proof has its tests in test_leader_probe."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.loop.processor_probe import ProcessorProbe
from hascheduler.dispatch.inputs import ProcessorLost, Resynced
from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from tests.factories import make_processor


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
        await self.thinks()

    async def dies(self, id: str) -> list[dict[str, Any]]:
        """Return the log lines of it."""
        with capture_logs() as lines:
            self.proofs[id].set()
            await self.thinks()
        return [dict(line) for line in lines]

    async def thinks(self) -> None:
        """Turns of the loop in which a probe that has something to do has done it."""
        for _ in range(50):
            await asyncio.sleep(0)


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
        await watcher.thinks()
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
    await watcher.thinks()
    assert watcher.watched == []
    assert await watcher.dies("p1") == []
    assert watcher.lost == []
