"""Jobs of tenants in different shards: found by their ids, listed as one, never waiting for one of another shard."""

from functools import partial
from typing import Any

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState, NewJob, ScheduleId
from hascheduler.model.routing import slot_of, with_slot
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    CancelAnswer,
    CancelledSome,
    JobSelection,
    ListPosition,
    RetryAnswer,
    SubmitAnswer,
)
from tests.factories import NOW, make_job, make_schedule, make_template
from tests.unit.sharding.deployment import HOME, ONE, ROUTING, TWO, Deployment

AT = WallMs(NOW + 100)
TENANTS = (HOME, ONE, TWO)


def job_of(tenant: str, number: int = 0, **only_what_matters: Any) -> NewJob:
    id = with_slot(f"job-{number:02}", tenant)
    return make_job(id, tenant=tenant, submitted_at_ms=WallMs(NOW + number), **only_what_matters)


async def one_of_each(deployment: Deployment, **only_what_matters: Any) -> list[str]:
    """Their ids, the oldest first."""
    jobs = [job_of(tenant, number, **only_what_matters) for number, tenant in enumerate(TENANTS)]
    answers = await deployment.jobs.submit_many(jobs)
    assert [str(each.document["_id"]) for each in answers] == [job.id for job in jobs]
    return [job.id for job in jobs]


# By id


async def test_each_job_is_in_the_shard_of_its_tenant_and_found_by_its_id() -> None:
    deployment = Deployment()
    for index, id in enumerate(await one_of_each(deployment)):
        assert deployment.shards_with(Collection.JOBS, id) == [index]
        found = await deployment.jobs.get(id)
        assert found is not None
        assert found["_id"] == id
    assert await deployment.jobs.get("nobody") is None


@pytest.mark.parametrize("id", ["old", "fire:tick:1", with_slot("odd", HOME)])
async def test_a_job_is_found_wherever_its_id_says_it_is_not(id: str) -> None:
    deployment = Deployment()
    deployment.insert(2, Collection.JOBS, new_job_document(make_job(id, tenant=TWO)))
    assert [(job.id, job.tenant) for job in await deployment.jobs.known([id, "nobody"])] == [(id, TWO)]
    assert await deployment.jobs.cancel(id, AT) is CancelAnswer.CANCELLED
    assert await deployment.jobs.cancel(id, AT) is CancelAnswer.ALREADY_DONE
    assert await deployment.jobs.retry(id, AT) is RetryAnswer.OK
    assert await deployment.jobs.cancel("nobody", AT) is None


async def test_a_key_is_the_tenants_and_is_found_in_its_shard() -> None:
    deployment = Deployment()
    await one_of_each(deployment, idempotency_key="k", request_hash="h")
    for tenant in TENANTS:
        assert (await deployment.jobs.of_key(tenant, "k", AT) or {})["tenant"] == tenant
        again = await deployment.jobs.submit(job_of(tenant, 9, idempotency_key="k", request_hash="h"))
        assert again.answer is SubmitAnswer.KNOWN


# While what is of a tenant moves


async def test_until_all_of_a_slot_is_in_one_shard_both_are_looked_at_and_nothing_new_is_taken() -> None:
    """A key may be held in either of the two, and so may a job be that another one waits for."""
    deployment = Deployment()
    failed = job_of(ONE, 1, idempotency_key="k", request_hash="h")
    waiting = job_of(ONE, 2, depends_on=(failed.id,))
    for index, job in ((1, failed), (2, waiting)):
        deployment.insert(index, Collection.JOBS, {**new_job_document(job), "state": "failed"})
    begun = ROUTING.beginning({slot_of(ONE): 2})
    deployment.places.follow(lambda: begun)
    [dependent] = await deployment.jobs.dependents([failed.id], ONE, [], 9)
    for routing in (begun, begun.arrived(slot_of(ONE))):
        deployment.places.follow(partial(lambda now: now, routing))
        assert (await deployment.jobs.of_key(ONE, "k", AT) or {})["_id"] == failed.id
        page = await deployment.jobs.list(JobSelection(tenant=ONE), None, 9)
        assert [job["_id"] for job in page.documents] == [waiting.id, failed.id]
        assert await deployment.jobs.dependents([failed.id], ONE, [], 9) == [dependent]
        with pytest.raises(StoreUnavailable, match="moves to another shard"):
            await deployment.jobs.submit(job_of(ONE, 9, idempotency_key="k", request_hash="h"))
        with pytest.raises(StoreUnavailable, match="moves to another shard"):
            await deployment.jobs.retry_dependent(dependent, [failed.id], AT)
    deployment.places.follow(lambda: begun.arrived(slot_of(ONE)).emptied(slot_of(ONE)))
    assert await deployment.jobs.retry_dependent(dependent, [], AT)


# Submits


async def test_the_answers_are_in_the_order_of_the_jobs() -> None:
    deployment = Deployment()
    tenants = [TENANTS[number * number % 3] for number in range(20)]
    jobs = [job_of(tenant, number) for number, tenant in enumerate(tenants)]
    await deployment.jobs.submit(jobs[7])
    answers = await deployment.jobs.submit_many(jobs)
    assert [str(each.document["_id"]) for each in answers] == [job.id for job in jobs]
    assert [n for n, each in enumerate(answers) if each.answer is SubmitAnswer.KNOWN] == [7]
    assert await deployment.jobs.submit_many([]) == []


async def test_all_or_none_is_of_one_shard() -> None:
    deployment = Deployment()
    with pytest.raises(InvalidInput, match=f"{TWO}.* is in shard 0002, and tenant .*{ONE}.* in 0001") as refused:
        await deployment.jobs.submit_all([job_of(ONE), job_of(TWO)])
    assert refused.value.path == ("jobs",)
    assert (await deployment.jobs.list(JobSelection(), None, 9)).documents == []
    answers = await deployment.jobs.submit_all([job_of(TWO), job_of(TWO, 1)])
    assert answers is not None
    assert [each.answer for each in answers] == [SubmitAnswer.NEW] * 2


async def test_a_job_waits_for_none_of_another_shard() -> None:
    deployment = Deployment()
    await deployment.schedules.create(make_schedule(template=make_template(tenant=ONE)))
    for number, id in enumerate((with_slot("x", ONE), "fire:tick:1", "old")):
        deployment.insert(1, Collection.JOBS, new_job_document(make_job(id, tenant=ONE)))
        waiting = job_of(TWO, 1, depends_on=("nobody", id))
        for ask in (
            lambda waiting=waiting: deployment.jobs.submit(waiting),
            lambda waiting=waiting: deployment.jobs.submit_all([job_of(TWO), waiting]),
            lambda waiting=waiting: deployment.jobs.submit_many([job_of(HOME), waiting]),
        ):
            with pytest.raises(InvalidInput, match=f"{id}.* is in shard 0001, and what is .*{TWO}.* in 0002") as no:
                await ask()
            assert no.value.path == ("depends_on", 1)
        answer = await deployment.jobs.submit(job_of(ONE, number, depends_on=("nobody", id)))
        assert answer.answer is SubmitAnswer.NEW
    assert (await deployment.jobs.list(JobSelection(tenant=HOME), None, 9)).documents == []


async def test_a_job_waits_for_none_of_a_tenant_that_may_move_apart_from_its_own() -> None:
    """Both are in one shard now; once one of them has moved, the end of the other's job would be seen by nobody."""
    deployment = Deployment()
    other = next(f"t{n}" for n in range(999) if ROUTING.index_of(f"t{n}") == 1 and slot_of(f"t{n}") != slot_of(ONE))
    theirs = job_of(other)
    await deployment.jobs.submit(theirs)
    for ask in (
        lambda: deployment.jobs.submit(job_of(ONE, depends_on=(theirs.id,))),
        lambda: deployment.jobs.submit_many([job_of(other, 1), job_of(ONE, depends_on=(job_of(other, 1).id,))]),
    ):
        with pytest.raises(InvalidInput, match=f"{other}.*may move to another shard than tenant .*{ONE}") as refused:
            await ask()
        assert refused.value.path == ("depends_on", 0)
    near = next(f"t{n}" for n in range(9_999) if slot_of(f"t{n}") == slot_of(other) and f"t{n}" != other)
    answer = await deployment.jobs.submit(job_of(near, 2, depends_on=(theirs.id,)))
    assert answer.answer is SubmitAnswer.NEW


async def test_a_job_may_wait_for_one_of_its_own_shard_whichever_tenant_has_the_name_now() -> None:
    deployment = Deployment()
    await deployment.schedules.create(make_schedule(template=make_template(tenant=ONE)))
    deployment.insert(2, Collection.JOBS, new_job_document(make_job("fire:tick:1", tenant=TWO)))
    answer = await deployment.jobs.submit(job_of(TWO, depends_on=("fire:tick:1",)))
    assert answer.answer is SubmitAnswer.NEW
    together = [make_job("a", tenant=TWO), make_job("b", tenant=TWO, depends_on=("a",))]
    assert await deployment.jobs.submit_all(together) is not None


# Lists


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
async def test_a_list_has_everything_once_while_new_jobs_arrive(limit: int) -> None:
    deployment = Deployment()
    jobs = [job_of(TENANTS[number * number % 3], number // 2 * 2) for number in range(24)]
    jobs = [
        make_job(f"{job.id}-{n}", tenant=job.tenant, submitted_at_ms=job.submitted_at_ms) for n, job in enumerate(jobs)
    ]
    await deployment.jobs.submit_many(jobs)
    found: list[str] = []
    after: ListPosition | None = None
    for number in range(100):
        page = await deployment.jobs.list(JobSelection(), after, limit)
        assert len(page.documents) <= limit
        found += [str(job["_id"]) for job in page.documents]
        if page.next is None:
            break
        after = page.next
        await deployment.jobs.submit(job_of(TENANTS[number % 3], 60 + number))
    expected = sorted(((job.submitted_at_ms, job.id) for job in jobs), reverse=True)
    assert found == [id for _, id in expected]


async def test_jobs_whose_instants_were_broken_by_hand_end_no_list() -> None:
    deployment = Deployment()
    ids = await one_of_each(deployment)
    for index, broken in enumerate(["now", None, 1.5]):
        document = {**new_job_document(make_job(f"broken-{index}")), "submitted_at_ms": broken}
        deployment.insert(index, Collection.JOBS, document)
    found: list[str] = []
    after: ListPosition | None = None
    for _ in range(20):
        page = await deployment.jobs.list(JobSelection(), after, 2)
        found += [str(job["_id"]) for job in page.documents]
        if page.next is None:
            break
        after = page.next
    else:
        raise AssertionError("it has no end")
    assert {*ids} <= {*found}


async def test_counts_are_sums_and_no_more_than_is_asked_for() -> None:
    deployment = Deployment()
    ids = await one_of_each(deployment)
    await deployment.jobs.cancel(ids[1], AT)
    assert await deployment.jobs.count(JobSelection(), [JobState.PENDING], 9) == 2
    assert await deployment.jobs.count(JobSelection(), [JobState.PENDING], 1) == 1
    assert await deployment.jobs.count(JobSelection(tenant=ONE), [JobState.PENDING], 9) == 0
    exact = await deployment.jobs.counts(JobSelection(), 2)
    assert (exact.by_state[JobState.PENDING], exact.by_state[JobState.CANCELLED], exact.at_least) == (2, 1, frozenset())
    capped = await deployment.jobs.counts(JobSelection(), 1)
    assert (capped.by_state[JobState.PENDING], capped.at_least) == (1, frozenset({JobState.PENDING}))


async def test_failed_jobs_are_told_by_when_they_were_submitted_and_not_by_when_they_failed() -> None:
    deployment = Deployment()
    for number, (index, tenant) in enumerate([(0, HOME), (1, ONE), (2, TWO), (0, HOME)]):
        failed = {"state": "failed", "error": "x", "finished_at_ms": NOW + 100 - number}
        deployment.insert(index, Collection.JOBS, {**new_job_document(job_of(tenant, number)), **failed})
    told = await deployment.jobs.failed(JobSelection(), 9)
    assert ([job.id[:6] for job in told.jobs], told.complete) == (["job-03", "job-02", "job-01", "job-00"], True)
    told = await deployment.jobs.failed(JobSelection(), 3)
    assert ([job.id[:6] for job in told.jobs], told.complete) == (["job-03", "job-02", "job-01"], False)


async def test_the_jobs_of_a_batch_and_dependents_are_of_all_shards() -> None:
    deployment = Deployment()
    ids = await one_of_each(deployment, batch="b", depends_on=("gone",))
    assert sorted(job.id for job in await deployment.jobs.batch("b", 9)) == sorted(ids)
    assert len(await deployment.jobs.batch("b", 2)) == 2
    assert [job.id for job in await deployment.jobs.dependents(["gone"], None, [], 9)] == sorted(ids)
    assert [job.id for job in await deployment.jobs.dependents(["gone"], None, [ids[0]], 1)] == sorted(ids[1:])[:1]
    assert [job.id for job in await deployment.jobs.dependents(["gone"], TWO, [], 9)] == [ids[2]]


# Many at once


async def test_slices_of_changes_go_through_all_shards_within_their_limit() -> None:
    deployment = Deployment()
    await deployment.jobs.submit_many([job_of(TENANTS[number % 3], number) for number in range(9)])
    jobs, everything = deployment.jobs, JobSelection()
    assert [await jobs.reprioritize_some(everything, 9, 4) for _ in range(4)] == [4, 4, 1, 0]
    assert await jobs.cancel_some(JobSelection(tenant=ONE), AT, 9) == CancelledSome(3, 0)
    assert [(await jobs.cancel_some(everything, AT, 5)).cancelled for _ in range(3)] == [5, 1, 0]
    cancelled = JobSelection((JobState.CANCELLED,))
    assert [await jobs.retry_some(cancelled, AT, 7) for _ in range(3)] == [7, 2, 0]
    made_by = JobSelection(made_by=ScheduleId("tick", ONE, NOW))
    assert await jobs.cancel_some(made_by, AT, 9) == CancelledSome(0, 0)


# One shard down


async def test_what_needs_no_other_shard_goes_on_and_the_rest_names_the_one_that_is_down() -> None:
    deployment = Deployment()
    home, one, two = await one_of_each(deployment)
    deployment.connections[1].cut()
    jobs = deployment.jobs
    assert await jobs.get(home) is not None
    assert len((await jobs.list(JobSelection(tenant=TWO), None, 9)).documents) == 1
    assert (await jobs.submit(job_of(TWO, 7))).answer is SubmitAnswer.NEW
    assert {job.id for job in await jobs.known([home, two])} == {home, two}
    assert await jobs.cancel(two, AT) is CancelAnswer.CANCELLED
    for ask in (
        lambda: jobs.get(one), lambda: jobs.get("nobody"), lambda: jobs.list(JobSelection(), None, 9),
        lambda: jobs.counts(JobSelection(), 9), lambda: jobs.count(JobSelection(), [JobState.PENDING], 9),
        lambda: jobs.failed(JobSelection(), 9), lambda: jobs.known([one]), lambda: jobs.batch("b", 9),
        lambda: jobs.submit(job_of(ONE, 8)), lambda: jobs.cancel_some(JobSelection(), AT, 9),
    ):  # fmt: skip
        with pytest.raises(StoreUnavailable, match="shard 0001: "):
            await ask()


async def test_a_batch_of_which_one_shard_did_not_answer_is_repeated_and_each_job_is_there_once() -> None:
    deployment = Deployment()
    jobs = [job_of(tenant, idempotency_key="k", request_hash="h") for tenant in TENANTS]
    deployment.connections[1].fail_next(of="jobs.submit_many")
    with pytest.raises(StoreUnavailable, match="shard 0001: "):
        await deployment.jobs.submit_many(jobs)
    again = await deployment.jobs.submit_many(jobs)
    assert again[1].answer is SubmitAnswer.NEW
    assert {each.answer for each in again} <= {SubmitAnswer.KNOWN, SubmitAnswer.NEW}
    assert await deployment.jobs.count(JobSelection(), [JobState.PENDING], 9) == 3
