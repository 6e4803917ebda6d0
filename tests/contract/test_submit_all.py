"""Jobs that are submitted together: all of them, or none."""

import asyncio

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.documents.job import IDEMPOTENCY_MS
from hascheduler.model.event import EventType
from hascheduler.model.job import NewJob
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.following import changes_through, opened_at_the_end
from tests.contract.job_states import stored
from tests.contract.writing import mark
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo", "motor")


def keyed(*ids: str, tried: int = 0, asked: str = "h", at_ms: int = NOW) -> list[NewJob]:
    """Each under a key of its own, the same at each try."""
    return [
        make_job(
            f"{id}{tried}", idempotency_key=f"k#{place}", request_hash=asked, batch="b", submitted_at_ms=WallMs(at_ms)
        )
        for place, id in enumerate(ids)
    ]


async def ids_of(backend: Backend) -> list[str]:
    return sorted(job["_id"] for job in (await backend.jobs.list(JobSelection(), None, 99)).documents)


async def test_all_are_new_and_stored_as_each_alone_would_be(backend: Backend) -> None:
    submissions = await backend.jobs.submit_all([make_job("a"), make_job("b", waits_for=("a",))])
    assert submissions is not None
    assert [(each.answer, each.document["_id"]) for each in submissions] == [("new", "a"), ("new", "b")]
    await backend.jobs.submit(make_job("c", waits_for=("a",)))
    assert {**await stored(backend, "b"), "_id": "c", "target": "target"} == await stored(backend, "c")


async def test_one_that_is_known_keeps_all_back(backend: Backend) -> None:
    await backend.jobs.submit(make_job("x", idempotency_key="k#1", request_hash="h"))
    assert await backend.jobs.submit_all(keyed("a", "b", "c")) is None
    await backend.jobs.submit(make_job("b0"))
    assert await backend.jobs.submit_all([make_job("a0"), make_job("b0"), make_job("c0")]) is None
    assert await ids_of(backend) == ["b0", "x"]


async def test_a_repeated_one_meets_what_it_has_made(backend: Backend) -> None:
    await backend.jobs.submit_all(keyed("a", "b"))
    again = await backend.jobs.submit_all(keyed("a", "b", tried=1))
    assert again is not None
    assert [(each.answer, each.document["_id"]) for each in again] == [("known", "a0"), ("known", "b0")]
    for other in (keyed("a", "b", tried=2, asked="i"), keyed("a", "b", "c", tried=2)):
        assert await backend.jobs.submit_all(other) is None
    assert await ids_of(backend) == ["a0", "b0"]
    later = await backend.jobs.submit_all(keyed("a", "b", tried=3, at_ms=NOW + IDEMPOTENCY_MS))
    assert later is not None
    assert {each.answer for each in later} == {SubmitAnswer.NEW}


async def test_of_many_at_once_one_makes_them(backend: Backend) -> None:
    tries = (backend.jobs.submit_all(keyed("a", "b", "c", tried=tried)) for tried in range(6))
    answers = [{(each.answer, each.document["_id"][-1]) for each in one or ()} for one in await asyncio.gather(*tries)]
    [made] = {tried for answer in answers for said, tried in answer if said is SubmitAnswer.NEW}
    assert sorted(len(answer) for answer in answers) == [1] * 6
    assert await ids_of(backend) == [f"{id}{made}" for id in "abc"]


async def test_one_that_cannot_be_stored_keeps_all_back(backend: Backend) -> None:
    with pytest.raises(InvalidInput):
        await backend.jobs.submit_all([make_job("a"), make_job("b", payload={"n": 2**64}), make_job("c")])
    assert await ids_of(backend) == []


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param([make_job(id, batch="b") for id in "abc"], id="of an atomic batch"),
        pytest.param([make_job(id, schedule="tick") for id in "abc"], id="of a schedule that is triggered"),
    ],
)
async def test_each_of_them_has_an_event_that_it_was_submitted(backend: Backend, jobs: list[NewJob]) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await backend.jobs.submit_all(jobs)
        await mark(backend)
        events = Mirror().fold(await changes_through(stream, "the end")).events
    assert [(event.type, event.job, event.tenant) for event in events] == [
        (EventType.SUBMITTED, job.id, job.tenant) for job in jobs
    ]
    assert len({event.id for event in events}) == len(jobs)
