"""`JobStore`: a job is submitted once, however often and from however many callers. `BucketStore`: how many may be."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import IDEMPOTENCY_MS
from hascheduler.model.job import JobState, NewJob
from hascheduler.model.limit_keys import OnDuplicate, UniqueKey
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import AttemptOutcome, CancelAnswer, JobSelection, KnownJob, SubmitAnswer
from hascheduler.schema.definition import RateLimit
from tests.contract.backends import RETENTION_MS, Backend, on
from tests.contract.checks import raced
from tests.contract.job_states import dispatch, finish, start, stored
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo", "motor")

NEW, KNOWN, OTHER = SubmitAnswer.NEW, SubmitAnswer.KNOWN, SubmitAnswer.OTHER


def keyed(id: str, key: str = "k", body: str = "body", at_ms: int = NOW, tenant: str = "tenant") -> NewJob:
    return make_job(id, idempotency_key=key, request_hash=body, submitted_at_ms=WallMs(at_ms), tenant=tenant)


async def test_a_hundred_equal_submits_at_once_make_one_job(backend: Backend) -> None:
    answers = await raced(backend.jobs.submit(keyed(f"j{n}")) for n in range(100))
    assert [answer.answer for answer in answers].count(NEW) == 1
    assert {answer.answer for answer in answers} == {NEW, KNOWN}
    [id] = {str(answer.document["_id"]) for answer in answers}
    assert await backend.jobs.known([f"j{n}" for n in range(100)]) == [KnownJob(id, "tenant", JobState.PENDING)]


async def test_another_body_under_a_key_writes_nothing(backend: Backend) -> None:
    await backend.jobs.submit(keyed("a"))
    before = await stored(backend)
    answer = await backend.jobs.submit(keyed("b", body="another"))
    assert (answer.answer, answer.document) == (OTHER, before)
    [answer] = await backend.jobs.submit_many([keyed("c", body="another")])
    assert (answer.answer, answer.document) == (OTHER, before)
    assert await stored(backend) == before
    assert await backend.jobs.get("b") is await backend.jobs.get("c") is None


async def test_each_tenant_has_its_own_keys(backend: Backend) -> None:
    assert (await backend.jobs.submit(keyed("a", tenant="one"))).answer is NEW
    assert (await backend.jobs.submit(keyed("b", tenant="two"))).answer is NEW


@pytest.mark.parametrize(("later_ms", "expected"), [(IDEMPOTENCY_MS - 1, KNOWN), (IDEMPOTENCY_MS, NEW)])
async def test_a_key_holds_for_a_day(backend: Backend, later_ms: int, expected: SubmitAnswer) -> None:
    await backend.jobs.submit(keyed("a"))
    answer = await backend.jobs.submit(keyed("b", at_ms=NOW + later_ms))
    assert answer.answer is expected
    assert answer.document["_id"] == ("a" if expected is KNOWN else "b")
    [again] = await backend.jobs.submit_many([keyed("c", at_ms=NOW + later_ms)])
    assert (again.answer, again.document["_id"]) == (KNOWN, answer.document["_id"])


async def test_a_job_that_answers_for_a_key_is_kept_for_a_day_at_least(backend: Backend) -> None:
    for id, job in (("a", keyed("a")), ("b", make_job("b"))):
        await backend.jobs.submit(job)
        await run(backend, id)
    kept = (await stored(backend, "a"))["expire_at"].replace(tzinfo=None)
    assert kept > to_datetime(NOW + IDEMPOTENCY_MS).replace(tzinfo=None)
    assert (await stored(backend, "b"))["expire_at"].replace(tzinfo=None) < kept
    await backend.jobs.submit(keyed("c", "other"))
    assert await backend.jobs.cancel("c", WallMs(NOW)) is CancelAnswer.CANCELLED
    assert (await stored(backend, "c"))["expire_at"].replace(tzinfo=None) == kept
    assert RETENTION_MS < IDEMPOTENCY_MS


def together(*ids: str, tried: int = 0, asked: str = "h", at_ms: int = NOW) -> list[NewJob]:
    """Each under a key of its own, the same at each try."""
    return [
        make_job(
            f"{id}{tried}", idempotency_key=f"k#{place}", request_hash=asked, batch="b", submitted_at_ms=WallMs(at_ms)
        )
        for place, id in enumerate(ids)
    ]


async def ids_of(backend: Backend) -> list[str]:
    return sorted(job["_id"] for job in (await backend.jobs.list(JobSelection(), None, 99)).documents)


async def test_one_that_is_known_keeps_all_back(backend: Backend) -> None:
    await backend.jobs.submit(make_job("x", idempotency_key="k#1", request_hash="h"))
    assert await backend.jobs.submit_all(together("a", "b", "c")) is None
    await backend.jobs.submit(make_job("b0"))
    assert await backend.jobs.submit_all([make_job("a0"), make_job("b0"), make_job("c0")]) is None
    assert await ids_of(backend) == ["b0", "x"]


async def test_a_repeated_one_meets_what_it_has_made(backend: Backend) -> None:
    await backend.jobs.submit_all(together("a", "b"))
    again = await backend.jobs.submit_all(together("a", "b", tried=1))
    assert again is not None
    assert [(each.answer, each.document["_id"]) for each in again] == [("known", "a0"), ("known", "b0")]
    for other in (together("a", "b", tried=2, asked="i"), together("a", "b", "c", tried=2)):
        assert await backend.jobs.submit_all(other) is None
    assert await ids_of(backend) == ["a0", "b0"]
    later = await backend.jobs.submit_all(together("a", "b", tried=3, at_ms=NOW + IDEMPOTENCY_MS))
    assert later is not None
    assert {each.answer for each in later} == {SubmitAnswer.NEW}


async def test_of_many_at_once_one_makes_them(backend: Backend) -> None:
    tries = (backend.jobs.submit_all(together("a", "b", "c", tried=tried)) for tried in range(6))
    answers = [{(each.answer, each.document["_id"][-1]) for each in one or ()} for one in await asyncio.gather(*tries)]
    [made] = {tried for answer in answers for outcome, tried in answer if outcome is SubmitAnswer.NEW}
    assert sorted(len(answer) for answer in answers) == [1] * 6
    assert await ids_of(backend) == [f"{id}{made}" for id in "abc"]


async def test_one_that_cannot_be_stored_keeps_all_back(backend: Backend) -> None:
    with pytest.raises(InvalidInput):
        await backend.jobs.submit_all([make_job("a"), make_job("b", payload={"n": 2**64}), make_job("c")])
    assert await ids_of(backend) == []


DUPLICATE = SubmitAnswer.DUPLICATE
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


async def test_an_idempotency_key_comes_first(backend: Backend) -> None:
    for rule, key in ((KEEP, "u"), (REPLACE, "v")):
        first = unique(f"{key}1", rule, key=key, idempotency_key=key, request_hash="h")
        again = unique(f"{key}2", rule, key=key, idempotency_key=key, request_hash="h")
        other = unique(f"{key}3", rule, key=key, idempotency_key=key, request_hash="other")
        found = await submit(backend, first, again, other)
        assert found == [("new", f"{key}1"), ("known", f"{key}1"), ("other", f"{key}1")]
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
    found = await submit(backend, unique("a", rule), unique("b", rule, after_ms=1), unique("c", rule, after_ms=2))
    assert found == [("new", "a"), ("new", "b"), ("new", "c")]
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


# Batches


async def test_duplicates_within_a_batch_are_found(backend: Backend) -> None:
    batch = [
        unique("a"), make_job("p"), unique("b"), unique("x1", REPLACE, key="x"), unique("x2", REPLACE, key="x"),
        unique("y1", REPLACE, key="y"),
    ]  # fmt: skip
    answers = await backend.jobs.submit_many(batch)
    found = [(each.answer, each.document["_id"]) for each in answers]
    assert found == [(NEW, "a"), (NEW, "p"), (DUPLICATE, "a"), (NEW, "x1"), (NEW, "x2"), (NEW, "y1")]
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


DAY_MS = 86_400_000
THREE_A_DAY = RateLimit(count=3, per_ms=DAY_MS)
LONG_AGO = datetime(1960, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime.now(UTC) + timedelta(days=365)


async def put(backend: Backend, level: int, at: datetime, limit: RateLimit = THREE_A_DAY) -> None:
    document: dict[str, Any] = {"level": level, "count": limit.count, "per_ms": limit.per_ms, "at": at, "taken": True}
    await backend.behind.insert(Collection.BUCKETS, {"_id": "acme", **document})


async def stored_bucket(backend: Backend) -> dict[str, Any]:
    # A write that waits for the majority: what was written before it can be read then.
    await backend.behind.insert(Collection.DEFINITIONS, {"_id": "a later write"})
    document = await backend.behind.find(Collection.BUCKETS, "acme")
    assert document is not None
    return dict(document)


async def test_a_bucket_begins_full_and_gives_all_tokens_or_none(backend: Backend) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 2) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 2) > 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) > 0
    assert await backend.buckets.take("other", THREE_A_DAY, 3) == 0, "each tenant has its own"


async def test_an_empty_bucket_returns_the_wait_until_it_holds_enough(backend: Backend) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 3) == 0
    one_in_ms = await backend.buckets.take("acme", THREE_A_DAY, 1)
    assert DAY_MS // 3 - 600_000 < one_in_ms <= DAY_MS // 3
    all_in_ms = await backend.buckets.take("acme", THREE_A_DAY, 3)
    assert DAY_MS - 600_000 < all_in_ms <= DAY_MS


async def test_concurrent_takes_get_as_many_tokens_as_there_are(backend: Backend) -> None:
    answers = await asyncio.gather(*(backend.buckets.take("acme", THREE_A_DAY, 1) for _ in range(20)))
    assert answers.count(0) == 3


@pytest.mark.parametrize("limit", [THREE_A_DAY, RateLimit(count=1_000_000, per_ms=7 * DAY_MS)], ids=["3", "largest"])
async def test_a_bucket_refills_with_time_but_never_beyond_full(backend: Backend, limit: RateLimit) -> None:
    await put(backend, 0, LONG_AGO, limit)
    assert await backend.buckets.take("acme", limit, limit.count) == 0
    assert await backend.buckets.take("acme", limit, limit.count) > 0


async def test_a_clock_that_went_back_adds_nothing_and_refilling_continues_from_there(backend: Backend) -> None:
    await put(backend, DAY_MS, FAR_AHEAD)
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) > 0
    assert (await stored_bucket(backend))["at"].replace(tzinfo=UTC) < FAR_AHEAD


@pytest.mark.parametrize("other", [RateLimit(count=5, per_ms=DAY_MS), RateLimit(count=3, per_ms=2 * DAY_MS)])
async def test_with_another_limit_a_bucket_starts_full(backend: Backend, other: RateLimit) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 3) == 0
    assert await backend.buckets.take("acme", other, other.count) == 0
    assert await backend.buckets.take("acme", other, 1) > 0
