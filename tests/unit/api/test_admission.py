"""Admission control: which jobs are admitted, which get Retry-After, and that a refused request writes nothing."""

import asyncio
from typing import Any

import httpx2
import pytest

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.errors import InvalidInput, Overloaded, StoreUnavailable, TooMany
from hascheduler.model.collection import Collection
from hascheduler.ports import LeaderLag
from hascheduler.testing.memory.access import MemoryBucketStore
from tests.unit.api.doubles import MAX_DEPENDENCIES, MAX_PENDING, World, app_of
from tests.unit.api.requests import Client, check_problem, create, post
from tests.unit.telemetry.scraping import scrape

JOB = {"definition": "log", "tenant": "acme"}


@pytest.fixture
def admission(world: World) -> AdmissionControl:
    return AdmissionControl(world.view, MemoryBucketStore(world.connection), world.clock, 1_000)


def limit(world: World, **fields: Any) -> None:
    world.database.replace(Collection.TENANTS, {"_id": "acme", "rev": 1, **fields})


async def admitted(admission: AdmissionControl, tries: int, jobs: int = 1, tenant: str = "acme") -> int:
    """How many of so many tries in a row got in."""
    count = 0
    for _ in range(tries):
        try:
            await admission.admit(tenant, jobs)
        except (TooMany, Overloaded):
            continue
        count += 1
    return count


@pytest.mark.parametrize(
    ("tenant", "pending", "status", "kind", "limit_in_detail"),
    [("acme", 2, 429, "too-many-requests", "at most 2"), ("other", MAX_PENDING, 503, "overloaded", "")],
    ids=["of the tenant", "of all"],
)
async def test_with_more_pending_than_may_be_nothing_is_written(
    client: Client, world: World, *, tenant: str, pending: int, status: int, kind: str, limit_in_detail: str
) -> None:
    limit(world, max_pending=2)
    world.view.waiting[tenant] = pending
    before = world.everything()
    answer = await client.post("/v1/jobs", json=JOB)
    problem = check_problem(answer, status)
    assert problem["type"] == f"urn:hascheduler:problem:{kind}"
    assert limit_in_detail in problem["detail"]
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert world.everything() == before


async def test_faster_than_may_be_is_429_until_the_bucket_has_a_token(client: Client, world: World) -> None:
    limit(world, submit_rate={"count": 2, "per_ms": 10_000})
    for _ in range(2):
        await post(client, "/v1/jobs", JOB, 201)
    answer = await client.post("/v1/jobs", json=JOB)
    check_problem(answer, 429)
    assert answer.headers["retry-after"] == "5"
    assert len(world.everything()["jobs"]) == 2


@pytest.mark.parametrize("limits", [{"max_pending": 2}, {"submit_rate": {"count": 2, "per_ms": 1_000}}])
async def test_a_batch_that_can_never_be_admitted_gets_no_retry_after(
    client: Client, world: World, limits: dict[str, Any]
) -> None:
    limit(world, **limits)
    before = world.everything()
    answer = await client.post("/v1/jobs:batch", json={"jobs": [JOB] * 3})
    check_problem(answer, 422, "jobs")
    assert "retry-after" not in answer.headers
    assert "at most 2" in answer.text
    assert world.everything() == before


async def test_what_a_schedule_is_asked_for_counts_as_submitted(client: Client, world: World) -> None:
    await create(client, job={"definition": "log", "tenant": "acme"})
    limit(world, max_pending=2)
    world.view.waiting["acme"] = 2
    before = world.everything()
    check_problem(await client.post("/v1/schedules/tick/trigger"), 429)
    span = {"from": "2029-12-31T23:59:58Z", "to": "2029-12-31T23:59:59Z"}
    check_problem(await client.post("/v1/schedules/tick/backfill", json=span), 429)
    assert world.everything() == before
    await post(client, "/v1/schedules/tick/backfill", {**span, "dry_run": True})


async def test_jobs_that_other_replicas_admit_do_not_settle_this_replicas_own(
    world: World, admission: AdmissionControl
) -> None:
    limit(world, max_pending=10)
    await admission.admit("acme", 6)
    admission.arrived("acme", own=False)
    world.view.waiting["acme"] = 1
    assert await admitted(admission, 10) == 3


async def test_requests_at_the_same_time_find_each_other_counted(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=10, submit_rate={"count": 100, "per_ms": 1_000})
    answers = await asyncio.gather(*(admission.admit("acme", 1) for _ in range(30)), return_exceptions=True)
    assert answers.count(None) == 10


async def test_what_never_comes_back_is_forgotten(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=10)
    await admission.admit("acme", 10)
    world.clock.mono += 9_999
    assert await admitted(admission, 1) == 0
    world.clock.mono += 1
    assert await admitted(admission, 20) == 10


async def test_a_replica_that_rereads_everything_uses_its_last_known_counts(
    world: World, admission: AdmissionControl
) -> None:
    limit(world, max_pending=10)
    world.view.waiting["acme"] = 9
    await admission.admit("acme", 1)
    world.view.ready = False
    world.view.waiting.clear()
    world.database.delete(Collection.TENANTS, "acme")
    assert await admitted(admission, 5) == 0


async def test_a_replica_without_a_first_mirror_admits_nothing(world: World, admission: AdmissionControl) -> None:
    world.view.ready = False
    with pytest.raises(Overloaded, match="has just started"):
        await admission.admit("acme", 1)
    world.view.ready = True
    await admission.admit("acme", 1)
    world.view.ready = False
    await admission.admit("acme", 1)


async def test_an_unavailable_database_leaves_no_job_uncounted(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=10, submit_rate={"count": 4, "per_ms": 1_000})
    world.go_away()
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await admission.admit("acme", 1)
    world.connection.restore()
    limit(world, max_pending=10)
    assert await admitted(admission, 20) == 10


async def test_a_tenant_at_its_cap_keeps_no_other_tenant_out(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=10)
    assert await admitted(admission, 20) == 10
    assert await admitted(admission, 20, tenant="other") == 20


async def retry_after_s(admission: AdmissionControl, jobs: int = 1) -> int:
    with pytest.raises(TooMany) as refused:
        await admission.admit("acme", jobs)
    return refused.value.retry_after_s


@pytest.mark.parametrize("case", [(10, 1, 1), (10, 100, 10), (1, 30, 30), (1, 100, 60), (0, 1, 60)])
async def test_the_time_to_come_again_follows_from_how_fast_the_queue_falls(
    world: World, admission: AdmissionControl, case: tuple[int, int, int]
) -> None:
    leave_per_s, jobs, expected_s = case
    limit(world, max_pending=500)
    world.view.waiting["acme"] = 500
    await retry_after_s(admission)
    for _ in range(10):
        world.clock.mono += 1_000
        # As many come, from whichever replica, as leave.
        for _ in range(leave_per_s):
            admission.arrived("acme", own=False)
        await retry_after_s(admission)
    assert await retry_after_s(admission, jobs) == expected_s


async def test_an_empty_bucket_is_not_read_again_before_it_can_hold_a_token(
    world: World, admission: AdmissionControl
) -> None:
    limit(world, submit_rate={"count": 2, "per_ms": 10_000})
    await admission.admit("acme", 2)
    assert await retry_after_s(admission) == 5
    # It would say the same: and a flood of those who come too early must not reach the database.
    world.connection.fail_next(of="buckets")
    world.clock.mono += 3_000
    assert await retry_after_s(admission) == 2
    world.clock.mono += 2_000
    with pytest.raises(StoreUnavailable):
        await admission.admit("acme", 1)


LATE = LeaderLag(5_000, 20)


def overload(world: World, admission: AdmissionControl) -> None:
    """More waits than is done, and the leader is late, for long enough to limit intake."""
    world.view.leader_lag = LATE
    for waiting in range(0, 600, 100):
        world.clock.mono += 500
        world.view.waiting["other"] = waiting
        for _ in range(100):
            admission.arrived("other", own=True)
        admission.turned_away(None, 20)


@pytest.fixture
def overloaded(world: World) -> World:
    """A world in which submits are refused before they are read, but for some."""
    world.admission = AdmissionControl(
        world.view, MemoryBucketStore(world.connection), world.clock, MAX_PENDING, world.metrics.refused
    )
    overload(world, world.admission)
    return world


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
async def test_a_submit_in_a_flood_is_refused_unread(overloaded: World, path: str) -> None:
    transport = httpx2.ASGITransport(app_of(overloaded))
    async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
        answers = [await client.post("/v1/jobs", json=JOB) for _ in range(30)]
        check_problem(answers[-1], 503)  # no more are read to look whose they are
        before = overloaded.everything()
        answer = await client.post(path, content=b"not JSON", headers={"content-type": "application/json"})
        problem = check_problem(answer, 503)
        assert problem["type"] == "urn:hascheduler:problem:overloaded"
        assert 1 <= int(answer.headers["retry-after"]) <= 15
        assert "connection" not in answer.headers
        assert overloaded.everything() == before
        long = await client.post(path, content=b" " * 100_000, headers={"content-type": "application/json"})
        assert long.headers["connection"] == "close"
    told = scrape(overloaded.metrics.registry)
    assert told.by("hascheduler_submit_rejections_total", "reason")["overload"] >= 2


async def ids_of(client: Client, count: int) -> tuple[str, list[str]]:
    answer = await post(client, "/v1/jobs:batch", {"jobs": [JOB] * count})
    return answer["batch"], [result["job"] for result in answer["results"]]


async def test_more_dependencies_in_all_than_may_be_are_429_and_nothing_is_written(
    client: Client, world: World
) -> None:
    batch, ids = await ids_of(client, 3)
    world.view.awaited = MAX_DEPENDENCIES - 2
    before = world.everything()
    atomic = {"jobs": [{**JOB, "depends_on": ids}], "atomic": True}
    by_ref = {"jobs": [{**JOB, "ref": "a"}, {**JOB, "depends_on": ["ref:a", *ids[:2]]}]}
    for path, body in (
        ("/v1/jobs", {**JOB, "depends_on": ids}),
        ("/v1/jobs:batch", {"jobs": [{**JOB, "depends_on": ids}]}),
        ("/v1/jobs:batch", {"jobs": [{**JOB, "depends_on": [id]} for id in ids]}),
        ("/v1/jobs:batch", atomic),
        ("/v1/jobs:batch", by_ref),
    ):
        answer = await client.post(path, json=body)
        problem = check_problem(answer, 429)
        assert f"have {MAX_DEPENDENCIES - 2} dependencies, of at most {MAX_DEPENDENCIES}" in problem["detail"], body
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert world.everything() == before
    told = scrape(world.metrics.registry)
    assert told.by("hascheduler_submit_rejections_total", "reason")["dependencies"] == 5
    await post(client, "/v1/jobs", {**JOB, "depends_on": [batch, ids[0]]}, 201)
    check_problem(await client.post("/v1/jobs", json={**JOB, "depends_on": [batch]}), 429)
    await post(client, "/v1/jobs", JOB, 201)


async def test_what_was_let_in_counts_until_the_core_counts_it(admission: AdmissionControl, world: World) -> None:
    control = AdmissionControl(world.view, MemoryBucketStore(world.connection), world.clock, None, max_dependencies=10)
    await control.admit("acme", 1, dependencies=8)
    with pytest.raises(TooMany):
        await control.admit("other", 1, dependencies=3)
    world.view.awaited = 8
    control.arrived("acme", own=True, dependencies=8)
    await control.admit("other", 1, dependencies=2)
    control.not_new("other", 1, dependencies=2)
    world.view.ready = False
    await control.admit("other", 1, dependencies=2)
    with pytest.raises(TooMany):
        await control.admit("other", 1, dependencies=1)
    with pytest.raises(InvalidInput):
        await control.admit("acme", 1, dependencies=11)
