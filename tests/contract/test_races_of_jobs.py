"""Writers of jobs at once, judged by the server's own record of its writes, its oplog."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from pymongo import ASCENDING

from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, JobMove, Requeue, Settlement
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.apply.job_updates import JobUpdates
from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.ports import AttemptOutcome, JobSelection
from tests.chaos.evidence import Oplog
from tests.checkers.jobs import may_follow
from tests.contract.backends import RETENTION_MS, Backend, mongo_backend
from tests.contract.checks import DONE, UNKNOWN, applied
from tests.contract.job_states import bring_to, stored
from tests.factories import NOW, make_fire, make_job, make_schedule
from tests.tiers import in_tier


async def versions_of_jobs(client: Client, database: str) -> list[Mapping[str, Any]]:
    """Each version of each job in the order of the writes. Majority-committed ones are all of them here: the server is
    the only member of its set."""
    oldest: Any = await client["local"]["oplog.rs"].find_one({}, sort=[("$natural", ASCENDING)])
    oplog = Oplog(client, database, oldest["ts"], epoch_ms=0)
    await oplog.read()
    jobs = (commit.after for commit in oplog.commits if commit.collection is Collection.JOBS)
    return [job for job in jobs if job is not None]


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
    for job in await versions_of_jobs(pymongo_client, database_name):
        states[job["_id"]] = job["state"]
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


PARTS = 4
AT_ONCE = 100
RACES = AT_ONCE * in_tier(check=5, test=5, long=12)
"""Of each part: the parts run beside each other where there are several workers, so that no test lasts for a minute."""
AFTER = WallMs(NOW + 100)
DONE_AT_LAST = AttemptOutcome(JobState.SUCCEEDED, result=1)
FAILED = AttemptOutcome(JobState.FAILED, error="for good")
AGAIN = AttemptOutcome(JobState.FAILED, error="again", retry_at_ms=AFTER)
ENDS = (DONE_AT_LAST, FAILED, AGAIN)


async def brought_on_their_way(backend: Backend, ids: Sequence[str]) -> None:
    """A quarter of them waits, a quarter is dispatched, and half of them run."""
    await backend.jobs.submit_many([make_job(id, target=id) for id in ids])
    dispatched = ids[len(ids) // 4 :]
    await backend.claims.apply([Dispatch(id, 1, "p1") for id in dispatched], AFTER, majority=False)
    await asyncio.gather(*(backend.work.start(id, 1, "p1", AFTER) for id in ids[len(ids) // 2 :]))


def rivals_of(backend: Backend, id: str, random: Random) -> list[Callable[[], Awaitable[object]]]:
    """What happens to one job, all together."""
    jobs, work, claims = backend.jobs, backend.work, backend.claims

    async def run(attempt: int, end: AttemptOutcome) -> None:
        await work.start(id, attempt, f"p{attempt}", AFTER)
        await work.finish(id, attempt, f"p{attempt}", end, AFTER)

    async def lose_and_try_again() -> None:
        await claims.apply([Requeue(id, 1, "lost"), Dispatch(id, 2, "p2")], AFTER, majority=False)
        await run(2, random.choice(ENDS))

    async def fail_and_retry() -> None:
        await claims.apply([Fail(id, 1, "timed out")], AFTER, majority=False)
        await jobs.retry(id, AFTER)

    chosen: list[Callable[[], Awaitable[object]]] = [
        lambda: run(1, random.choice(ENDS)),
        lambda: jobs.reprioritize(id, random.randrange(11)),
        random.choice(
            [
                lambda: jobs.cancel(id, AFTER),
                lambda: jobs.cancel(id, AFTER),
                lambda: jobs.cancel_some(JobSelection(target=id), AFTER, 10),
                lambda: claims.apply([Cancel(id, 1, "replaced")], AFTER, majority=False),
            ]
        ),
    ]
    others: list[Callable[[], Awaitable[object]]] = [
        lose_and_try_again,
        fail_and_retry,
        lambda: claims.apply([Dispatch(id, 1, "p1")], AFTER, majority=False),
        lambda: jobs.retry(id, AFTER),
        lambda: run(1, DONE_AT_LAST),
        lambda: work.give_back(id, 1, "p1", "drain", AFTER),
    ]
    chosen.append(random.choice(others))
    random.shuffle(chosen)
    return chosen


async def _tried(call: Callable[[], Awaitable[object]]) -> None:
    """A caller that loses its connection on a busy machine does not know the outcome. The server's record does."""
    with suppress(StoreUnavailable):
        await call()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
async def test_cancel_reprioritize_and_finish_race_thousands_of_times_and_every_move_is_one_of_the_table(
    pymongo_client: Client, database_name: str, part: int
) -> None:
    # A database of its own: in the end everything is looked at that has ever been in it.
    database = open_database(pymongo_client, database_name)
    await ensure_collections_and_indexes(database)
    backend = mongo_backend(database)
    random = Random(part)
    for first in range(0, RACES, AT_ONCE):
        ids = [f"r{n:05d}" for n in range(first, first + AT_ONCE)]
        await brought_on_their_way(backend, ids)
        calls = [call for id in ids for call in rivals_of(backend, id, random)]
        await asyncio.gather(*(_tried(call) for call in calls))
    before: dict[str, Any] = {}
    moves: Counter[tuple[str, str]] = Counter()
    for job in await versions_of_jobs(pymongo_client, database_name):
        id = job["_id"]
        if id in before:
            check_step(before[id], job)
            moves[before[id]["state"], job["state"]] += before[id]["state"] != job["state"]
        before[id] = job
    assert len(before) == RACES
    assert all(was != JobState.SUCCEEDED for (was, _), n in moves.items() if n and was in TERMINAL)
    # The races were real: every kind of move was made, many times.
    for move in (
        ("pending", "dispatched"), ("pending", "cancelled"), ("dispatched", "running"), ("dispatched", "cancelled"),
        ("dispatched", "pending"), ("running", "succeeded"), ("running", "failed"), ("running", "pending"),
        ("running", "cancelled"), ("failed", "pending"), ("cancelled", "pending"),
    ):  # fmt: skip
        assert moves[move] > 10, (move, moves)


def check_step(before: Any, after: Any) -> None:
    what = f"{after['_id']}: {before} became {after}"
    was, becomes = JobState(before["state"]), JobState(after["state"])
    assert after["rev"] == before["rev"] + 1, what
    assert was is becomes or may_follow(was, becomes), what
    if was in TERMINAL and becomes is was:
        # Only a late result may still be put beside it.
        assert {name for name in after if after[name] != before.get(name)} <= {"rev", "late_results"}, what
    grows_by_one = (was, becomes) in {
        (JobState.PENDING, JobState.DISPATCHED),
        (JobState.FAILED, JobState.PENDING),
        (JobState.CANCELLED, JobState.PENDING),
    }
    assert after["attempt"] == before["attempt"] + grows_by_one, what
    assert (after["processor"] is None) == (becomes not in (JobState.DISPATCHED, JobState.RUNNING)), what
    if becomes in (JobState.DISPATCHED, JobState.RUNNING) and was in (JobState.DISPATCHED, JobState.RUNNING):
        assert after["processor"] == before["processor"], what
    assert len(after["attempts"]) in (len(before["attempts"]), len(before["attempts"]) + 1), what
