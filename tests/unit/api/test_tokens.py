"""``/v1/tokens``: a secret is shown once and stored nowhere, and no token gives more than it has."""

from typing import Any

import httpx

from hascheduler.model.collection import Collection
from hascheduler.model.token import SECRET, digest_of
from tests.unit.api.requests import NOW_TEXT, check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded

CI: dict[str, Any] = {"name": "ci", "role": "submitter", "tenant": "acme"}


async def make(client: httpx.AsyncClient, **changes: Any) -> dict[str, Any]:
    answer = await client.post("/v1/tokens", json={**CI, **changes})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    made: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/tokens/{made['id']}"
    return made


async def test_the_settings_token_makes_the_first_one_which_then_opens(guarded: Guarded) -> None:
    async with guarded.showing(ADMIN_TOKEN) as first:
        made = await make(first, expires_in="24h")
    secret = made.pop("token")
    assert SECRET.fullmatch(secret)
    assert made == {
        "id": made["id"], "name": "ci", "role": "submitter", "tenant": "acme", "created_at": NOW_TEXT,
        "created_by": "HASCHEDULER_ADMIN_TOKEN", "expires_at": "2030-01-02T00:00:00.000Z", "expired": False,
        "session": False,
    }  # fmt: skip
    async with guarded.showing(secret) as client:
        shown = (await client.get("/v1/whoami")).json()
    assert (shown["name"], shown["token"], shown["role"], shown["tenant"]) == ("ci", made["id"], "submitter", "acme")


async def test_the_secret_is_stored_nowhere(guarded: Guarded) -> None:
    async with guarded.showing(ADMIN_TOKEN) as client:
        secret = (await make(client))["token"]
        listed = await client.get("/v1/tokens")
        await guarded.world.audit_writer.flush()
        audited = await client.get("/v1/audit")
    assert guarded.world.stored(Collection.TOKENS, digest_of(secret))["name"] == "ci"
    for text in (str(guarded.world.everything()), listed.text, audited.text):
        assert secret not in text
        assert ADMIN_TOKEN not in text
    # What is stored is in no answer either: it would tell who can look into the database which one it is.
    assert digest_of(secret) not in listed.text + audited.text


async def test_several_live_under_one_name_until_each_is_revoked(guarded: Guarded) -> None:
    async with guarded.showing(ADMIN_TOKEN) as client:
        old, new = await make(client), await make(client)
        assert old["token"] != new["token"]
        assert (await client.delete(f"/v1/tokens/{old['id']}")).status_code == 204
        check_problem(await client.delete(f"/v1/tokens/{old['id']}"), 404)
        assert [item["id"] for item in (await client.get("/v1/tokens")).json()["items"]] == [new["id"]]
    async with guarded.showing(old["token"]) as client:
        check_problem(await client.get("/v1/lanes"), 401)
    async with guarded.showing(new["token"]) as client:
        assert (await client.get("/v1/lanes")).status_code == 200


async def test_an_admin_of_one_tenant_gives_what_is_that_tenants(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme") as client, guarded.showing(ADMIN_TOKEN) as boss:
        made = await make(client, role="admin")
        assert made["created_by"] == "admin-1"
        for tenant in ("other", "*"):
            check_problem(await client.post("/v1/tokens", json={**CI, "tenant": tenant}), 403, "tenant")
        theirs = await make(boss, tenant="other")
        listed = [item["id"] for item in (await client.get("/v1/tokens")).json()["items"]]
        assert sorted(listed) == sorted(["token-1", made["id"]])
        check_problem(await client.delete(f"/v1/tokens/{theirs['id']}"), 404)
        assert (await client.delete(f"/v1/tokens/{made['id']}")).status_code == 204
