"""Schedules count in what a tenant may: five fast ones once made 302 pending jobs where five were allowed."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.dispatch.decisions import Fire
from hascheduler.mirror.changes import ScheduleSeen, TenantSeen
from hascheduler.model.verdict import Verdict
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.tenant import Tenant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, create, get, post
from tests.unit.api.tokens import Guarded
from tests.unit.dispatch.nouns import make_schedule
from tests.unit.dispatch.scene import Scene

FAST = {"type": "interval", "every": "100ms"}


def limit(guarded: Guarded, limits: ScheduleLimits) -> None:
    guarded.app.services = replace(guarded.app.services, schedule_limits=limits)


async def made(client: httpx.AsyncClient, name: str, **changes: Any) -> httpx.Response:
    return await client.post("/v1/schedules", json={**TICK, "name": name, **changes})


def test_five_fast_schedules_make_no_more_pending_jobs_than_their_tenant_may_have() -> None:
    limits = Tenant(name="default", rev=1, max_pending=5, submit_rate=RateLimit(count=5, per_ms=60_000))
    schedules = [ScheduleSeen(make_schedule(name, every_ms=100)) for name in "abcde"]
    scene = Scene(TenantSeen(limits), *schedules)
    steps = [scene.at(at_ms) for at_ms in range(0, 6_001, 20)]
    fired = {each for step in steps for each in step.decisions if isinstance(each, Fire)}
    assert len(fired) == scene.core.pending("default") == 5


async def test_a_tenant_has_as_many_schedules_as_it_may_and_no_more(
    acme: httpx.AsyncClient, boss: httpx.AsyncClient
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
    acme: httpx.AsyncClient, boss: httpx.AsyncClient, guarded: Guarded
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
    acme: httpx.AsyncClient, boss: httpx.AsyncClient, trigger: dict[str, Any], path: str | None
) -> None:
    answer = await made(acme, "a", trigger=trigger)
    if path is None:
        assert answer.status_code == 201
    else:
        problem = check_problem(answer, 422, path)
        assert problem["errors"][0]["expected"] == "at least 1s"
    assert (await made(boss, "b", trigger=trigger)).status_code == 201


async def test_an_edit_to_too_fast_a_trigger_is_refused_and_stored_ones_go_on(
    acme: httpx.AsyncClient, boss: httpx.AsyncClient
) -> None:
    assert (await made(acme, "slow")).status_code == 201
    answer = await acme.patch("/v1/schedules/slow", json={"trigger": FAST | {"every": "0.5s"}})
    problem = check_problem(answer, 422, "trigger.every")
    assert problem["errors"][0]["problem"].startswith("0.5s between two times")
    preview = await acme.post("/v1/schedules/slow/preview", json={"trigger": FAST})
    check_problem(preview, 422, "trigger.every")
    assert (await made(boss, "fast", trigger=FAST, job={"definition": "log", "tenant": "acme"})).status_code == 201
    assert (await acme.patch("/v1/schedules/fast", json={"overlap": "skip"})).status_code == 200
    check_problem(await acme.patch("/v1/schedules/fast", json={"trigger": {"every": "200ms"}}), 422, "trigger.every")
    assert (await acme.patch("/v1/schedules/fast", json={"trigger": {"every": "2s"}})).status_code == 200


async def test_the_least_interval_is_a_setting_and_holds_for_cron_too(
    acme: httpx.AsyncClient, guarded: Guarded
) -> None:
    limit(guarded, ScheduleLimits(least_interval_ms=60_000))
    every_second = {"type": "cron", "expression": "*/30 * * * * *"}
    check_problem(await made(acme, "a", trigger=every_second), 422, "trigger.expression")
    assert (await made(acme, "a", trigger={"type": "cron", "expression": "* * * * *"})).status_code == 201


async def test_throttled_times_are_shown_with_the_limit_that_they_met(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    await world.pass_over(Verdict.MISSED, NOW + 1_000)
    await world.pass_over(Verdict.THROTTLED, NOW + 2_000, NOW + 4_000, count=3, because_of="max_pending")
    await world.pass_over(Verdict.THROTTLED, NOW + 5_000, because_of="fire_rate")
    shown = await get(client, "/v1/schedules/tick/verdicts")
    assert [(item["verdict"], item["count"], item["because_of"]) for item in shown["items"]] == [
        ("throttled", 1, "fire_rate"), ("throttled", 3, "max_pending"), ("missed", 1, None),
    ]  # fmt: skip
    assert (shown["counts"]["throttled"], shown["counts"]["missed"]) == (4, 1)
    for verdict, count in (("throttled", 2), ("missed", 1)):
        items = (await get(client, f"/v1/schedules/tick/verdicts?verdict={verdict}"))["items"]
        assert [item["verdict"] for item in items] == [verdict] * count
    edited = await post(client, "/v1/schedules/tick/pause")
    assert edited["counts"]["throttled"] == 4
