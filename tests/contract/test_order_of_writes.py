"""`ClaimStore`, judged by the server's own record: what holds a slot never exceeds what the decisions allow."""

from collections.abc import Sequence
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, JobMove, Requeue, Settlement
from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.apply.job_updates import JobUpdates
from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from tests.contract.backends import RETENTION_MS, Backend, mongo_backend
from tests.contract.claim_checks import DONE, UNKNOWN, applied
from tests.contract.job_states import bring_to, stored
from tests.contract.oplog import versions_of_jobs
from tests.factories import make_fire, make_job, make_schedule

pytestmark = pytest.mark.real

FIRE = make_fire(1)
TWO_GIVEN_BACK_AND_TWO_HANDED_OUT: Sequence[Decision] = (
    Dispatch("waiting", 1, "p2"),
    FIRE,
    Dispatch(FIRE.job_id, 1, "p2"),
    Requeue("lost", 1, "dead"),
    Fail("hopeless", 1, "used up"),
)


@pytest.fixture(name="database")
async def prepared_database(pymongo_client: Client, database_name: str) -> Any:
    database = open_database(pymongo_client, database_name)
    await ensure_collections_and_indexes(database)
    return database


@pytest.fixture(name="backend")
async def backend_with_two_running(database: Any) -> Backend:
    backend = mongo_backend(database)
    await backend.schedules.create(make_schedule())
    await backend.jobs.submit(make_job("waiting"))
    for id in ("lost", "hopeless"):
        await bring_to(backend, JobState.RUNNING, id)
    return backend


async def test_slots_are_given_back_before_they_are_handed_out_again(
    backend: Backend, pymongo_client: Client, database_name: str
) -> None:
    assert await applied(backend.claims, *TWO_GIVEN_BACK_AND_TWO_HANDED_OUT) == [DONE] * 5
    states: dict[str, JobState] = {}
    held = []
    async for id, job in versions_of_jobs(pymongo_client, database_name):
        states[id] = job["state"]
        held.append(sum(state in OCCUPYING for state in states.values()))
    assert (max(held), held[-1]) == (2, 2)


async def test_nothing_is_handed_out_while_it_is_unknown_whether_slots_came_back(
    backend: Backend, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = JobUpdates._carry_out_wave

    async def unanswered(self: JobUpdates, moves: Sequence[JobMove], *arguments: Any, **options: Any) -> Any:
        if any(isinstance(move, Requeue | Fail) for move in moves):
            raise StoreUnavailable("no answer in time")
        return await carry_out(self, moves, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(JobUpdates, "_carry_out_wave", unanswered)
        claims = MongoClaimStore(database, RETENTION_MS)
        assert await applied(claims, *TWO_GIVEN_BACK_AND_TWO_HANDED_OUT) == [UNKNOWN] * 5
    assert (await stored(backend, "waiting"))["state"] == JobState.PENDING
    assert await backend.jobs.get(FIRE.job_id) is None
    settled: list[Settlement] = await applied(claims, *TWO_GIVEN_BACK_AND_TWO_HANDED_OUT)
    assert settled == [DONE] * 5
