"""Schedules, verdicts, processors and failovers of several shards."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.errors import InvalidInput, StoreUnavailable, Unreachable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.processor import shard_in, with_shard
from hascheduler.model.routing import slot_of, with_slot
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import (
    AttemptOutcome,
    FinishAnswer,
    HandlerProgress,
    ListPosition,
    StopRequests,
    VerdictSelection,
)
from hascheduler.sharding.asking import outages_of
from hascheduler.testing.memory.claims import MemoryClaimStore
from tests.factories import NOW, make_failover, make_job, make_processor, make_schedule, make_template
from tests.unit.sharding.deployment import HOME, ONE, RETENTION_MS, ROUTING, SHARDS, TWO, Deployment

AT = WallMs(NOW + 100)
TENANTS = (HOME, ONE, TWO)
SUCCEEDED = AttemptOutcome(JobState.SUCCEEDED)


async def schedules_of_each(deployment: Deployment, count: int) -> list[str]:
    names = [f"s{number:02}" for number in range(count)]
    for number, name in enumerate(names):
        template = make_template(tenant=TENANTS[number % 3])
        assert await deployment.schedules.create(make_schedule(name, template=template)) is not None
    return names


# Schedules


@pytest.mark.parametrize("limit", [1, 2, 5, 20])
async def test_schedules_are_listed_by_name(limit: int) -> None:
    deployment = Deployment()
    names = await schedules_of_each(deployment, 8)
    listed: list[str] = []
    after: str | None = None
    while page := await deployment.schedules.list(after, limit):
        listed += [str(one["_id"]) for one in page]
        after = listed[-1]
    assert listed == names
    wanted = [names[4], names[0], "gone", names[2]]
    found = await deployment.schedules.among(wanted, {}, limit)
    assert [one["_id"] for one in found] == [names[0], names[2], names[4]][:limit]
    assert sorted(await deployment.schedules.names_among(wanted, {}, tenant=ONE)) == [names[4]]
    assert await deployment.schedules.count(TWO, limit) == min(limit, 2)


# Verdicts


@pytest.mark.parametrize("limit", [1, 2, 5, 20])
async def test_verdicts_of_all_shards_come_by_when_they_were_decided(limit: int) -> None:
    deployment = Deployment()
    names = await schedules_of_each(deployment, 3)
    expected = []
    for number in range(9):
        name, decided_at_ms = names[number % 3], WallMs(NOW + number // 2)
        run = VerdictRun(name, Verdict.MISSED, WallMs(NOW + number), WallMs(NOW + number), 1)
        document = verdict_document(run, decided_at_ms, NOW)
        deployment.insert(number % 3, Collection.VERDICTS, document)
        expected.append((decided_at_ms, str(document["_id"])))
    found = []
    after: ListPosition | None = None
    while True:
        page = await deployment.verdicts.of_all(VerdictSelection((Verdict.MISSED,)), after, limit)
        found += [(one.decided_at_ms, f"{one.run.schedule}:{one.run.first_ms}") for one in page.verdicts]
        if page.next is None:
            break
        after = page.next
    assert found == sorted(expected, reverse=True)
    own = await deployment.verdicts.of_all(VerdictSelection((Verdict.MISSED,), tenant=ONE), None, 9)
    assert {one.run.schedule for one in own.verdicts} == {names[1]}
    schedule = ScheduleId(names[1], ONE, NOW)
    records = await deployment.verdicts.list(schedule, [Verdict.MISSED], WallMs(0), AT, 9)
    assert [record.run.first_ms - NOW for record in records] == [7, 4, 1]


async def test_verdicts_of_a_schedule_that_moves_are_those_of_both_shards() -> None:
    deployment = Deployment()
    for index, number in ((1, 1), (1, 3), (2, 2)):
        run = VerdictRun("tick", Verdict.MISSED, WallMs(NOW + number), WallMs(NOW + number), 1)
        deployment.insert(index, Collection.VERDICTS, verdict_document(run, NOW, NOW))
    arrived = ROUTING.beginning({slot_of(ONE): 2}).arrived(slot_of(ONE))
    deployment.places.follow(lambda: arrived)
    found = await deployment.verdicts.list(ScheduleId("tick", ONE, NOW), [Verdict.MISSED], WallMs(0), AT, 2)
    assert [record.run.first_ms - NOW for record in found] == [3, 2]


# Processors


async def dispatched(deployment: Deployment, tenant: str, processor: str) -> str:
    index = deployment.places.of_tenant(tenant)
    job = make_job(with_slot("job", tenant), tenant=tenant)
    await deployment.jobs.submit(job)
    claims = MemoryClaimStore(deployment.connections[index], RETENTION_MS)
    assert await claims.apply([Dispatch(job.id, 1, processor)], AT, majority=True) == [Settlement.DONE]
    return job.id


def test_an_id_tells_the_shard_that_it_was_given() -> None:
    assert shard_in(with_shard("http:7f3a", "0001")) == "0001"
    assert shard_in(with_shard("http:a@b", "default")) == "default"
    assert [shard_in(id) for id in ("p1", "http:7f3a", "p@", "p@UPPER", "p@a b")] == [None] * 5


async def test_a_processor_is_of_one_shard_and_lives_there() -> None:
    deployment = Deployment()
    id = with_shard("http:p", SHARDS[1])
    assert await deployment.work.touch(id) is False
    await deployment.work.register(make_processor(id, shard=SHARDS[1]))
    assert deployment.shards_with(Collection.PROCESSORS, id) == [1]
    for number in (0, 2):
        deployment.connections[number].cut()
    assert await deployment.work.touch(id, draining=True) is True
    assert await deployment.work.beat(id, 9, draining=False, parked=0) is True
    await deployment.work.deregister(id)
    assert deployment.shards_with(Collection.PROCESSORS, id) == []


async def test_a_processor_of_an_unknown_shard_or_with_the_id_of_another_is_refused() -> None:
    deployment = Deployment()
    with pytest.raises(InvalidInput, match="expected default, 0001, 0002"):
        await deployment.work.register(make_processor("http:p", shard="0007"))
    with pytest.raises(InvalidInput, match="of another shard"):
        await deployment.work.register(make_processor(with_shard("http:p", SHARDS[2]), shard=SHARDS[1]))


async def test_a_processor_can_do_nothing_with_a_job_of_another_shard() -> None:
    deployment = Deployment()
    processor = with_shard("http:p", SHARDS[1])
    job = await dispatched(deployment, TWO, processor)  # no leader would
    before = await deployment.jobs.get(job)
    work = deployment.work
    assert await work.start(job, 1, processor, AT) is None
    assert await work.finish(job, 1, processor, SUCCEEDED, AT) is FinishAnswer.LATE
    assert await work.give_back(job, 1, processor, "x", AT) is False
    await work.report(processor, {(job, 1): HandlerProgress(1.0, "", AT)})
    await work.report_overdue(processor, {(job, 1): AT})
    assert await work.stop_requests(processor, [(job, 1)]) == StopRequests(frozenset(), frozenset({(job, 1)}))
    assert await deployment.jobs.get(job) == before


@pytest.mark.parametrize("processor", [with_shard("http:p", SHARDS[1]), "http:p", with_shard("http:p", "gone")])
async def test_a_processor_runs_the_jobs_of_its_shard_also_if_its_id_tells_none(processor: str) -> None:
    deployment = Deployment()
    job = await dispatched(deployment, ONE, processor)
    work = deployment.work
    await work.register(make_processor(processor, shard=SHARDS[1]))
    assert await work.touch(processor) is True
    assert await work.start(job, 1, processor, AT) is not None
    await work.report(processor, {(job, 1): HandlerProgress(50.0, "half", AT)})
    await work.report_overdue(processor, {(job, 1): AT})
    stored = await deployment.jobs.get(job)
    assert stored is not None
    assert (stored["progress"]["text"], stored["overdue_attempt"]) == ("half", 1)
    asked = [(job, 1), ("nobody", 1)]
    assert await work.stop_requests(processor, asked) == StopRequests(frozenset(), frozenset({("nobody", 1)}))
    await deployment.jobs.cancel(job, AT)
    assert (await work.stop_requests(processor, asked)).cancelled == {(job, 1)}
    assert await work.finish(job, 1, processor, SUCCEEDED, AT) is FinishAnswer.DONE
    await work.deregister(processor)
    assert await work.touch(processor) is False


# Failovers


async def test_failovers_of_all_shards_come_by_when_they_could_decide() -> None:
    deployment = Deployment()
    for shard, term, at in (("default", 1, 10), ("0002", 7, 20), ("default", 2, 30), ("0001", 3, 40), ("0002", 8, 15)):
        await deployment.failovers.save(replace(make_failover(term, shard=shard), deciding_at_ms=WallMs(NOW + at)))
    told = await deployment.failovers.newest("default", 9)
    # The clock went back in 0002: its terms keep their order.
    assert [(one.shard, one.term) for one in told] == [
        ("0001", 3), ("default", 2), ("0002", 8), ("0002", 7), ("default", 1),
    ]  # fmt: skip
    assert [one.term for one in await deployment.failovers.newest("default", 2)] == [3, 2]


# Outages


async def test_a_list_of_all_names_the_shard_that_is_down() -> None:
    deployment = Deployment()
    deployment.connections[2].cut()
    for ask in (
        lambda: deployment.verdicts.of_all(VerdictSelection((Verdict.MISSED,)), None, 9),
        lambda: deployment.failovers.newest("default", 9),
        lambda: deployment.work.deregister("http:p"),
    ):
        with pytest.raises(StoreUnavailable, match="shard 0002: "):
            await ask()


async def test_a_mistake_in_the_settings_stays_one() -> None:
    with pytest.raises(Unreachable, match="shard 0001: no such host; expected another") as told, outages_of("0001"):
        raise Unreachable(InvalidInput(("MONGODB_URI",), "no such host", "another"), stays=True)
    assert told.value.stays
