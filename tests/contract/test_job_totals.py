"""`JobStore.counts`, `failed`, and lists by the beginning of an id."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ERROR_BEGINNING_MAX, FailedJob, JobCounts, JobSelection, ListPosition
from tests.contract.backends import Backend, on
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo")

P, R, S, F = JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED


async def stored(backend: Backend, id: str, state: JobState, second: int, **fields: Any) -> None:
    job = new_job_document(make_job(id, submitted_at_ms=WallMs(NOW + second)))
    await backend.behind.insert(Collection.JOBS, {**job, "state": state.value, **fields})


async def some(backend: Backend) -> None:
    await stored(backend, "job:01", P, 1)
    await stored(backend, "job:02", F, 2, error="late", definition="sleep")
    await stored(backend, "fire:tick:1", S, 3, schedule="tick", labels={"team": "a"})
    await stored(
        backend, "fire:tick:2", F, 3, schedule="tick", labels={"team": "b"}, error=None, finished_at_ms=NOW + 9
    )
    await stored(backend, "fire:tick-2:1", R, 5, schedule="tick-2", tenant="other")
    await stored(backend, "trigger:tick:x", F, 4, schedule="tick", error={"broken": 1}, batch="batch:1", target=7)


def counted(counts: JobCounts) -> dict[str, int]:
    assert counts.at_least == frozenset()
    return {state.value: count for state, count in counts.by_state.items() if count}


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (JobSelection(), {"pending": 1, "failed": 3, "succeeded": 1, "running": 1}),
        (JobSelection(states=(F, R)), {"failed": 3, "running": 1}),
        (JobSelection(states=(F,), since_ms=WallMs(NOW + 3)), {"failed": 2}),
        (JobSelection(until_ms=WallMs(NOW + 3)), {"pending": 1, "failed": 1}),
        (JobSelection(definition="sleep"), {"failed": 1}),
        (JobSelection(schedule="tick"), {"failed": 2, "succeeded": 1}),
        (JobSelection(schedule="tick", labels={"team": "a"}), {"succeeded": 1}),
        (JobSelection(labels={"team": "a"}, until_ms=WallMs(NOW + 3)), {}),
        (JobSelection(tenant="other"), {"running": 1}),
        (JobSelection(states=(P,), tenant="other"), {}),
        (JobSelection(states=(P,), ids=("job:01", "job:02")), {"pending": 1}),
        (JobSelection(ids=()), {}),
        (JobSelection(id_prefix="fire:"), {"failed": 1, "succeeded": 1, "running": 1}),
        (JobSelection(id_prefix="fire:tick:"), {"failed": 1, "succeeded": 1}),
        (JobSelection(id_prefix="fire:tick:", tenant="other"), {}),
        (JobSelection(id_prefix="nothing"), {}),
        (JobSelection(batch="batch:1"), {"failed": 1}),
    ],
)
async def test_those_that_match_are_counted_by_state(
    backend: Backend, which: JobSelection, expected: dict[str, int]
) -> None:
    await some(backend)
    counts = await backend.jobs.counts(which, 10)
    assert counted(counts) == expected
    assert set(counts.by_state) == set(which.states or JobState)


async def test_no_more_are_counted_than_is_asked_for(backend: Backend) -> None:
    await some(backend)
    for which in (JobSelection(), JobSelection(until_ms=WallMs(NOW + 10))):
        counts = await backend.jobs.counts(which, 2)
        assert (counts.by_state[F], counts.by_state[P], counts.at_least) == (2, 1, frozenset({F}))


@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (JobSelection(id_prefix="fire:"), ["fire:tick-2:1", "fire:tick:2", "fire:tick:1"]),
        (JobSelection(id_prefix="fire:tick:"), ["fire:tick:2", "fire:tick:1"]),
        (JobSelection(states=(F,), id_prefix="fire:tick:"), ["fire:tick:2"]),
        (JobSelection(id_prefix="fire:", until_ms=WallMs(NOW + 5)), ["fire:tick:2", "fire:tick:1"]),
        (JobSelection(id_prefix="trigger:tick:", schedule="tick-2"), []),
        (JobSelection(id_prefix="job:02"), ["job:02"]),
        (JobSelection(id_prefix="job:02x"), []),
        (JobSelection(id_prefix="^j"), []),
    ],
)
async def test_a_list_may_be_of_ids_that_begin_so(
    backend: Backend, which: JobSelection, expected: list[str], limit: int
) -> None:
    await some(backend)
    found: list[str] = []
    after: ListPosition | None = None
    while True:
        page = await backend.jobs.list(which, after, limit)
        found += [str(job["_id"]) for job in page.documents]
        if page.next is None:
            break
        after = page.next
    assert found == expected


async def test_the_failed_ones_are_told_with_the_beginning_of_their_errors(backend: Backend) -> None:
    await some(backend)
    await stored(backend, "job:03", F, 0, error="é" * 5_000)
    found = await backend.jobs.failed(JobSelection(states=(P,)), 10)
    assert [job.id for job in found.jobs] == ["trigger:tick:x", "fire:tick:2", "job:02", "job:03"]
    assert found.complete
    assert found.jobs[0] == FailedJob("trigger:tick:x", "log", "tenant", "7", "tick", "batch:1", "", NOW + 4)
    assert found.jobs[1] == FailedJob("fire:tick:2", "log", "tenant", "target", "tick", None, "", NOW + 9)
    assert found.jobs[2].error == "late"
    assert found.jobs[3].error == "é" * ERROR_BEGINNING_MAX


async def test_of_the_failed_ones_the_newest_are_told(backend: Backend) -> None:
    await some(backend)
    for which, expected, complete in (
        (JobSelection(), ["trigger:tick:x", "fire:tick:2"], False),
        (JobSelection(schedule="tick"), ["trigger:tick:x", "fire:tick:2"], True),
        (JobSelection(id_prefix="fire:"), ["fire:tick:2"], True),
        (JobSelection(until_ms=WallMs(NOW)), [], True),
    ):
        found = await backend.jobs.failed(which, 2)
        assert ([job.id for job in found.jobs], found.complete) == (expected, complete)
