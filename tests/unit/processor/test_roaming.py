"""A processor that moves between shards, in memory and on virtual time."""

import asyncio
from collections import Counter
from string import ascii_letters

import pytest

from hascheduler.model.collection import Collection as Stored
from hascheduler.model.job import JobState
from hascheduler.model.processor import process_of, tenure_id
from hascheduler.ports.next_shard import SPREAD_MS
from hascheduler.processor import Handlers, JobContext
from hascheduler.processor.health import DRAINING, NOT_REGISTERED
from hascheduler.processor.roaming import MOVING
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.registry import text_of
from tests.unit.processor.shards import World, played

MANY = ascii_letters
DONE, HELD = (JobState.SUCCEEDED,), (JobState.DISPATCHED, JobState.RUNNING)


class Ran:
    """Handlers that note what ran; ``log`` takes a moment, ``long`` until it may go, and a second if it is stopped."""

    def __init__(self, moment_s: float = 0.1) -> None:
        self.jobs: Counter[str] = Counter()
        self.now = 0
        self.most = 0
        self.may_go = asyncio.Event()
        self.handlers = Handlers()

        @self.handlers.handler("log")
        async def log(job: JobContext) -> None:
            self.jobs[job.id] += 1
            await self._counted(asyncio.sleep(moment_s))

        @self.handlers.handler("long")
        async def long(job: JobContext) -> None:
            self.jobs[job.id] += 1
            await self._counted(self.may_go.wait())

    async def _counted(self, doing: object) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await doing  # type: ignore[misc]
        finally:
            self.now -= 1


def test_jobs_in_one_shard_bring_the_processor_there_from_the_other() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        a.submit()
        roaming = world.start(ran.handlers)
        await world.until(lambda: len(a.jobs(*DONE)) == 1)
        b.submit(3)
        await world.until(lambda: len(b.jobs(*DONE)) == 3)
        assert roaming.begun == ["a", "b"]
        assert world.clock.mono_ms() < 10_000
        await world.until(lambda: not a.processors)
        assert [processor.shard for processor in b.processors] == ["b"]
        await world.until(lambda: len(roaming.greetings) == 3)
        assert roaming.greetings == [["p.1"], ["p.1-2", "p.1"], ["p.1-2"]]
        await roaming.drained()
        assert not b.processors

    played(story)


def test_one_processor_serves_several_shards_that_all_have_endless_work() -> None:
    async def story(world: World) -> None:
        ran = Ran(moment_s=1)
        for shard in world.shards:
            shard.submit(1_000)
        world.start(ran.handlers)
        await world.until(lambda: all(shard.jobs(*DONE) for shard in world.shards))
        assert world.clock.mono_ms() < 60_000
        assert set(ran.jobs.values()) == {1}, "no attempt was stopped for a move"

    played(story, "abc")


def test_what_runs_long_ends_where_it_began_while_the_other_slots_serve_the_next_shard() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        [long] = a.submit(definition="long")
        roaming = world.start(ran.handlers, slots=2)
        await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 1)
        b.submit(50)
        await world.until(lambda: len(b.jobs(*DONE)) == 50)
        assert a.job(long)["state"] == JobState.RUNNING
        assert [(each.slots, each.draining) for each in (*a.processors, *b.processors)] == [(2, True), (1, False)]
        assert ran.most == 2
        assert roaming.processor.running == 1
        ran.may_go.set()
        await world.until(lambda: a.job(long)["state"] == JobState.SUCCEEDED)
        await world.until(lambda: not a.processors and b.processors[0].slots == 2)
        assert ran.jobs[long] == 1
        await world.until(lambda: list(roaming.greetings[-1]) == ["p.1-2"])

    played(story)


def test_a_processor_whose_slots_are_all_taken_begins_elsewhere_when_one_is_free() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        a.submit(2, definition="long")
        roaming = world.start(ran.handlers, slots=2)
        await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 2)
        b.submit()
        await world.until(lambda: roaming.processor.not_ready() == MOVING)
        assert not b.processors
        assert not roaming.processor.not_alive()
        ran.may_go.set()
        await world.until(lambda: len(b.jobs(*DONE)) == 1)
        assert ran.most == 2

    played(story)


def test_it_drains_in_the_middle_of_a_move() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        [long] = a.submit(definition="long")
        roaming = world.start(ran.handlers, slots=2)
        await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 1)
        [other] = b.submit(definition="long")
        await world.until(lambda: b.job(other)["state"] == JobState.RUNNING)
        roaming.processor.drain()
        assert roaming.processor.not_ready() == DRAINING
        began_ms = world.clock.mono_ms()
        await roaming.task
        assert world.clock.mono_ms() - began_ms < 15_000
        assert not a.processors
        assert not b.processors
        assert [a.job(long)["state"], b.job(other)["state"]] == [JobState.PENDING] * 2, (
            "what outlived the grace goes back"
        )

    played(story)


def test_it_drains_before_it_has_begun_anywhere() -> None:
    async def story(world: World) -> None:
        roaming = world.start(Ran().handlers)
        assert roaming.processor.not_ready() == MOVING
        await roaming.drained()
        assert not roaming.begun

    played(story)


def test_a_shard_whose_database_is_down_holds_up_no_other() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        a.submit(2, definition="long")
        roaming = world.start(ran.handlers, slots=2)
        await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 2)
        roaming.connections[0].cut()
        b.submit(5)
        await world.until(lambda: len(b.jobs(*DONE)) == 5)
        assert world.clock.mono_ms() < 10_000, "it is idle: it need not wait for its turn"
        assert ran.now == 0, "the fence has stopped what ran in the other shard"
        assert roaming.processor.shard == "b"
        assert not roaming.processor.not_ready()
        roaming.connections[0].mend()
        await world.until(lambda: not a.processors)

    played(story)


def test_it_begins_in_a_shard_that_is_there_if_another_is_down() -> None:
    async def story(world: World) -> None:
        ran = Ran()
        roaming = world.start(ran.handlers)
        roaming.connections[0].cut()
        await world.until(lambda: len(world.shards[1].processors) == 1)
        assert roaming.begun == ["b"]

    played(story)


@pytest.mark.parametrize("name", list("rstuv"))
def test_one_that_starts_takes_the_place_of_one_that_was_killed(name: str) -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(moment_s=0.5), world.shards
        for shard in world.shards:
            shard.submit(200)
        both = [world.start(ran.handlers, name=name) for name in ("p", "q")]
        await world.until(lambda: bool(a.jobs(*HELD) and b.jobs(*HELD)))
        killed = both[0]
        [left] = [shard for shard in world.shards if shard.name == killed.processor.shard]
        for connection in killed.connections:
            connection.cut()
        killed.task.cancel()
        successor = world.start(ran.handlers, name=name)
        await world.until(lambda: bool(successor.begun))
        assert successor.begun == [left.name]

    played(story)


def test_two_processors_take_a_shard_each_and_stay() -> None:
    async def story(world: World) -> None:
        ran = Ran(moment_s=1)
        for shard in world.shards:
            shard.submit(700)
        both = [world.start(ran.handlers, name=name) for name in ("p", "q")]
        await asyncio.sleep(60)
        assert {roaming.processor.shard for roaming in both} == {"a", "b"}
        moves = [len(roaming.begun) for roaming in both]
        await asyncio.sleep(90)
        assert [len(roaming.begun) for roaming in both] == moves
        assert set(ran.jobs.values()) == {1}

    played(story)


@pytest.mark.parametrize(("jobs", "most"), [(1_000, 8), (0, 32)])
def test_one_that_has_work_asks_seldom_where_other_jobs_wait(jobs: int, most: int) -> None:
    async def story(world: World) -> None:
        world.shards[0].submit(jobs)
        roaming = world.start(Ran().handlers, slots=1)
        await asyncio.sleep(20)
        before = roaming.demand.looks
        await asyncio.sleep(30)
        assert 0 < roaming.demand.looks - before <= most

    played(story)


def test_an_idle_one_asks_no_more_where_there_are_more_shards_and_sees_each_in_its_turn() -> None:
    async def story(world: World) -> None:
        ran = Ran()
        roaming = world.start(ran.handlers)
        await world.until(lambda: world.clock.mono_ms() > 20_000)
        assert roaming.demand.asked <= len(MANY) + 20 * 8
        for shard in world.shards[1::10]:
            begun_ms = world.clock.mono_ms()
            shard.submit()
            await world.until(lambda shard=shard: shard.jobs(*DONE))  # type: ignore[misc]
            # At most so long after it moved, then all 52 by eight a second, here among them.
            assert world.clock.mono_ms() - begun_ms < 6_000 + 1_000 * (len(MANY) // 7 + 2)

    played(story, MANY)


def test_a_shard_that_was_seen_some_time_ago_is_looked_at_again_before_it_moves_there() -> None:
    async def story(world: World) -> None:
        ran = Ran(moment_s=1)
        # Among those that it asks soon after its start, and not among the forty of its next look.
        for shard in world.shards[20], world.shards[24]:
            shard.submit(1_000)
        roaming = world.start(ran.handlers, jitter_ms=lambda: 0)
        await world.until(lambda: ran.now > 0 and world.clock.mono_ms() > SPREAD_MS)
        [other] = (shard for shard in (world.shards[20], world.shards[24]) if shard.name not in roaming.begun)
        for job in other.jobs(JobState.PENDING):
            other.database.delete(Stored.JOBS, job["_id"])
        looks = roaming.demand.looks
        await world.until(lambda: world.clock.mono_ms() > 14_000)
        assert roaming.demand.looks == looks + 2
        assert len(roaming.begun) == 1

    played(story, MANY)


def test_jobs_that_it_has_no_handler_for_do_not_move_it_nor_do_those_that_are_not_due() -> None:
    async def story(world: World) -> None:
        ran, (a, b) = Ran(), world.shards
        a.submit()
        roaming = world.start(ran.handlers)
        await world.until(lambda: len(a.jobs(*DONE)) == 1)
        b.submit(5, definition="other")
        b.submit(5, not_before_ms=world.clock.wall_ms() + 3_600_000)
        await asyncio.sleep(60)
        assert roaming.begun == ["a"]

    played(story)


def test_its_health_and_its_gauges_are_those_of_the_whole_process() -> None:
    async def story(world: World) -> None:
        ran, metrics, (a, b) = Ran(), ProcessorMetrics(), world.shards
        a.submit(definition="long")
        roaming = world.start(ran.handlers, slots=3)
        metrics.watch(roaming.processor.health)
        await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 1)
        b.submit(definition="long")
        await world.until(lambda: len(b.jobs(JobState.RUNNING)) == 1)
        text = text_of(metrics.registry).decode()
        assert "hascheduler_processor_running 2.0" in text
        assert "hascheduler_processor_slots_max 3.0" in text
        assert "hascheduler_processor_fence_open 1.0" in text
        assert roaming.processor.not_ready() in ("", NOT_REGISTERED)
        assert not roaming.processor.not_alive()
        assert roaming.processor.not_leading()
        await roaming.drained()
        assert roaming.processor.not_ready() == DRAINING

    played(story)


@pytest.mark.parametrize("process", ["p.0a1b2c3d", "a-b.c.0a1b2c3d"])
def test_the_ids_of_all_tenures_tell_their_process(process: str) -> None:
    ids = [tenure_id(process, number) for number in (1, 2, 30)]
    assert len(set(ids)) == 3
    assert [process_of(id) for id in ids] == [process] * 3
