"""One tenant takes no more than its own: tokens, lanes, schedules and conflict groups."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.dispatch.decisions import Fire
from hascheduler.mirror.changes import ScheduleSeen
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.definition import ConflictScope, Definition, RateLimit
from hascheduler.schema.noun import read_document
from hascheduler.schema.tenant import Tenant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem
from tests.unit.api.tokens import Guarded
from tests.unit.dispatch.nouns import make_schedule, noun_seen
from tests.unit.dispatch.scene import Scene

# Tokens make none that exceeds or outlives them: one that was lent for an hour could renew itself for ever

HOUR_MS = 3_600_000
AN_HOUR_LATER = "2030-01-01T01:00:00.000Z"


async def asked(client: httpx2.AsyncClient, **changes: Any) -> httpx2.Response:
    return await client.post("/v1/tokens", json={"name": "child", "role": "admin", "tenant": "acme", **changes})


async def test_what_an_expiring_token_makes_expires_with_it_at_the_latest(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme", expires_at_ms=WallMs(NOW + HOUR_MS)) as parent:
        assert (await asked(parent)).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in=None)).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in="1h")).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in="10m")).json()["expires_at"] == "2030-01-01T00:10:00.000Z"
        problem = check_problem(await asked(parent, expires_in="3601s"), 422, "expires_in")
    [error] = problem["errors"]
    assert error["expected"] == "at most 1h, or no expires_in"
    assert AN_HOUR_LATER in error["problem"]


async def test_a_token_creates_none_beyond_its_own_tenant_and_role(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme") as parent:
        for tenant in ("other", "*"):
            check_problem(await asked(parent, tenant=tenant), 403, "tenant")
        check_problem(await asked(parent, role="worker"), 422, "tenant")
    for role in ("viewer", "submitter", "operator"):
        async with await guarded.client(role, "acme") as parent:
            check_problem(await asked(parent, role="viewer"), 403)


# Lanes share before tenants do: who could name a lane for each job had every start


def refused_lane(answer: httpx2.Response, path: str = "lane") -> None:
    (error,) = check_problem(answer, 422)["errors"]
    assert (error["path"], error["problem"]) == (path, "lane 'own' does not exist")
    assert error["expected"].startswith("default, or a lane of /v1/lanes")


async def test_a_token_of_one_tenant_cannot_name_an_undefined_lane(acme: httpx2.AsyncClient, world: World) -> None:
    before = world.database.documents(Collection.JOBS)
    refused_lane(await acme.post("/v1/jobs", json={"definition": "log", "lane": "own"}))
    refused_lane(await acme.post("/v1/schedules", json={**TICK, "job": {**TICK["job"], "lane": "own"}}), "job.lane")
    assert list(world.database.documents(Collection.JOBS)) == list(before)
    assert not list(world.database.documents(Collection.SCHEDULES))


async def test_an_edit_moves_no_schedule_to_such_a_lane(acme: httpx2.AsyncClient, world: World) -> None:
    assert (await acme.post("/v1/schedules", json=TICK)).status_code == 201
    for answer in (
        await acme.patch("/v1/schedules/tick", json={"job": {"lane": "own"}}),
        await acme.post("/v1/schedules/tick/preview", json={"job": {"lane": "own"}}),
    ):
        refused_lane(answer, "job.lane")
    assert world.schedule()["job"]["lane"] == "default"


# A group is each tenant's own unless its definition says that it is shared: another tenant's target held up its jobs

LOG = "/v1/definitions/log"


async def test_a_definition_of_0_2_0_stays_shared_until_it_is_edited(client: httpx2.AsyncClient, world: World) -> None:
    await client.put(LOG, json={"conflict_group": "git", "conflict_scope": "shared"})
    stored = world.stored(Collection.DEFINITIONS, "log")
    del stored["conflict_scope"]
    world.database.replace(Collection.DEFINITIONS, stored)
    assert read_document(Definition, "log", stored).conflict_scope is ConflictScope.SHARED
    for method, body in (("PUT", {"conflict_group": "git"}), ("PATCH", {"tier": 3}), ("PUT", {"tier": 4})):
        assert (await client.request(method, LOG, json=body)).json()["conflict_scope"] == "shared"
    tag = {"If-Match": (await client.get(LOG)).headers["etag"]}
    assert (await client.put(LOG, json={"tier": 5}, headers=tag)).json()["conflict_scope"] == "shared"
    shown = (await client.patch(LOG, json={"conflict_scope": "tenant"})).json()
    assert (shown["conflict_scope"], shown["tier"]) == ("tenant", 5)


# Schedules count in what a tenant may: five fast ones made 302 pending jobs where five were allowed

FAST = {"type": "interval", "every": "100ms"}


def limit(guarded: Guarded, limits: ScheduleLimits) -> None:
    guarded.app.services = replace(guarded.app.services, schedule_limits=limits)


async def made(client: httpx2.AsyncClient, name: str, **changes: Any) -> httpx2.Response:
    return await client.post("/v1/schedules", json={**TICK, "name": name, **changes})


def test_five_fast_schedules_make_no_more_pending_jobs_than_their_tenant_may_have() -> None:
    limits = Tenant(name="default", rev=1, max_pending=5, submit_rate=RateLimit(count=5, per_ms=60_000))
    schedules = [ScheduleSeen(make_schedule(name, every_ms=100)) for name in "abcde"]
    scene = Scene(noun_seen(limits), *schedules)
    steps = [scene.at(at_ms) for at_ms in range(0, 6_001, 20)]
    fired = {each for step in steps for each in step.decisions if isinstance(each, Fire)}
    assert len(fired) == scene.core.pending("default") == 5


async def test_a_tenant_has_as_many_schedules_as_it_may_and_no_more(
    acme: httpx2.AsyncClient, boss: httpx2.AsyncClient
) -> None:
    await boss.put("/v1/tenants/acme", json={"max_schedules": 2})
    for name in ("a", "b"):
        assert (await made(acme, name)).status_code == 201
    check_problem(await made(acme, "c"), 409, "job.tenant")
    # Its own limit holds for tokens of all tenants too, and others are not touched by it.
    check_problem(await made(boss, "c", job={"definition": "log", "tenant": "acme"}), 409, "job.tenant")
    assert (await made(boss, "c")).status_code == 201
    await acme.delete("/v1/schedules/a")
    assert (await made(acme, "d")).status_code == 201


async def test_a_deployment_has_a_limit_for_tenants_that_have_none_of_their_own(
    acme: httpx2.AsyncClient, boss: httpx2.AsyncClient, guarded: Guarded
) -> None:
    limit(guarded, ScheduleLimits(schedules_max=1))
    assert (await made(acme, "a")).status_code == 201
    check_problem(await made(acme, "b"), 409, "job.tenant")
    assert (await made(boss, "b", job={"definition": "log", "tenant": "acme"})).status_code == 201
    await boss.put("/v1/tenants/acme", json={"max_schedules": 3})
    assert (await made(acme, "c")).status_code == 201


@pytest.mark.parametrize(
    ("trigger", "path"),
    [
        (FAST, "trigger.every"),
        ({"type": "interval", "every": "999ms"}, "trigger.every"),
        ({"type": "interval", "every": "1s"}, None),
        ({"type": "cron", "expression": "* * * * * *"}, None),
        ({"type": "times", "at": ["2031-01-01T00:00:00.100Z", "2031-01-01T00:00:00.200Z"]}, None),
    ],
)
async def test_a_token_of_one_tenant_makes_no_schedule_that_fires_more_often_than_each_second(
    acme: httpx2.AsyncClient, boss: httpx2.AsyncClient, trigger: dict[str, Any], path: str | None
) -> None:
    answer = await made(acme, "a", trigger=trigger)
    if path is None:
        assert answer.status_code == 201
    else:
        problem = check_problem(answer, 422, path)
        assert problem["errors"][0]["expected"] == "at least 1s"
    assert (await made(boss, "b", trigger=trigger)).status_code == 201


async def test_a_stored_schedule_with_such_a_lane_can_be_sent_again_and_edited(
    acme: httpx2.AsyncClient, boss: httpx2.AsyncClient, world: World
) -> None:
    own = {**TICK["job"], "lane": "own", "tenant": "acme"}
    assert (await boss.post("/v1/schedules", json={**TICK, "job": own})).status_code == 201
    assert (await acme.patch("/v1/schedules/tick", json={"overlap": "skip"})).status_code == 200
    assert world.schedule()["job"]["lane"] == "own"
