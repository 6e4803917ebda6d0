"""`JobStore`: jobs as the API reads and changes them; a value that no database can hold is refused."""

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.error_patterns import ERROR_BEGINNING_MAX, error_pattern, error_regex, text_of_pattern
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    AttemptOutcome,
    CancelAnswer,
    FailedJob,
    JobSelection,
    ListPosition,
    Submission,
    SubmitAnswer,
)
from tests.contract.backends import RETENTION_MS, Backend, on
from tests.contract.checks import RACERS, raced
from tests.contract.job_states import bring_to, stored
from tests.factories import ERRORS, NOW, make_job, make_schedule

# Not mongomock: it lacks $replaceWith, which a cancel is made of.
pytestmark = on("memory", "pymongo", "motor")

AT = WallMs(NOW + 50)


async def test_a_submitted_job_is_stored_whole(backend: Backend) -> None:
    assert await backend.jobs.get("a") is None
    job = make_job(payload={"deep": [1.5, None, {"$set": "$x"}]}, labels={"a.b": "c"}, not_before_ms=AT, sequence=3)
    assert await backend.jobs.submit(job) == Submission(SubmitAnswer.NEW, new_job_document(job))
    assert await backend.jobs.get("a") == new_job_document(job)


async def test_fifty_racing_submits_of_one_id_all_return_the_same_job(backend: Backend) -> None:
    answers = await raced(backend.jobs.submit(make_job(payload=number)) for number in range(RACERS))
    assert sorted(answer.answer for answer in answers) == [SubmitAnswer.KNOWN] * (RACERS - 1) + [SubmitAnswer.NEW]
    assert all(answer.document == answers[0].document for answer in answers)
    assert await stored(backend) == answers[0].document


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.DISPATCHED])
async def test_a_job_that_has_not_started_is_cancelled_at_once(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.jobs.cancel("a", AT) is CancelAnswer.CANCELLED
    after = await stored(backend)
    assert after["state"] == JobState.CANCELLED
    assert after["rev"] == before["rev"] + 1
    assert after["finished_at_ms"] == AT
    assert after["processor"] is None
    assert _ms(after["expire_at"]) == AT + RETENTION_MS
    # The attempt of a dispatched one is revoked, and its record kept.
    assert [record["outcome"] for record in after["attempts"]] == ["cancelled"] * (state is JobState.DISPATCHED)


async def test_a_running_job_gets_one_cancel_request(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await backend.jobs.cancel("a", AT) is CancelAnswer.ALREADY_RUNNING
    asked = await stored(backend)
    assert asked == {**before, "cancel_requested_at_ms": AT, "rev": before["rev"] + 1}
    assert await backend.jobs.cancel("a", WallMs(AT + 1)) is CancelAnswer.ALREADY_RUNNING
    assert await stored(backend) == asked


def _ms(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


P, R, S, F = JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED


async def put(backend: Backend, id: str, state: JobState, second: int, **fields: Any) -> None:
    job = new_job_document(make_job(id, submitted_at_ms=WallMs(NOW + second)))
    await backend.behind.insert(Collection.JOBS, {**job, "state": state.value, **fields})


async def some(backend: Backend) -> None:
    await put(backend, "job:01", P, 1)
    await put(backend, "job:02", F, 2, error="late", definition="sleep")
    await put(backend, "fire:tick:1", S, 3, schedule="tick", labels={"team.of": "a"})
    await put(
        backend, "fire:tick:2", F, 3, schedule="tick", labels={"team.of": "b"}, error=None, finished_at_ms=NOW + 9
    )
    await put(backend, "fire:tick-2:1", R, 5, schedule="tick-2", tenant="other")
    await put(backend, "trigger:tick:x", F, 4, schedule="tick", error={"broken": 1}, batch="batch:1", target=7)


J1, J2, T1, T2, X, OTHERS = "job:01", "job:02", "fire:tick:1", "fire:tick:2", "trigger:tick:x", "fire:tick-2:1"
STATE_OF = {J1: P, J2: F, T1: S, T2: F, X: F, OTHERS: R}
SELECTED = [
    (JobSelection(), [OTHERS, X, T2, T1, J2, J1]),
    (JobSelection(states=tuple(JobState), target="target", labels={}), [OTHERS, T2, T1, J2, J1]),
    (JobSelection(states=(F, R)), [OTHERS, X, T2, J2]),
    (JobSelection(states=(F,), since_ms=WallMs(NOW + 3)), [X, T2]),
    (JobSelection(until_ms=WallMs(NOW + 3)), [J2, J1]),
    (JobSelection(since_ms=WallMs(NOW + 4), until_ms=WallMs(NOW + 3)), []),
    (JobSelection(definition="sleep"), [J2]),
    (JobSelection(states=(F,), definition="log", schedule="tick"), [X, T2]),
    (JobSelection(schedule="tick", labels={"team.of": "a"}), [T1]),
    (JobSelection(tenant="other"), [OTHERS]),
    (JobSelection(tenant="nobody"), []),
    (JobSelection(states=(P,), ids=(J1, J2, "x")), [J1]),
    (JobSelection(ids=()), []),
    (JobSelection(id_prefix="fire:tick:"), [T2, T1]),
    (JobSelection(id_prefix="fire:tick:", tenant="other"), []),
    (JobSelection(id_prefix="^j"), []),
    (JobSelection(batch="batch:1"), [X]),
    (JobSelection(error="at"), [J2]),
    (JobSelection(error="^$", states=(F,)), [T2]),
    (JobSelection(error='"…"<n><id>' * 8 + " " * 184), []),
    (JobSelection(failed_since_ms=WallMs(NOW + 9)), [T2]),
    (JobSelection(failed_since_ms=WallMs(NOW + 10)), []),
    (JobSelection(ended_before_ms=WallMs(NOW + 10)), [T2]),
]


@pytest.mark.parametrize(("which", "expected"), SELECTED)
async def test_those_that_match_are_listed_in_pages_and_counted_by_state(
    backend: Backend, which: JobSelection, expected: list[str]
) -> None:
    await some(backend)
    for limit in (1, 10):
        found: list[str] = []
        after: ListPosition | None = None
        while True:
            page = await backend.jobs.list(which, after, limit)
            assert len(page.documents) <= limit
            found += [str(job["_id"]) for job in page.documents]
            after = page.next
            if after is None:
                break
        assert found == expected
    counts = await backend.jobs.counts(which, 10)
    assert counts.at_least == frozenset()
    assert counts.by_state == dict.fromkeys(which.states or JobState, 0) | Counter(map(STATE_OF.get, expected))
    assert max((await backend.jobs.counts(which, 2)).by_state.values()) <= 2


async def test_the_failed_ones_are_told_with_the_beginning_of_their_errors(backend: Backend) -> None:
    await some(backend)
    await put(backend, "job:03", F, 0, error="é" * 5_000)
    found = await backend.jobs.failed(JobSelection(states=(P,)), 10)
    assert [job.id for job in found.jobs] == ["trigger:tick:x", "fire:tick:2", "job:02", "job:03"]
    assert found.complete
    assert found.jobs[0] == FailedJob("trigger:tick:x", "log", "tenant", "7", "tick", "batch:1", "", NOW + 4)
    assert found.jobs[1] == FailedJob("fire:tick:2", "log", "tenant", "target", "tick", None, "", NOW + 9)
    assert found.jobs[2].error == "late"
    assert found.jobs[3].error == "é" * ERROR_BEGINNING_MAX


async def test_an_error_is_found_by_the_same_text_in_each_store(backend: Backend) -> None:
    for number, error in enumerate(ERRORS):
        await put(backend, f"job:{number}", F, number, error=error)
    for text in {text_of_pattern(pattern, pattern, error) for error in ERRORS if (pattern := error_pattern(error))}:
        found = await backend.jobs.failed(JobSelection(error=text), 100)
        assert {job.id for job in found.jobs} == {
            f"job:{number}" for number, error in enumerate(ERRORS) if error_regex(text).search(error)
        }


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def finish(backend: Backend, processor: str, value: Any) -> Awaitable[object]:
    return backend.work.finish("a", 1, processor, AttemptOutcome(JobState.SUCCEEDED, result=value), AT)


WRITES: dict[str, Callable[[Backend, Any], Awaitable[object]]] = {
    "a new schedule": lambda backend, value: backend.schedules.create(make_schedule("new", payload=value)),
    "an edit": lambda backend, value: backend.schedules.edit("tick", 1, {"payload": value}),
    "a job": lambda backend, value: backend.jobs.submit(make_job("new", payload=value)),
    "a result": lambda backend, value: finish(backend, "p1", value),
    "a late result": lambda backend, value: finish(backend, "p2", value),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(2**63, id="65 bits"),
        pytest.param({"a\0b": 1}, id="NUL in a name"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param({1: 2}, id="a name that is no text"),
        pytest.param({1, 2}, id="a set"),
        pytest.param(nested(250), id="too deep"),
    ],
)
async def test_what_no_database_can_hold_is_refused_and_nothing_is_written(
    backend: Backend, value: Any, write: str
) -> None:
    async def stored() -> list[Any]:
        places = ((of, id) for of in (Collection.SCHEDULES, Collection.JOBS) for id in ("new", "tick", "a"))
        return [await backend.behind.find(of, id) for of, id in places]

    await backend.schedules.create(make_schedule("tick"))
    await bring_to(backend, JobState.RUNNING)
    before = await stored()
    with pytest.raises(InvalidInput):
        await WRITES[write](backend, value)
    assert await stored() == before
