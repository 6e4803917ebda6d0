"""``hascheduler token …``, ``hascheduler audit-log``, and what a token does for all other commands."""

import pytest

from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.token import SECRET, digest_of
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

ADMIN = "an-admin-token-of-the-settings"


@pytest.fixture
def world() -> World:
    """Where tokens are demanded."""
    world = World()
    world.auth = AuthConfig(required=True, admin_digest=digest_of(ADMIN))
    return world


async def made(replica: Replica, name: str = "ci", role: str = "operator", tenant: str = "acme") -> str:
    arguments = ("token", "create", name, "--role", role, "--tenant", tenant)
    return (await replica.done(*arguments, HASCHEDULER_TOKEN=ADMIN)).out.strip()


async def test_the_output_is_the_secret_alone_and_it_opens(replica: Replica) -> None:
    create = ("token", "create", "ci", "--role", "operator", "--tenant", "acme")
    ended = await replica.done(*create, HASCHEDULER_TOKEN=ADMIN)
    secret = ended.out.removesuffix("\n")
    assert SECRET.fullmatch(secret)
    assert ("operator of acme" in ended.err, secret in ended.err) == (True, False)
    for token, shown in (
        (secret, "ci: operator of tenant acme; may read, submit, operate\n"),
        (ADMIN, "HASCHEDULER_ADMIN_TOKEN: admin of all tenants; may "),
    ):
        assert (await replica.done("token", "whoami", HASCHEDULER_TOKEN=token)).out.startswith(shown)


async def test_they_are_listed_and_revoked(replica: Replica) -> None:
    assert "There are no tokens" in (await replica.done("token", "list", HASCHEDULER_TOKEN=ADMIN)).out
    secret = await made(replica)
    listed = await replica.json("token", "list", HASCHEDULER_TOKEN=ADMIN)
    [one] = listed["items"]
    assert (one["name"], one["role"], one["tenant"]) == ("ci", "operator", "acme")
    assert "token" not in one
    shown = await replica.done("token", "list", HASCHEDULER_TOKEN=ADMIN, COLUMNS="160")
    assert one["id"] in shown.out
    assert secret not in shown.out
    names = await replica.done("token", "list", "-o", "name", HASCHEDULER_TOKEN=ADMIN)
    assert names.out == f"{one['id']}\n"
    revoked = await replica.done("token", "delete", one["id"], "--yes", HASCHEDULER_TOKEN=ADMIN)
    assert revoked.out == f"revoked {one['id']}\n"
    refused = await replica.run("schedule", "list", HASCHEDULER_TOKEN=secret)
    assert (refused.status, "the token is unknown" in refused.err) == (2, True)


async def test_an_admin_of_one_tenant_can_not_delete_it_with_everything(replica: Replica) -> None:
    own = await made(replica, role="admin")
    refused = await replica.run("tenant", "delete", "acme", "--with-everything", "--yes", HASCHEDULER_TOKEN=own)
    assert (refused.status, "expected an admin of all tenants" in refused.err) == (2, True)
    assert len((await replica.json("token", "list", HASCHEDULER_TOKEN=own))["items"]) == 1


@pytest.mark.parametrize("token", ["two words", "ä", "a\nb"])
async def test_what_is_no_token_is_not_sent(replica: Replica, token: str) -> None:
    refused = await replica.run("schedule", "list", HASCHEDULER_TOKEN=token)
    assert refused.status == 2
    assert "HASCHEDULER_TOKEN: contains no token" in refused.err
    assert token not in refused.err


async def test_the_audit_log_is_shown_and_filtered(replica: Replica, world: World) -> None:
    assert "No audit log records match" in (await replica.done("audit-log", HASCHEDULER_TOKEN=ADMIN)).out
    secret = await made(replica, tenant="*")
    await replica.done("definition", "put", "log", HASCHEDULER_TOKEN=secret)
    await replica.run("lane", "put", "slow", HASCHEDULER_TOKEN=secret)
    await replica.run("pause", "--all", "--because", "the database moves", HASCHEDULER_TOKEN=ADMIN)
    await world.audit_writer.flush()
    shown = await replica.json("audit-log", "--who", "ci", HASCHEDULER_TOKEN=ADMIN)
    told = [(record["method"], record["path"], record["status"]) for record in shown["items"]]
    assert told == [("PUT", "/v1/lanes/slow", 403), ("PUT", "/v1/definitions/log", 201)]
    only = await replica.done("audit-log", "--who", "ci", "--limit", "1", "--json", HASCHEDULER_TOKEN=ADMIN)
    assert only.json["items"] == shown["items"][:1]
    table = (await replica.done("audit-log", "--path", "/v1/lanes", HASCHEDULER_TOKEN=ADMIN, COLUMNS="140")).out
    assert all(text in table for text in ("ci", "127.0.0.1", "PUT /v1/lanes/slow", "403"))
    assert "definitions" not in table
    assert "the database moves" in (await replica.done("audit-log", HASCHEDULER_TOKEN=ADMIN, COLUMNS="140")).out


async def test_without_a_token_the_error_names_the_variable(replica: Replica) -> None:
    for variables in ({"HASCHEDULER_TOKEN": ""}, {"HASCHEDULER_TOKEN_FILE": "/nowhere"}):
        refused = await replica.run("schedule", "list", **variables)
        assert (refused.status, refused.err.count("\n"), next(iter(variables)) in refused.err) == (2, 1, True)
