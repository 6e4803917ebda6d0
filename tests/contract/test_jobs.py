"""`JobStore`: jobs as the API reads and changes them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import CancelAnswer, JobPage, JobSelection, ListPosition, Submission, SubmitAnswer
from tests.contract.backends import RETENTION_MS, Backend, on
from tests.contract.checks import RACERS, raced
from tests.contract.job_states import bring_to, dispatch, stored
from tests.factories import NOW, make_job

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


async def test_a_document_that_was_read_is_a_copy(backend: Backend) -> None:
    await backend.jobs.submit(make_job(payload={"n": [1]}))
    read: Any = await stored(backend)
    read["payload"]["n"].append(2)
    assert (await stored(backend))["payload"] == {"n": [1]}


async def test_jobs_are_listed_newest_first_by_submission_in_pages(backend: Backend) -> None:
    await _submit_at(backend, {"fire:s:1": 30, "job:1": 20, "job:2": 20, "trigger:s:1": 10, "job:3": 40})
    first = await backend.jobs.list(JobSelection(), None, 2)
    assert _ids(first) == ["job:3", "fire:s:1"]
    await _submit_at(backend, {"trigger:s:2": 50, "job:4": 20})  # newer ones, meanwhile, shift no page
    second = await backend.jobs.list(JobSelection(), first.next, 3)
    assert _ids(second) == ["job:4", "job:2", "job:1"]
    last = await backend.jobs.list(JobSelection(), second.next, 3)
    assert (_ids(last), last.next) == (["trigger:s:1"], None)


async def test_a_list_goes_on_before_all_jobs_of_an_instant(backend: Backend) -> None:
    await _submit_at(backend, {"a": 10, "b": 20, "c": 20, "d": 30})
    assert _ids(await backend.jobs.list(JobSelection(), ListPosition(NOW + 20), 10)) == ["c", "b", "a"]
    assert _ids(await backend.jobs.list(JobSelection(), ListPosition(NOW + 19), 10)) == ["a"]


@pytest.mark.parametrize(
    ("since", "before", "after", "expected"),
    [
        (20, None, None, ["d", "c", "b"]),
        (None, 20, None, ["a"]),
        (20, 30, None, ["c", "b"]),
        (20, 30, ListPosition(NOW + 20, "c"), ["b"]),
        (20, 30, ListPosition(NOW + 30, "d"), ["c", "b"]),
        (20, 30, ListPosition(NOW + 10, "a"), []),
        (30, 20, None, []),
        (21, 30, ListPosition(NOW + 20, "c"), []),
    ],
)
async def test_a_list_holds_what_was_submitted_within_a_range(
    backend: Backend, since: int | None, before: int | None, after: ListPosition | None, expected: list[str]
) -> None:
    await _submit_at(backend, {"a": 10, "b": 20, "c": 20, "d": 30})
    which = JobSelection(since_ms=_wall(since), until_ms=_wall(before))
    assert _ids(await backend.jobs.list(which, after, 10)) == expected
    of_states = which.model_copy(update={"states": tuple(JobState), "labels": {"team": "a"}})
    assert _ids(await backend.jobs.list(of_states, after, 10)) == expected


async def test_listed_jobs_are_without_their_large_fields(backend: Backend) -> None:
    await bring_to(backend, JobState.SUCCEEDED)
    [listed] = (await backend.jobs.list(JobSelection(), None, 3)).documents
    whole = await stored(backend)
    assert listed == {name: whole[name] for name in whole if name not in {"payload", "result", "attempts"}}


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (JobSelection(), ["e", "d", "c", "b", "a"]),
        (JobSelection(states=(JobState.PENDING,)), ["e", "d", "b", "a"]),
        (JobSelection(states=(JobState.DISPATCHED,)), ["c"]),
        (JobSelection(states=(JobState.FAILED,)), []),
        (JobSelection(states=(JobState.DISPATCHED, JobState.FAILED, JobState.PENDING)), ["e", "d", "c", "b", "a"]),
        (JobSelection(definition="sleep"), ["e", "d"]),
        (JobSelection(schedule="tick"), ["d", "b"]),
        (JobSelection(states=(JobState.PENDING,), definition="sleep", schedule="tick"), ["d"]),
        (JobSelection(states=tuple(JobState), tenant="tenant", target="target", labels={}), ["e", "d", "c", "b", "a"]),
        (JobSelection(ids=("b", "d", "x")), ["d", "b"]),
        (JobSelection(states=(JobState.PENDING,), ids=("c", "d")), ["d"]),
        (JobSelection(ids=()), []),
    ],
)
async def test_a_list_holds_what_matches_the_filter(backend: Backend, which: JobSelection, expected: list[str]) -> None:
    for job in (
        make_job("a"),
        make_job("b", schedule="tick"),
        make_job("c"),
        make_job("d", definition="sleep", schedule="tick"),
        make_job("e", definition="sleep"),
    ):
        await backend.jobs.submit(job)
    await dispatch(backend, "c")
    assert _ids(await backend.jobs.list(which, None, 10)) == expected
    if len(expected) > 1:
        first = await backend.jobs.list(which, None, 1)
        assert _ids(await backend.jobs.list(which, first.next, 1)) == expected[1:2]


async def _submit_at(backend: Backend, submitted: dict[str, int]) -> None:
    for id, at in submitted.items():
        await backend.jobs.submit(make_job(id, submitted_at_ms=NOW + at, labels={"team": "a"}))


def _ids(page: JobPage) -> list[str]:
    return [str(job["_id"]) for job in page.documents]


def _wall(at: int | None) -> WallMs | None:
    return None if at is None else WallMs(NOW + at)


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


@pytest.mark.parametrize("state", sorted(TERMINAL))
async def test_a_job_that_ended_stays_as_it_is(backend: Backend, state: JobState) -> None:
    if state is JobState.CANCELLED:
        await bring_to(backend, JobState.PENDING)
        await backend.jobs.cancel("a", AT)
    else:
        await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.jobs.cancel("a", WallMs(AT + 1)) is CancelAnswer.ALREADY_DONE
    assert await backend.jobs.cancel("nobody", AT) is None
    assert await stored(backend) == before


async def test_of_fifty_racing_cancels_one_cancels(backend: Backend) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    answers = await raced(backend.jobs.cancel("a", AT) for _ in range(RACERS))
    assert answers.count(CancelAnswer.CANCELLED) == 1
    assert answers.count(CancelAnswer.ALREADY_DONE) == RACERS - 1


def _ms(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
