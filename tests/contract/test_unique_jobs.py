"""`JobStore`: jobs with a unique key, which another one may keep out, or be replaced by."""

from dataclasses import replace

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState, NewJob
from hascheduler.model.limit_keys import OnDuplicate, UniqueKey
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import AttemptOutcome, JobSelection, SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import raced
from tests.contract.job_states import dispatch, finish, start, stored
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo", "motor")

NEW, KNOWN, DUPLICATE = SubmitAnswer.NEW, SubmitAnswer.KNOWN, SubmitAnswer.DUPLICATE
PENDING, CANCELLED = JobState.PENDING, JobState.CANCELLED
KEEP = UniqueKey("u", OnDuplicate.KEEP_FIRST)
HOUR = 3_600_000
KEEP_HOUR = replace(KEEP, period_ms=HOUR)
REPLACE = UniqueKey("u", OnDuplicate.REPLACE)
DEBOUNCE = UniqueKey("u", OnDuplicate.DEBOUNCE, 1_000, 5_000)
REPLACING = pytest.mark.parametrize("rule", [REPLACE, DEBOUNCE], ids=["replace", "debounce"])


def unique(id: str, rule: UniqueKey = KEEP, *, after_ms: int = 0, key: str = "u", **more: object) -> NewJob:
    return make_job(id, unique=replace(rule, digest=key), submitted_at_ms=WallMs(NOW + after_ms), **more)


async def submit(backend: Backend, *jobs: NewJob) -> list[tuple[str, str]]:
    """The answer to each, and the job that it has."""
    answers = [await backend.jobs.submit(job) for job in jobs]
    return [(each.answer.value, str(each.document["_id"])) for each in answers]


async def run(backend: Backend, id: str, state: JobState = JobState.SUCCEEDED) -> None:
    await dispatch(backend, id)
    await start(backend, id)
    await finish(backend, id, outcome=AttemptOutcome(state))


async def in_state(backend: Backend, state: JobState) -> list[str]:
    jobs = (await backend.jobs.list(JobSelection(states=(state,)), None, 999)).documents
    return sorted(str(job["_id"]) for job in jobs)


# keep_first


async def test_of_many_at_once_one_is_kept(backend: Backend) -> None:
    answers = await raced(backend.jobs.submit(unique(f"j{n}")) for n in range(20))
    assert sorted(each.answer for each in answers) == [DUPLICATE] * 19 + [NEW]
    [kept] = {str(each.document["_id"]) for each in answers}
    assert await in_state(backend, PENDING) == [kept]


async def test_the_first_is_kept_until_it_has_ended(backend: Backend) -> None:
    assert await submit(backend, unique("a"), unique("b")) == [("new", "a"), ("duplicate", "a")]
    await dispatch(backend)
    await start(backend)
    assert await submit(backend, unique("c", after_ms=HOUR)) == [("duplicate", "a")]
    await finish(backend)
    assert await submit(backend, unique("d"), unique("e")) == [("new", "d"), ("duplicate", "d")]
    assert (await stored(backend))["state"] == JobState.SUCCEEDED


async def test_of_many_at_once_one_takes_the_key_of_a_job_that_has_ended(backend: Backend) -> None:
    await submit(backend, unique("a"))
    await run(backend, "a")
    answers = await raced(backend.jobs.submit(unique(f"j{n}")) for n in range(20))
    assert sorted(each.answer for each in answers) == [DUPLICATE] * 19 + [NEW]
    assert len(await in_state(backend, PENDING)) == 1


async def test_with_a_period_the_first_is_kept_that_long_and_until_it_has_ended(backend: Backend) -> None:
    await submit(backend, unique("a", KEEP_HOUR))
    assert await submit(backend, unique("b", KEEP_HOUR, after_ms=2 * HOUR)) == [("duplicate", "a")]
    await run(backend, "a")
    kept = (await stored(backend))["expire_at"].replace(tzinfo=None)
    assert kept > to_datetime(NOW + HOUR).replace(tzinfo=None)
    assert await submit(backend, unique("c", KEEP_HOUR, after_ms=HOUR - 1)) == [("duplicate", "a")]
    assert await submit(backend, unique("d", KEEP_HOUR, after_ms=HOUR)) == [("new", "d")]


async def test_a_retried_job_keeps_its_key_unless_another_took_it(backend: Backend) -> None:
    await submit(backend, unique("a"))
    await run(backend, "a", JobState.FAILED)
    await backend.jobs.retry("a", WallMs(NOW + 40))
    assert await submit(backend, unique("b")) == [("duplicate", "a")]
    await backend.jobs.cancel("a", WallMs(NOW + 50))
    assert await submit(backend, unique("c")) == [("new", "c")]
    await backend.jobs.retry("a", WallMs(NOW + 60))
    assert await submit(backend, unique("d")) == [("duplicate", "c")]
    assert await in_state(backend, PENDING) == ["a", "c"]


async def test_other_keys_and_jobs_without_one_do_not_meet(backend: Backend) -> None:
    jobs = [unique("a"), unique("b", key="v"), make_job("c"), make_job("d")]
    assert await submit(backend, *jobs) == [("new", id) for id in "abcd"]


async def test_an_idempotency_key_comes_first(backend: Backend) -> None:
    for rule, key in ((KEEP, "u"), (REPLACE, "v")):
        first = unique(f"{key}1", rule, key=key, idempotency_key=key, request_hash="h")
        again = unique(f"{key}2", rule, key=key, idempotency_key=key, request_hash="h")
        other = unique(f"{key}3", rule, key=key, idempotency_key=key, request_hash="other")
        said = await submit(backend, first, again, other)
        assert said == [("new", f"{key}1"), ("known", f"{key}1"), ("other", f"{key}1")]
        [each] = await backend.jobs.submit_many([again])
        assert (each.answer, each.document["_id"]) == (KNOWN, f"{key}1")
    assert await submit(backend, unique("x", idempotency_key="k", request_hash="h"), unique("y", REPLACE)) == [
        ("duplicate", "u1"),
        ("new", "y"),
    ]
    assert (await stored(backend, "u1"))["error"] == "replaced by y"


# replace, debounce


@REPLACING
async def test_of_many_at_once_exactly_one_is_left_and_none_is_lost(backend: Backend, rule: UniqueKey) -> None:
    answers = await raced(backend.jobs.submit(unique(f"j{n}", rule)) for n in range(20))
    assert {each.answer for each in answers} == {NEW}
    assert len({str(each.document["_id"]) for each in answers}) == 20
    [left] = await in_state(backend, PENDING)
    assert len(await in_state(backend, CANCELLED)) == 19
    assert (await stored(backend, left))["unique_key"] == "u"


@REPLACING
async def test_the_newest_is_in_the_place_of_one_that_was_never_dispatched(backend: Backend, rule: UniqueKey) -> None:
    said = await submit(backend, unique("a", rule), unique("b", rule, after_ms=1), unique("c", rule, after_ms=2))
    assert said == [("new", "a"), ("new", "b"), ("new", "c")]
    assert (await in_state(backend, PENDING), await in_state(backend, CANCELLED)) == (["c"], ["a", "b"])
    gone = await stored(backend, "b")
    assert (gone["error"], gone["finished_at_ms"], gone["attempts"]) == ("replaced by c", NOW + 2, [])
    assert gone.get("unique_key") is None
    assert gone["expire_at"] is not None


@REPLACING
async def test_one_that_was_dispatched_goes_on_beside_the_newest(backend: Backend, rule: UniqueKey) -> None:
    await submit(backend, unique("a", rule))
    await dispatch(backend)
    assert await submit(backend, unique("b", rule)) == [("new", "b")]
    assert ((await stored(backend))["state"], await in_state(backend, PENDING)) == (JobState.DISPATCHED, ["b"])
    await submit(backend, unique("c", rule))
    assert await in_state(backend, PENDING) == ["c"]
    assert (await stored(backend))["state"] == JobState.DISPATCHED


@REPLACING
async def test_a_revived_one_goes_on_beside_the_newest(backend: Backend, rule: UniqueKey) -> None:
    await submit(backend, unique("a", rule), unique("b", rule))
    await backend.jobs.retry("a", WallMs(NOW + 10))
    await submit(backend, unique("c", rule))
    assert (await in_state(backend, PENDING), await in_state(backend, CANCELLED)) == (["a", "c"], ["b"])


async def test_a_replacement_that_cannot_be_stored_replaces_nothing(backend: Backend) -> None:
    await submit(backend, unique("a", REPLACE))
    with pytest.raises(InvalidInput):
        await backend.jobs.submit(unique("b", REPLACE, payload={"n": 2**64}))
    with pytest.raises(InvalidInput):
        await backend.jobs.submit_many([unique("b", REPLACE, payload={"n": 2**64})])
    assert await in_state(backend, PENDING) == ["a"]
    assert (await stored(backend))["unique_key"] == "u"


async def test_a_debounced_job_waits_for_a_period_after_the_last_and_for_so_long_in_all(backend: Backend) -> None:
    waits = []
    for id, after_ms in (("a", 0), ("b", 900), ("c", 4_500)):
        await submit(backend, unique(id, DEBOUNCE, after_ms=after_ms))
        waits.append((await stored(backend, id))["not_before_ms"] - NOW)
    assert waits == [1_000, 1_900, 5_000]
    # Had it to make way now, it would be last in the queue each time.
    await submit(backend, unique("d", DEBOUNCE, after_ms=5_000), unique("e", DEBOUNCE, after_ms=5_100))
    assert await in_state(backend, PENDING) == ["c", "e"]
    assert (await stored(backend, "e"))["not_before_ms"] == NOW + 6_100


async def test_a_later_start_of_its_own_wins(backend: Backend) -> None:
    await submit(backend, unique("a", DEBOUNCE, not_before_ms=WallMs(NOW + 9_000)))
    assert (await stored(backend))["not_before_ms"] == NOW + 9_000
    await submit(backend, unique("b", DEBOUNCE, not_before_ms=WallMs(NOW + 10)))
    assert (await stored(backend, "b"))["not_before_ms"] == NOW + 1_000


# Batches


async def test_duplicates_within_a_batch_are_found(backend: Backend) -> None:
    batch = [
        unique("a"), make_job("p"), unique("b"), unique("x1", REPLACE, key="x"), unique("x2", REPLACE, key="x"),
        unique("y1", REPLACE, key="y"),
    ]  # fmt: skip
    answers = await backend.jobs.submit_many(batch)
    said = [(each.answer, each.document["_id"]) for each in answers]
    assert said == [(NEW, "a"), (NEW, "p"), (DUPLICATE, "a"), (NEW, "x1"), (NEW, "x2"), (NEW, "y1")]
    assert (await in_state(backend, PENDING), await in_state(backend, CANCELLED)) == (["a", "p", "x2", "y1"], ["x1"])


async def test_batches_that_race_keep_one_of_each_key(backend: Backend) -> None:
    def batch(n: int) -> list[NewJob]:
        keep = [unique(f"k{n}-{place}", key=f"k{place}") for place in range(5)]
        return [*keep, *(unique(f"r{n}-{place}", REPLACE, key=f"r{place}") for place in range(5))]

    answers = await raced(backend.jobs.submit_many(batch(n)) for n in range(8))
    for place in range(5):
        assert [each[place].answer for each in answers].count(NEW) == 1
    assert len(await in_state(backend, PENDING)) == 10
    assert len(await in_state(backend, CANCELLED)) == 35


async def test_a_batch_takes_the_keys_of_many_that_have_ended(backend: Backend) -> None:
    await backend.jobs.submit_many([unique(f"a{n}", key=f"k{n}") for n in range(20)])
    for n in range(20):
        await backend.jobs.cancel(f"a{n}", WallMs(NOW))
    answers = await backend.jobs.submit_many([unique(f"b{n}", key=f"k{n // 2}") for n in range(40)])
    assert [each.answer for each in answers] == [NEW, DUPLICATE] * 20
