"""Jobs, schedules and work over several shards, where it matters that there are several."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hascheduler.errors import InvalidInput, Moving, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.processor import ProcessorRef, shard_in, with_shard
from hascheduler.model.routing import slot_of, with_slot
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, ListPosition, SubmitAnswer
from hascheduler.ports.sharding import UNUSED_FOR_MS
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.factories import NOW, make_job, make_schedule, make_template
from tests.tiers import examples
from tests.unit.sharding.deployment import HOME, ONE, ROUTING, SHARDS, TWO, Deployment

TENANTS = (HOME, ONE, TWO)


class Unhurried(MemoryConnection):
    """Each exchange takes as long as chance has it, so that concurrent ones come in any order."""

    def __init__(self, database: MemoryDatabase, chance: random.Random) -> None:
        super().__init__(database)
        self._chance = chance

    @asynccontextmanager
    async def exchange(self, name: str) -> AsyncIterator[MemoryDatabase]:
        for _ in range(self._chance.randrange(8)):
            await asyncio.sleep(0)
        async with super().exchange(name) as database:
            yield database


class Shards(Deployment):
    """Three shards in memory, and what is of the tenant of one of them."""

    def __init__(self, seed: int = 0) -> None:
        chance = random.Random(seed)
        super().__init__([Unhurried(MemoryDatabase(), chance) for _ in SHARDS])

    def job(self, name: str, shard: int, **more: Any) -> Any:
        return make_job(with_slot(name, TENANTS[shard]), tenant=TENANTS[shard], **more)

    def schedule(self, name: str, shard: int) -> dict[str, Any]:
        return make_schedule(name, template=make_template(tenant=TENANTS[shard]))


@pytest.fixture
def deployment() -> Shards:
    return Shards()


# Jobs


async def test_each_job_is_in_the_shard_of_its_tenant_and_found_there(deployment: Shards) -> None:
    jobs = [deployment.job(f"job:{n}", n % 3) for n in range(9)]
    answers = await deployment.jobs.submit_many(jobs)
    assert [answer.document["_id"] for answer in answers] == [job.id for job in jobs]
    for number, job in enumerate(jobs):
        assert deployment.shards_with(Collection.JOBS, job.id) == [number % 3]
        assert (await deployment.jobs.get(job.id) or {})["_id"] == job.id
        assert await deployment.jobs.cancel(job.id, NOW) is not None
    assert await deployment.jobs.get("job:none") is None
    assert await deployment.jobs.cancel(with_slot("job:none", TENANTS[1]), NOW) is None


async def test_a_list_goes_through_all_shards_once_while_jobs_come_and_end(deployment: Shards) -> None:
    for n in range(30):
        await deployment.jobs.submit(deployment.job(f"job:{n:02d}", n % 3, submitted_at_ms=WallMs(NOW + n // 4)))
    seen: list[str] = []
    after: ListPosition | None = None
    for turn in itertools.count():
        page = await deployment.jobs.list(JobSelection(), after, 4)
        seen += [document["_id"] for document in page.documents]
        await deployment.jobs.submit(
            deployment.job(f"job:late{turn}", turn % 3, submitted_at_ms=WallMs(NOW + 1_000 + turn))
        )
        await deployment.jobs.cancel(seen[-1], NOW)
        after = page.next
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 30
    assert [id.partition("~")[0] for id in seen] == sorted((id.partition("~")[0] for id in seen), reverse=True)


async def test_one_write_for_all_is_in_one_shard_or_refused_with_the_names_of_both(deployment: Shards) -> None:
    near = [deployment.job("job:1", 1), deployment.job("job:2", 1)]
    assert await deployment.jobs.submit_all(near) is not None
    with pytest.raises(InvalidInput, match=r"in shard 0002, and tenant .* in 0001"):
        await deployment.jobs.submit_all([deployment.job("job:3", 1), deployment.job("job:4", 2)])
    assert deployment.shards_with(Collection.JOBS, deployment.job("job:3", 1).id) == []


async def test_a_job_waits_for_jobs_of_its_own_shard_alone(deployment: Shards) -> None:
    first, near, far = deployment.job("job:1", 1), deployment.job("job:2", 1), deployment.job("job:3", 2)
    await deployment.jobs.submit(first)
    waiting = {"depends_on": (first.id,), "waits_for": (first.id,)}
    assert (await deployment.jobs.submit(deployment.job("job:2", 1, **waiting))).answer is SubmitAnswer.NEW
    with pytest.raises(InvalidInput, match=r"is in shard 0001, and what is tenant .* in 0002") as refused:
        await deployment.jobs.submit(deployment.job("job:3", 2, **waiting))
    assert refused.value.path == ("depends_on", 0)
    with pytest.raises(InvalidInput):
        await deployment.jobs.submit_many([near, deployment.job("job:3", 2, **waiting)])
    assert deployment.shards_with(Collection.JOBS, far.id) == []
    # One that is no more is no reason to refuse.
    gone = {"depends_on": ("job:gone",), "waits_for": ()}
    assert (await deployment.jobs.submit(deployment.job("job:4", 2, **gone))).answer is SubmitAnswer.NEW


async def test_what_matches_is_changed_in_all_shards_up_to_the_limit(deployment: Shards) -> None:
    await deployment.jobs.submit_many([deployment.job(f"job:{n}", n % 3) for n in range(9)])
    assert (await deployment.jobs.cancel_some(JobSelection(tenant=TENANTS[0]), NOW, 9)).cancelled == 3
    assert (await deployment.jobs.cancel_some(JobSelection(), NOW, 4)).cancelled == 4
    assert (await deployment.jobs.cancel_some(JobSelection(), NOW, 4)).cancelled == 2
    assert await deployment.jobs.retry_some(JobSelection(states=(JobState.CANCELLED,)), NOW, 5) == 5
    assert await deployment.jobs.reprioritize_some(JobSelection(), 7, 100) == 5
    assert await deployment.jobs.count(JobSelection(), (JobState.PENDING,), 100) == 5
    assert await deployment.jobs.count(JobSelection(), (JobState.PENDING,), 3) == 3
    counts = await deployment.jobs.counts(JobSelection(), 4)
    assert counts.by_state[JobState.CANCELLED] == counts.by_state[JobState.PENDING] == 4
    assert counts.at_least == {JobState.PENDING}


class Away:
    """A shard whose database does not answer."""

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def away(*_: Any, **__: Any) -> Any:
            raise StoreUnavailable("it is away")

        return away


async def test_a_shard_that_is_away_takes_its_own_tenants_along_and_no_others(deployment: Shards) -> None:
    await deployment.jobs.submit(deployment.job("job:1", 1))
    deployment.jobs._shards = [*deployment.jobs._shards[:2], Away()]
    await deployment.jobs.submit(deployment.job("job:2", 1))
    assert await deployment.jobs.get(deployment.job("job:1", 1).id) is not None
    assert len((await deployment.jobs.list(JobSelection(tenant=TENANTS[1]), None, 9)).documents) == 2
    for asked in (deployment.jobs.submit(deployment.job("job:3", 2)), deployment.jobs.list(JobSelection(), None, 9)):
        with pytest.raises(StoreUnavailable):
            await asked


# Schedules: a name is one schedule's in the whole deployment


async def test_a_name_is_taken_in_all_shards(deployment: Shards) -> None:
    assert await deployment.schedules.create(deployment.schedule("nightly", 1)) is not None
    for shard in range(3):
        assert await deployment.schedules.create(deployment.schedule("nightly", shard)) is None
    assert deployment.shards_with(Collection.SCHEDULES, "nightly") == [1]
    assert (await deployment.schedules.get("nightly") or {})["job"]["tenant"] == TENANTS[1]
    assert await deployment.schedules.delete("nightly")
    assert await deployment.schedules.create(deployment.schedule("nightly", 2)) is not None
    assert deployment.shards_with(Collection.SCHEDULES, "nightly") == [2]


@pytest.mark.parametrize("seed", range(examples(160)))
async def test_whatever_is_done_at_once_a_name_is_in_one_shard_at_most(seed: int) -> None:
    """Creates and deletes of three tenants, in an order that differs by seed at each of their exchanges."""
    deployment = Shards(seed)
    for _ in range(6):
        await asyncio.gather(
            *(deployment.schedules.create(deployment.schedule("nightly", shard)) for shard in (0, 1, 2, seed % 3)),
            deployment.schedules.delete("nightly"),
        )
        found = deployment.shards_with(Collection.SCHEDULES, "nightly")
        assert len(found) <= 1
        assert (await deployment.schedules.get("nightly") is not None) == bool(found)
        for shard in range(3):
            if found:
                assert await deployment.schedules.create(deployment.schedule("nightly", shard)) is None
        deployment.clock.now = WallMs(deployment.clock.now + UNUSED_FOR_MS)


async def test_a_reservation_that_was_left_is_its_tenants_at_once_and_anothers_after_a_while(
    deployment: Shards,
) -> None:
    await deployment.names.reserve("nightly", TENANTS[1], None, NOW)
    assert await deployment.schedules.create(deployment.schedule("nightly", 2)) is None
    deployment.clock.now = WallMs(NOW + UNUSED_FOR_MS - 1)
    assert await deployment.schedules.create(deployment.schedule("nightly", 2)) is None
    deployment.clock.now = WallMs(NOW + UNUSED_FOR_MS)
    assert await deployment.schedules.create(deployment.schedule("nightly", 2)) is not None
    await deployment.names.reserve("weekly", TENANTS[1], None, deployment.clock.now)
    assert await deployment.schedules.create(deployment.schedule("weekly", 1)) is not None


async def test_a_name_of_which_another_shard_has_jobs_stays_taken(deployment: Shards) -> None:
    await deployment.schedules.create(deployment.schedule("nightly", 1))
    await deployment.jobs.submit(make_job("fire:nightly:1", tenant=TENANTS[1], schedule="nightly"))
    await deployment.schedules.delete("nightly")
    assert await deployment.schedules.create(deployment.schedule("nightly", 2)) is None
    deployment.clock.now = WallMs(NOW + UNUSED_FOR_MS)
    assert await deployment.schedules.create(deployment.schedule("nightly", 1)) is not None


async def test_a_schedule_stays_in_its_slot(deployment: Shards) -> None:
    await deployment.schedules.create(deployment.schedule("nightly", 1))
    with pytest.raises(InvalidInput, match=r"in shard 0002, and tenant .* in 0001") as refused:
        await deployment.schedules.edit("nightly", 1, {"job": deployment.schedule("nightly", 2)["job"]})
    assert refused.value.path == ("job", "tenant")
    assert await deployment.schedules.edit("nightly", 1, {"job": deployment.schedule("nightly", 1)["job"]}) is not None


async def test_a_schedule_comes_to_look_at_its_live_jobs_once_all_of_them_are_in_one_shard(deployment: Shards) -> None:
    await deployment.schedules.create(deployment.schedule("nightly", 1))
    moving = ROUTING.beginning({slot_of(ONE): 2})
    deployment.schedules._places.follow(lambda: moving)
    skipping = {"policy": {"overlap": "skip"}}
    with pytest.raises(Moving, match="moves to another shard"):
        await deployment.schedules.edit("nightly", 1, skipping)
    assert await deployment.schedules.edit("nightly", 1, {"policy": {"overlap": "allow"}}) is not None
    deployment.schedules._places.follow(lambda: ROUTING)
    assert await deployment.schedules.edit("nightly", 2, skipping) is not None
    deployment.schedules._places.follow(lambda: moving)
    assert await deployment.schedules.edit("nightly", 3, {"policy": {"overlap": "buffer_one"}}) is not None


async def test_a_schedule_without_a_reservation_is_found(deployment: Shards) -> None:
    deployment.connections[2].database.insert(Collection.SCHEDULES, deployment.schedule("nightly", 2))
    assert await deployment.schedules.get("nightly") is not None
    assert await deployment.schedules.create(deployment.schedule("nightly", 1)) is None
    assert await deployment.schedules.delete("nightly")


async def test_lists_of_schedules_are_by_name(deployment: Shards) -> None:
    for number, name in enumerate("fbdace"):
        await deployment.schedules.create(deployment.schedule(name, number % 3))
    assert [each["_id"] for each in await deployment.schedules.list(None, 4)] == list("abcd")
    assert [each["_id"] for each in await deployment.schedules.list("b", 9)] == list("cdef")
    assert [each["_id"] for each in await deployment.schedules.list(None, 9, tenant=TENANTS[1])] == [
        "b",
        "c",
    ]
    assert [each["_id"] for each in await deployment.schedules.among(["e", "a", "x"], {}, 9)] == ["a", "e"]
    assert sorted(await deployment.schedules.names_among(["e", "a", "x"], {})) == ["a", "e"]
    assert await deployment.schedules.count(TENANTS[0], 9) == 2


# Work


async def test_a_processor_works_for_the_shard_that_its_id_tells_and_no_other(deployment: Shards) -> None:
    id = with_shard("http:resizer.1", "0001")
    assert shard_in(id) == "0001"
    assert shard_in("http:resizer.1") is shard_in("resizer@0001.1") is None
    await deployment.work.register(ProcessorRef(id, "resizer", "0001", frozenset({"log"}), 1, 1, False, 0))
    assert deployment.shards_with(Collection.PROCESSORS, id) == [1]
    assert await deployment.work.touch(id)
    for shard in range(3):
        job = deployment.job(f"job:{shard}", shard)
        await deployment.jobs.submit(job)
        stored = deployment.connections[shard].database.find(Collection.JOBS, job.id)
        assert stored is not None
        dispatched = {"state": "dispatched", "attempt": 1, "processor": id, "rev": stored["rev"] + 1}
        deployment.connections[shard].database.update(Collection.JOBS, stored, dispatched)
        started = await deployment.work.start(job.id, 1, id, NOW)
        assert (started is not None) == (shard == 1)
    await deployment.work.deregister(id)
    assert deployment.shards_with(Collection.PROCESSORS, id) == []
