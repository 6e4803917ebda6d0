"""All writers at once on the same jobs, ten thousand times, judged by the server's own record of its writes.

A leader claims, loses and fails attempts, processors start, finish, retry and give back, callers of the API cancel,
reprioritize and retry: all of it concurrently, in whatever order the server serves it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, Dispatch, Fail, Requeue
from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import TERMINAL, JobState, may_follow
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.ports import AttemptOutcome, JobSelection
from tests.contract.backends import Backend, mongo_backend
from tests.contract.oplog import versions_of_jobs
from tests.factories import NOW, make_job
from tests.tiers import in_tier

pytestmark = pytest.mark.real

PARTS = 4
AT_ONCE = 100
RACES = AT_ONCE * in_tier(check=5, test=5, long=12)
"""Of each part: the parts run beside each other where there are several workers, so that no test lasts for a minute."""
AT = WallMs(NOW + 100)
SUCCEEDED = AttemptOutcome(JobState.SUCCEEDED, result=1)
FAILED = AttemptOutcome(JobState.FAILED, error="for good")
AGAIN = AttemptOutcome(JobState.FAILED, error="again", retry_at_ms=AT)
ENDS = (SUCCEEDED, FAILED, AGAIN)


async def brought_on_their_way(backend: Backend, ids: Sequence[str]) -> None:
    """A quarter of them waits, a quarter is dispatched, and half of them run."""
    await backend.jobs.submit_many([make_job(id, target=id) for id in ids])
    dispatched = ids[len(ids) // 4 :]
    await backend.claims.apply([Dispatch(id, 1, "p1") for id in dispatched], AT, majority=False)
    await asyncio.gather(*(backend.work.start(id, 1, "p1", AT) for id in ids[len(ids) // 2 :]))


def rivals_of(backend: Backend, id: str, random: Random) -> list[Callable[[], Awaitable[object]]]:
    """What happens to one job, all together."""
    jobs, work, claims = backend.jobs, backend.work, backend.claims

    async def run(attempt: int, end: AttemptOutcome) -> None:
        await work.start(id, attempt, f"p{attempt}", AT)
        await work.finish(id, attempt, f"p{attempt}", end, AT)

    async def lose_and_try_again() -> None:
        await claims.apply([Requeue(id, 1, "lost"), Dispatch(id, 2, "p2")], AT, majority=False)
        await run(2, random.choice(ENDS))

    async def fail_and_retry() -> None:
        await claims.apply([Fail(id, 1, "timed out")], AT, majority=False)
        await jobs.retry(id, AT)

    chosen: list[Callable[[], Awaitable[object]]] = [
        lambda: run(1, random.choice(ENDS)),
        lambda: jobs.reprioritize(id, random.randrange(11)),
        random.choice(
            [
                lambda: jobs.cancel(id, AT),
                lambda: jobs.cancel(id, AT),
                lambda: jobs.cancel_some(JobSelection(target=id), AT, 10),
                lambda: claims.apply([Cancel(id, 1, "replaced")], AT, majority=False),
            ]
        ),
    ]
    others: list[Callable[[], Awaitable[object]]] = [
        lose_and_try_again,
        fail_and_retry,
        lambda: claims.apply([Dispatch(id, 1, "p1")], AT, majority=False),
        lambda: jobs.retry(id, AT),
        lambda: run(1, SUCCEEDED),
        lambda: work.give_back(id, 1, "p1", "drain", AT),
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
    async for id, job in versions_of_jobs(pymongo_client, database_name):
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
