"""A processor that serves several shards at once, in memory and on virtual time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from string import ascii_letters

import pytest

from hascheduler.model.collection import Collection as Stored
from hascheduler.model.job import JobState
from hascheduler.model.processor import process_of
from hascheduler.processor import Handlers, JobContext
from hascheduler.shards.offers import TURN_MS
from tests.tiers import spread
from tests.unit.shards.served_shards import Shard, World, played

DONE = (JobState.SUCCEEDED,)


class Ran:
    """Handlers that note what ran; ``log`` takes a moment, ``slow`` five seconds, ``long`` until it may go."""

    def __init__(self, moment_s: float = 0.1) -> None:
        self.jobs: Counter[str] = Counter()
        self.now: Counter[str] = Counter()
        self.most = self.most_gpus = 0
        self.may_go = asyncio.Event()
        self.handlers = Handlers()

        takes_s = {"log": moment_s, "slow": 5, "gpu": 3}
        for definition in ("log", "slow", "gpu", "long"):
            self.handlers.handler(definition)(partial(self._counted, takes_s.get(definition)))

    async def _counted(self, takes_s: float | None, job: JobContext) -> None:
        self.jobs[job.id] += 1
        self.now[job.definition] += 1
        self.most = max(self.most, self.now.total())
        self.most_gpus = max(self.most_gpus, self.now["gpu"])
        try:
            await (self.may_go.wait() if takes_s is None else asyncio.sleep(takes_s))
        finally:
            self.now[job.definition] -= 1


def story(names: str = "ab") -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """Make a test of a story of shards by these names."""
    return lambda told: lambda: played(told, names)


def all_done(*shards: Shard) -> bool:
    return all(job["state"] == JobState.SUCCEEDED for shard in shards for job in shard.database.documents(Stored.JOBS))


def seconds(world: World) -> float:
    return world.clock.mono_ms() / 1_000


@story()
async def test_both_shards_with_endless_work_get_about_half(world: World) -> None:
    ran, (a, b) = Ran(), world.shards
    for shard in (a, b):
        shard.submit(500)
    world.start(ran.handlers, slots=4)
    await world.until(lambda: len(a.jobs(*DONE)) + len(b.jobs(*DONE)) > 300)
    assert min(len(shard.jobs(*DONE)) for shard in (a, b)) > 120
    assert ran.most == 4


@pytest.mark.parametrize("definition", spread(["log", "slow"], check=1))
def test_one_slot_serves_eight_shards_that_all_have_endless_work(definition: str) -> None:
    async def story(world: World) -> None:
        ran = Ran(moment_s=1)
        for shard in world.shards:
            shard.submit(60, definition=definition)
        world.start(ran.handlers, slots=1)
        await world.until(lambda: all(shard.jobs(*DONE) for shard in world.shards))
        assert seconds(world) < 8 * 3 * TURN_MS / 1_000
        assert ran.most == 1

    played(story, "abcdefgh")


@story()
async def test_what_finds_no_free_slot_is_given_back_and_not_lost(world: World) -> None:
    ran, (a, b) = Ran(), world.shards
    served = world.start(ran.handlers, slots=2)
    await world.until(lambda: len(a.processors) == len(b.processors) == 1)
    a.submit(2, definition="long")
    await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 2)
    [late] = b.submit()  # into the slot that is still offered there
    await world.until(lambda: b.job(late)["attempt"] == 1)
    await world.until(lambda: b.job(late)["state"] == JobState.PENDING)
    assert served.processor.gauges().running == 2
    ran.may_go.set()
    await world.until(lambda: all_done(a, b))
    assert ran.jobs[late] == 1
    assert ran.most == 2


@story()
async def test_a_database_that_does_not_answer_leaves_all_slots_to_the_other_shard(world: World) -> None:
    ran, (a, b) = Ran(moment_s=1), world.shards
    ids = a.submit(4)
    served = world.start(ran.handlers, slots=4)
    await world.until(lambda: len(a.jobs(JobState.RUNNING)) == 2)
    served.connections[0].cut()
    b.submit(100)
    began_s = seconds(world)
    await world.until(lambda: all_done(b))
    assert seconds(world) - began_s < 100 / 4 + 8
    assert not served.processor.not_ready(), "it serves one shard"
    assert not served.processor.gauges().fence_open
    served.connections[0].restore()
    await world.until(lambda: all_done(a))
    assert ran.most == 4
    assert all(ran.jobs[id] in (1, 2) for id in ids)


@story("abc")
async def test_resources_are_offered_in_one_shard_at_a_time_and_go_round(world: World) -> None:
    ran = Ran()
    for shard in world.shards:
        shard.submit(12, definition="gpu")
    world.start(ran.handlers, slots=8, resources=(("gpu", 2),))
    while not all_done(*world.shards):
        assert sum(bool(each.resources) for shard in world.shards for each in shard.processors) <= 1
        await asyncio.sleep(0.05)
    assert ran.most_gpus == 2
    assert seconds(world) < 36 * 3 / 2 * 2


@story(ascii_letters[:12])
async def test_one_processor_alone_comes_to_serve_all_shards(world: World) -> None:
    served = world.start(Ran().handlers)
    for shard in world.shards:
        shard.submit()
    await world.until(lambda: all_done(*world.shards))
    assert len(served.greetings[-1]) == len(world.shards)


@story()
async def test_it_greets_with_an_id_for_each_shard_and_shows_the_gauges_of_all(world: World) -> None:
    ran, (a, b) = Ran(), world.shards
    a.submit(definition="long")
    b.submit(definition="long")
    served = world.start(ran.handlers, slots=2)
    await world.until(lambda: ran.now["long"] == 2 and served.processor.gauges().running == 2)
    ids = [shard.processors[0].id for shard in (a, b)]
    assert sorted(served.greetings[-1]) == sorted(ids) == ["p.1", "p.1-2"]
    assert {process_of(id) for id in ids} == {"p.1"}
    assert not served.processor.not_alive()
    assert served.processor.slots == 2
    assert served.processor.gauges().fence_open
    assert (served.processor.gauges().heartbeat_age_ms or 0) < 1_500
    ran.may_go.set()
    await served.drained()
