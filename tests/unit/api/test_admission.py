"""Admission control: which jobs are admitted, which get Retry-After, and that a refused request writes nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.errors import InvalidInput, Overloaded, StoreUnavailable, TooMany
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import JobSelection, LeaderLag
from hascheduler.testing.memory.access import MemoryBucketStore
from tests.factories import make_job
from tests.unit.api.doubles import MAX_DEPENDENCIES, MAX_PENDING, StandingClock, World, app_of
from tests.unit.api.requests import check_problem, create, post
from tests.unit.telemetry.scraping import scrape

JOB = {"definition": "log", "tenant": "acme"}
TRIGGER = "/v1/schedules/tick/trigger", None
BACKFILL = "/v1/schedules/tick/backfill", {"from": "2029-12-31T23:59:58Z", "to": "2029-12-31T23:59:59Z"}
LATE = LeaderLag(5_000, 20)


class MovingClock(StandingClock):
    """Its monotonic half is moved by hand as well."""

    mono = 0

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.mono)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def make(world: World, clock: MovingClock) -> Callable[..., AdmissionControl]:
    return lambda max_pending=1_000, **more: AdmissionControl(
        world.view, MemoryBucketStore(world.connection), clock, max_pending, world.metrics.refused, **more
    )


@pytest.fixture
def admission(make: Callable[..., AdmissionControl]) -> AdmissionControl:
    return make()


@pytest.fixture
def distant(world: World, make: Callable[..., AdmissionControl]) -> AdmissionControl:
    """To a shard that is not followed here."""

    async def pending_of(tenant: str, most: int) -> int:
        return await world.jobs.count(JobSelection(tenant=tenant), (JobState.PENDING,), most)

    return make(10, max_dependencies=10, pending_of=pending_of)


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


# Through the API


BATCH = "/v1/jobs:batch", {"jobs": [JOB] * 3}
REFUSED: list[tuple[dict[str, Any], dict[str, int], tuple[str, Any], tuple[int, str, str]]] = [
    ({"max_pending": 2}, {"acme": 2}, ("/v1/jobs", JOB), (429, "2 may", "tenant_pending")),
    ({"max_pending": 5}, {"acme": 3}, BATCH, (429, "5 may", "tenant_pending")),
    ({"max_pending": 2}, {"acme": 2}, TRIGGER, (429, "2 may", "tenant_pending")),
    ({"max_pending": 2}, {"acme": 2}, BACKFILL, (429, "2 may", "tenant_pending")),
    ({}, {"other": MAX_PENDING}, ("/v1/jobs", JOB), (503, "may", "total_pending")),
    ({"max_pending": 2}, {}, BATCH, (422, "at most 2", "never")),
    ({"submit_rate": {"count": 2, "per_ms": 1_000}}, {}, BATCH, (422, "at most 2", "never")),
]


@pytest.mark.parametrize("case", REFUSED)
async def test_more_than_may_be_is_refused_and_nothing_is_written(
    client: httpx.AsyncClient, world: World, case: tuple[Any, Any, Any, Any]
) -> None:
    limits, waiting, (path, body), (status, named, reason) = case
    await create(client, job=JOB)
    limit(world, **limits)
    world.view.waiting.update(waiting)
    before = world.everything()
    answer = await client.post(path, json=body)
    problem = check_problem(answer, status)
    assert named in answer.text
    if status == 422:
        assert "retry-after" not in answer.headers
    else:
        assert problem["type"].endswith("too-many-requests" if status == 429 else "overloaded")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert world.everything() == before
    told = scrape(world.metrics.registry).by("hascheduler_admission_refusals_total", "reason")
    assert {name: count for name, count in told.items() if count} == {reason: 1}


async def test_what_fits_is_let_in(client: httpx.AsyncClient, world: World) -> None:
    await create(client, job=JOB)
    limit(world, max_pending=5)
    world.view.waiting["acme"] = 3
    await post(client, BACKFILL[0], {**BACKFILL[1], "dry_run": True})
    await post(client, "/v1/jobs:batch", {"jobs": [JOB] * 2})
    await post(client, "/v1/jobs", {"definition": "log", "tenant": "other"}, 201)


async def test_faster_than_may_be_is_429_until_the_bucket_has_a_token(client: httpx.AsyncClient, world: World) -> None:
    limit(world, submit_rate={"count": 2, "per_ms": 10_000})
    for _ in range(2):
        await post(client, "/v1/jobs", JOB, 201)
    answer = await client.post("/v1/jobs", json=JOB)
    check_problem(answer, 429)
    assert answer.headers["retry-after"] == "5"
    assert len(world.everything()["jobs"]) == 2
    assert scrape(world.metrics.registry).by("hascheduler_admission_refusals_total", "reason")["rate"] == 1


async def test_a_backfill_that_can_never_be_admitted_names_a_span_that_can(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, job=JOB)
    limit(world, max_pending=2)
    span = {"from": "2029-12-31T23:59:50Z", "to": "2029-12-31T23:59:59Z"}
    check_problem(await client.post("/v1/schedules/tick/backfill", json=span), 422, "to")


# What is counted


async def test_admitted_jobs_count_before_the_stream_shows_them_and_once_then(
    world: World, admission: AdmissionControl
) -> None:
    limit(world, max_pending=10)
    await admission.admit("acme", 6)
    admission.arrived("acme", own=False)  # another replica's
    world.view.waiting["acme"] = 1
    assert await admitted(admission, 10) == 3
    for waiting in range(2, 11):
        admission.arrived("acme", own=True)
        world.view.waiting["acme"] = waiting
        assert await admitted(admission, 1) == 0
    # A tenant at its cap keeps no other tenant out.
    assert await admitted(admission, 20, tenant="other") == 20


async def test_requests_at_the_same_time_find_each_other_counted(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=10, submit_rate={"count": 100, "per_ms": 1_000})
    answers = await asyncio.gather(*(admission.admit("acme", 1) for _ in range(30)), return_exceptions=True)
    assert answers.count(None) == 10


async def test_what_never_comes_is_forgotten_but_not_while_the_stream_is_silent(
    world: World, admission: AdmissionControl, clock: MovingClock
) -> None:
    limit(world, max_pending=10)
    await admission.admit("acme", 10)
    world.view.ready = False
    clock.mono += 3_600_000
    assert await admitted(admission, 1) == 0
    world.view.ready = True
    clock.mono += 9_999
    assert await admitted(admission, 1) == 0
    clock.mono += 10_001
    assert await admitted(admission, 20) == 10


async def test_a_replica_that_rereads_everything_uses_its_last_known_counts(
    world: World, admission: AdmissionControl
) -> None:
    world.view.ready = False
    with pytest.raises(Overloaded, match="only just begun"):
        await admission.admit("acme", 1)
    world.view.ready = True
    limit(world, max_pending=10)
    world.view.waiting["acme"] = 9
    await admission.admit("acme", 1)
    world.view.ready = False
    world.view.waiting.clear()
    world.database.delete(Collection.TENANTS, "acme")
    assert await admitted(admission, 5) == 0
    assert await admitted(admission, 5, tenant="other") == 5
    # A limit that is taken away holds no longer.
    world.view.ready = True
    assert await admitted(admission, 5) == 5


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_submit_that_gets_no_token_does_not_count_as_pending(
    world: World, admission: AdmissionControl, is_down: bool
) -> None:
    limit(world, max_pending=10, submit_rate={"count": 4, "per_ms": 1_000})
    if is_down:
        world.go_away()
        for _ in range(20):
            with pytest.raises(StoreUnavailable):
                await admission.admit("acme", 1)
        world.connection.mend()
    else:
        assert await admitted(admission, 20) == 4
    limit(world, max_pending=10)
    assert await admitted(admission, 20) == (10 if is_down else 6)


async def test_what_was_there_already_is_given_back(world: World, admission: AdmissionControl) -> None:
    limit(world, max_pending=1)
    for _ in range(5):
        await admission.admit("acme", 1)
        admission.not_new("acme", 1)


async def test_without_a_limit_of_the_shard_there_is_none(world: World, make: Callable[..., AdmissionControl]) -> None:
    with pytest.raises(InvalidInput):
        await make().admit("acme", 1_001)
    world.view.waiting["other"] = 100_000_000
    await make(None).admit("acme", 1_001)


async def test_an_empty_bucket_is_not_read_again_before_it_can_hold_a_token(
    world: World, admission: AdmissionControl, clock: MovingClock
) -> None:
    limit(world, submit_rate={"count": 2, "per_ms": 10_000})
    await admission.admit("acme", 2)
    assert await admitted(admission, 1) == 0
    # It would say the same: and a flood of those who come too early must not reach the database.
    world.connection.fail_next(of="buckets")
    clock.mono += 3_000
    with pytest.raises(TooMany) as refused:
        await admission.admit("acme", 1)
    assert refused.value.retry_after_s == 2
    clock.mono += 2_000
    with pytest.raises(StoreUnavailable):
        await admission.admit("acme", 1)


# A shard that is not followed here


async def test_pending_jobs_of_a_tenant_are_counted_where_they_are_stored(
    world: World, distant: AdmissionControl
) -> None:
    limit(world, max_pending=2)
    for id in ("job:1", "job:2"):
        await distant.admit("acme", 1)
        await world.jobs.submit(make_job(id, tenant="acme"))
    with pytest.raises(TooMany, match="2 jobs of tenant 'acme' wait, and 2 may"):
        await distant.admit("acme", 1)


async def test_what_waits_in_all_is_what_the_leader_told_and_what_came_since(
    world: World, distant: AdmissionControl, clock: MovingClock
) -> None:
    world.view.waiting["other"] = world.view.awaited = 8
    await distant.admit("acme", 2, dependencies=2)
    with pytest.raises(Overloaded, match="10 jobs wait, and 10 may"):
        await distant.admit("acme", 1)
    distant.not_new("acme", 1)
    with pytest.raises(TooMany, match="have 10 dependencies, and 10 may be"):
        await distant.admit("acme", 1, dependencies=1)
    clock.mono += 2_000
    await distant.admit("acme", 2, dependencies=2)


# What the leader can keep up with


def overload(world: World, admission: AdmissionControl, clock: MovingClock) -> None:
    """More waits than is done, and the leader is late, for long enough to limit intake."""
    world.view.leader_lag = LATE
    for waiting in range(100, 1_000, 100):
        clock.mono += 500
        world.view.waiting["other"] = waiting
        admission.turned_away(None)


@pytest.mark.parametrize("which", ["admission", "distant"])
async def test_if_the_leader_falls_behind_submits_are_refused(
    request: pytest.FixtureRequest, world: World, make: Callable[..., AdmissionControl], clock: MovingClock, which: str
) -> None:
    more = {"pending_of": None} if which == "admission" else {"pending_of": lambda *_: None}
    admission = make(None, **more)
    overload(world, admission, clock)
    assert admission.is_holding_back()
    assert await admitted(admission, 100, tenant="other") < 20
    refusals = [refusal for _ in range(10) if (refusal := admission.turned_away("other"))]
    assert refusals
    assert all(1 <= refusal.retry_after_s <= 15 for refusal in refusals)
    # Jobs that nobody can run are no queue, and those that can make it a short one.
    world.view.later = world.view.pending() - 10
    for _ in range(30):
        clock.mono += 500
        admission.turned_away("other")
    assert not admission.is_holding_back()
    assert await admitted(admission, 20, tenant="other") == 20


async def test_a_replica_that_is_not_ready_does_not_judge_the_leader(
    world: World, admission: AdmissionControl, clock: MovingClock
) -> None:
    await admission.admit("other", 1)
    overload(world, admission, clock)
    world.view.ready = False
    assert await admitted(admission, 50, tenant="other") == 50
    assert admission.turned_away("other") is None


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
async def test_a_submit_in_a_flood_is_refused_unread(
    world: World, make: Callable[..., AdmissionControl], clock: MovingClock, path: str
) -> None:
    world.clock, world.admission = clock, make()
    overload(world, world.admission, clock)
    transport = httpx.ASGITransport(app_of(world))
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        before = world.everything()
        headers = {"content-type": "application/json"}
        answers = [await client.post(path, content=b"not JSON", headers=headers) for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code != 400]
        assert len(refused) > 20
        for answer in refused:
            assert check_problem(answer, 503)["type"] == "urn:hascheduler:problem:overloaded"
            assert 1 <= int(answer.headers["retry-after"]) <= 15
            assert "connection" not in answer.headers
        assert world.everything() == before
        long = [await client.post(path, content=b" " * 100_000, headers=headers) for _ in range(5)]
        assert {answer.headers.get("connection") for answer in long if answer.status_code == 503} == {"close"}
        # Other requests are answered.
        assert (await client.get("/v1/jobs")).status_code == 200
        assert (await client.put("/v1/definitions/log", json={})).status_code in (200, 201)
    told = scrape(world.metrics.registry)
    assert told.by("hascheduler_admission_refusals_total", "reason")["overload"] >= len(refused)


# Dependencies


async def ids_of(client: httpx.AsyncClient, count: int) -> tuple[str, list[str]]:
    answer = await post(client, "/v1/jobs:batch", {"jobs": [JOB] * count})
    return answer["batch"], [result["job"] for result in answer["results"]]


async def test_more_dependencies_in_all_than_may_be_are_429_and_nothing_is_written(
    client: httpx.AsyncClient, world: World
) -> None:
    batch, ids = await ids_of(client, 3)
    world.view.awaited = MAX_DEPENDENCIES - 2
    before = world.everything()
    atomic = {"jobs": [{**JOB, "depends_on": ids}], "atomic": True}
    by_ref = {"jobs": [{**JOB, "ref": "a"}, {**JOB, "depends_on": ["ref:a", *ids[:2]]}]}
    for path, body in (
        ("/v1/jobs", {**JOB, "depends_on": ids}),
        ("/v1/jobs:batch", {"jobs": [{**JOB, "depends_on": [id]} for id in ids]}),
        ("/v1/jobs:batch", atomic),
        ("/v1/jobs:batch", by_ref),
    ):
        answer = await client.post(path, json=body)
        problem = check_problem(answer, 429)
        assert f"have {MAX_DEPENDENCIES - 2} dependencies, and {MAX_DEPENDENCIES} may be" in problem["detail"], body
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert world.everything() == before
    told = scrape(world.metrics.registry)
    assert told.by("hascheduler_admission_refusals_total", "reason")["dependencies"] == 4
    await post(client, "/v1/jobs", {**JOB, "depends_on": [batch, ids[0]]}, 201)
    check_problem(await client.post("/v1/jobs", json={**JOB, "depends_on": [batch]}), 429)
    await post(client, "/v1/jobs", JOB, 201)


async def test_what_turns_out_to_be_no_dependency_takes_no_room(client: httpx.AsyncClient, world: World) -> None:
    _, ids = await ids_of(client, 3)
    world.view.awaited = MAX_DEPENDENCIES - 5
    world.rewrite_job(ids[0], state="succeeded")
    refused = {"definition": "log", "depends_on": ["job:nobody"]}
    answer = await post(client, "/v1/jobs:batch", {"jobs": [{**JOB, "depends_on": ids[:2]}, refused]})
    assert [result["status"] for result in answer["results"]] == [201, 422]
    again = {"jobs": [{**JOB, "depends_on": ids[1:], "idempotency_key": "k"}]}
    for _ in range(3):
        await post(client, "/v1/jobs:batch", again)
    more = {**JOB, "depends_on": [*ids[1:], answer["results"][0]["job"]]}
    check_problem(await client.post("/v1/jobs", json=more), 429)
    await post(client, "/v1/jobs", {**JOB, "depends_on": ids}, 201)


async def test_more_dependencies_of_one_job_than_may_be_are_422_and_nothing_is_written(
    client: httpx.AsyncClient, world: World
) -> None:
    _, ids = await ids_of(client, 1_000)
    [more] = (await ids_of(client, 1))[1]
    before = world.everything()
    body = {**JOB, "depends_on": [*ids, more]}
    check_problem(await client.post("/v1/jobs", json=body), 422, "depends_on")
    answer = await post(client, "/v1/jobs:batch", {"jobs": [body]})
    assert answer["results"][0]["status"] == 422
    assert world.everything() == before
    await post(client, "/v1/jobs", {**JOB, "depends_on": ids}, 201)


async def test_dependencies_that_were_let_in_count_until_the_core_counts_them(
    world: World, make: Callable[..., AdmissionControl]
) -> None:
    admission = make(None, max_dependencies=10)
    await admission.admit("acme", 1, dependencies=8)
    with pytest.raises(TooMany):
        await admission.admit("other", 1, dependencies=3)
    world.view.awaited = 8
    admission.arrived("acme", own=True, dependencies=8)
    await admission.admit("other", 1, dependencies=2)
    admission.not_new("other", 1, dependencies=2)
    world.view.ready = False
    await admission.admit("other", 1, dependencies=2)
    with pytest.raises(TooMany):
        await admission.admit("other", 1, dependencies=1)
    with pytest.raises(InvalidInput):
        await admission.admit("acme", 1, dependencies=11)
