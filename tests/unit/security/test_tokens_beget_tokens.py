"""A token makes none that exceeds or outlives it: one that was lent for an hour could renew itself for ever."""

from typing import Any

import httpx

from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import NOW
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded

HOUR_MS = 3_600_000
AN_HOUR_LATER = "2030-01-01T01:00:00.000Z"


async def asked(client: httpx.AsyncClient, **changes: Any) -> httpx.Response:
    return await client.post("/v1/tokens", json={"name": "child", "role": "admin", "tenant": "acme", **changes})


async def test_what_an_expiring_token_makes_expires_with_it_at_the_latest(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme", expires_at_ms=WallMs(NOW + HOUR_MS)) as parent:
        assert (await asked(parent)).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in=None)).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in="1h")).json()["expires_at"] == AN_HOUR_LATER
        assert (await asked(parent, expires_in="10m")).json()["expires_at"] == "2030-01-01T00:10:00.000Z"
        problem = check_problem(await asked(parent, expires_in="3601s"), 422, "expires_in")
    [error] = problem["errors"]
    assert error["expected"] == "at most 1h, or nothing"
    assert AN_HOUR_LATER in error["problem"]


async def test_no_chain_of_tokens_reaches_beyond_the_first(guarded: Guarded) -> None:
    secret = await guarded.token("admin", expires_at_ms=WallMs(NOW + HOUR_MS))
    for passed_ms in (0, HOUR_MS // 2, HOUR_MS - 1_500):
        guarded.world.clock.now = WallMs(NOW + passed_ms)
        async with guarded.showing(secret) as client:
            made = (await asked(client, tenant="*")).json()
        assert made["expires_at"] == AN_HOUR_LATER
        secret = made["token"]
    guarded.world.clock.now = WallMs(NOW + HOUR_MS)
    async with guarded.showing(secret) as client:
        check_problem(await asked(client), 401)


async def test_a_token_that_does_not_expire_creates_any_requested_one(guarded: Guarded) -> None:
    async with guarded.showing(ADMIN_TOKEN) as boss, await guarded.client("admin", "acme") as parent:
        for client in (boss, parent):
            assert (await asked(client)).json()["expires_at"] is None
            assert (await asked(client, expires_in="2h")).json()["expires_at"] == "2030-01-01T02:00:00.000Z"


async def test_a_token_creates_none_beyond_its_own_tenant_and_role(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme") as parent:
        for tenant in ("other", "*"):
            check_problem(await asked(parent, tenant=tenant), 403, "tenant")
        check_problem(await asked(parent, role="worker"), 422, "tenant")
    for role in ("viewer", "submitter", "operator"):
        async with await guarded.client(role, "acme") as parent:
            check_problem(await asked(parent, role="viewer"), 403)


async def test_created_tokens_outlive_the_revoked_creator_and_name_it(guarded: Guarded) -> None:
    async with guarded.showing(ADMIN_TOKEN) as boss, await guarded.client("admin", "acme") as parent:
        child = (await asked(parent)).json()
        assert child["created_by"] == "admin-1"
        assert (await boss.delete("/v1/tokens/token-1")).status_code == 204
        async with guarded.showing(child["token"]) as client:
            assert (await client.get("/v1/whoami")).status_code == 200
        assert (await boss.delete(f"/v1/tokens/{child['id']}")).status_code == 204
