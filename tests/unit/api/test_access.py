"""Authentication, authorization and tokens: every route requires a power, and a caller without it gets no further."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from hascheduler.api.app import OPEN_PATHS
from hascheduler.api.edge import Edge
from hascheduler.api.hot_routes import HotRoute
from hascheduler.api.middleware.auth import RequiredPower
from hascheduler.api.ui.sessions import LOGIN
from hascheduler.model.collection import Collection
from hascheduler.model.token import SECRET, Power
from hascheduler.model.values.redaction import redacted
from tests.unit.api.doubles import NOW, World, the_routes
from tests.unit.api.requests import NOW_TEXT, Client, check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded

UNKNOWN = "hsk_" + "x" * 43


def routes() -> Iterator[tuple[str, str, APIRoute]]:
    for context in iter_route_contexts(the_routes().routes):
        path = context.path
        route = context.original_route
        if path in OPEN_PATHS or isinstance(route, HotRoute):  # `test_hot_routes` holds these to their FastAPI twins
            continue
        assert path is not None
        assert isinstance(route, APIRoute), f"{path} is not a route that can demand something"
        for method in route.methods or ():
            yield method, path, route


def demands(dependant: Dependant) -> list[RequiredPower]:
    own = [dependant.call] if isinstance(dependant.call, RequiredPower) else []
    return own + [demand for each in dependant.dependencies for demand in demands(each)]


ROUTES = list(routes())


@pytest.mark.parametrize(("method", "path", "route"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
def test_each_route_demands_something_once(method: str, path: str, route: APIRoute) -> None:
    if (method, path) == LOGIN:
        assert not demands(route.dependant)
        return
    [demand] = demands(route.dependant)
    if path in ("/v1/whoami", "/ui/session"):
        assert demand.power is None
        return
    assert demand.power is not None
    if path.startswith("/v1/work/"):
        assert (demand.power, demand.of_all) == (Power.WORK, True)
    elif method in ("GET", "HEAD") or path.endswith("/preview"):
        assert demand.power in (Power.READ, Power.OPERATE, Power.ADMINISTER)
    else:
        assert demand.power is not Power.READ


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/v1/jobs", "/v1/no-such", "/v1/cluster/live", "/metrics", "/docs/x", "/v1", "/livez/../v1/jobs"]
)
async def test_a_stranger_gets_in_nowhere(guarded: Guarded, method: str, path: str) -> None:
    """Not even to learn what there is."""
    async with guarded.showing(None) as stranger:
        answer = await stranger.request(method, path)
    told = check_problem(answer, 401)["detail"]
    assert "header Authorization with the word Bearer, a blank and the token" in told == redacted(told)
    assert answer.headers["www-authenticate"] == 'Bearer realm="hascheduler"'


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([("Authorization", "")], "malformed"),
        ([("Authorization", "Bearer")], "malformed"),
        ([("Authorization", f"Basic {UNKNOWN}")], "malformed"),
        ([("Authorization", f"Bearer {UNKNOWN}"), ("Authorization", f"Bearer {UNKNOWN}")], "malformed"),
        ([("Authorization", "Bearer " + "x" * 5_000)], "malformed"),
        ([("Authorization", f"Bearer {UNKNOWN}")], "unknown"),
        ([("Authorization", f"Bearer {UNKNOWN} {UNKNOWN}")], "unknown"),
        ([("Authorization", "Bearer \xff\xfe")], "unknown"),
    ],
)
@pytest.mark.parametrize("required", [True, False])
async def test_a_wrong_token_gets_in_nowhere_even_where_none_is_required(
    app: Edge, world: World, headers: list[tuple[str, str]], said: str, required: bool
) -> None:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    async with Guarded(app, world, required=required).showing(None) as client:
        answer = await client.get("/v1/lanes", headers=encoded)
    problem = check_problem(answer, 401)
    assert said in problem["detail"]
    assert answer.headers["www-authenticate"] == 'Bearer realm="hascheduler", error="invalid_token"'
    assert UNKNOWN not in answer.text


async def test_a_token_is_good_until_it_expires(guarded: Guarded) -> None:
    async with await guarded.client("viewer", expires_at_ms=NOW + 1_000) as client:
        assert (await client.get("/v1/lanes")).status_code == 200
        guarded.world.clock.now = NOW + 1_000  # type: ignore[assignment]
        problem = check_problem(await client.get("/v1/lanes"), 401)
    assert "expired" in problem["detail"]


async def test_no_request_reads_the_database_for_its_token(guarded: Guarded) -> None:
    async with await guarded.client("viewer") as client:
        guarded.world.go_away()
        assert (await client.get("/v1/whoami")).status_code == 200


async def test_a_replica_that_is_not_ready_cannot_identify_the_caller(guarded: Guarded) -> None:
    guarded.world.view.ready = False
    async with await guarded.client("admin") as client, guarded.showing(ADMIN_TOKEN) as known:
        answer = await client.get("/v1/cluster")
        check_problem(answer, 503)
        assert answer.headers["retry-after"] == "2"
        # The settings' own is known by itself.
        assert (await known.get("/v1/cluster")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "least"),
    [
        ("GET", "/v1/jobs", None, "viewer"),
        ("GET", "/v1/jobs:counts", None, "viewer"),
        ("GET", "/v1/jobs:errors", None, "viewer"),
        ("GET", "/v1/schedules", None, "viewer"),
        ("GET", "/v1/schedules:counts", None, "viewer"),
        ("GET", "/v1/schedules:recent?name=tick", None, "viewer"),
        ("GET", "/v1/definitions", None, "viewer"),
        ("GET", "/v1/lanes", None, "viewer"),
        ("GET", "/v1/calendars", None, "viewer"),
        ("GET", "/v1/tenants", None, "viewer"),
        ("GET", "/v1/cluster", None, "viewer"),
        ("GET", "/v1/cluster/failovers", None, "viewer"),
        ("GET", "/v1/processors", None, "viewer"),
        ("GET", "/metrics", None, "viewer"),
        ("POST", "/v1/schedules/preview", {"trigger": {"type": "interval", "every": "1s"}}, "viewer"),
        ("POST", "/v1/jobs:cancel", {"filter": {"target": "a"}}, "submitter"),
        ("POST", "/v1/schedules:trigger", {"filter": {"text": "a"}, "dry_run": True}, "submitter"),
        ("POST", "/v1/jobs:retry", {"filter": {"target": "a"}}, "operator"),
        ("POST", "/v1/jobs:delete", {"filter": {"target": "a"}}, "operator"),
        ("POST", "/v1/schedules:pause", {"filter": {"text": "a"}}, "operator"),
        ("POST", "/v1/jobs/job:1/cancel", None, "submitter"),
        ("POST", "/v1/schedules/none/trigger", None, "submitter"),
        ("PUT", "/v1/definitions/log", {}, "operator"),
        ("POST", "/v1/schedules", {"name": "a", "trigger": {"type": "interval", "every": "1s"},
                                   "job": {"definition": "log"}}, "operator"),
        ("POST", "/v1/schedules/none/pause", None, "operator"),
        ("DELETE", "/v1/schedules/none", None, "operator"),
        ("GET", "/v1/cluster/recording", None, "operator"),
        ("PUT", "/v1/lanes/slow", {}, "admin"),
        ("PUT", "/v1/calendars/days", {}, "admin"),
        ("DELETE", "/v1/calendars/none", None, "admin"),
        ("PUT", "/v1/tenants/acme", {}, "admin"),
        ("POST", "/v1/cluster/pause", {"because": "it burns"}, "admin"),
        ("POST", "/v1/cluster/resume", None, "admin"),
        ("POST", "/v1/processors/p-1/drain", None, "admin"),
        ("POST", "/v1/processors/p-1/undrain", None, "admin"),
        ("GET", "/v1/tokens", None, "admin"),
        ("DELETE", "/v1/tokens/none", None, "admin"),
        ("GET", "/v1/audit", None, "admin"),
    ],
)  # fmt: skip
async def test_a_role_that_is_too_low_is_refused(
    guarded: Guarded, method: str, path: str, body: object, least: str
) -> None:
    in_order = ["worker", "viewer", "submitter", "operator", "admin"]
    for place, role in enumerate(in_order):
        async with await guarded.client(role) as client:
            answer = await client.request(method, path, json=body)
        if place < in_order.index(least):
            problem = check_problem(answer, 403)
            assert f"role {role} " in problem["detail"]
            assert least in problem["detail"]
        else:
            assert answer.status_code in (200, 201, 204, 404, 409), (role, answer.text)


async def test_a_token_of_one_tenant_does_not_do_what_concerns_all(guarded: Guarded) -> None:
    async with await guarded.client("admin", "acme") as client:
        for method, path in (
            ("PUT", "/v1/definitions/log"), ("PUT", "/v1/lanes/slow"), ("PUT", "/v1/tenants/acme"),
            ("PUT", "/v1/calendars/days"),
            ("DELETE", "/v1/definitions/log"), ("GET", "/v1/processors"), ("GET", "/metrics"),
            ("GET", "/v1/cluster/recording"), ("POST", "/v1/cluster/pause"), ("POST", "/v1/cluster/resume"),
            ("POST", "/v1/processors/p-1/drain"), ("POST", "/v1/processors/p-1/undrain"),
        ):  # fmt: skip
            problem = check_problem(await client.request(method, path, json={}), 403)
            assert "for all tenants" in problem["detail"]
    assert not any(
        guarded.world.everything()[noun] for noun in ("definitions", "lanes", "calendars", "tenants", "pauses")
    )


async def test_whoami_shows_every_token_its_powers(guarded: Guarded) -> None:
    async with await guarded.client("worker") as client:
        assert (await client.get("/v1/whoami")).json() == {
            "name": "worker-1", "token": "token-1", "role": "worker", "tenant": "*", "may": ["work"],
            "tokens_demanded": True,
        }  # fmt: skip
    async with await guarded.client("admin", "acme") as client:
        shown = (await client.get("/v1/whoami")).json()
        assert (shown["tenant"], shown["may"]) == ("acme", ["read", "submit", "operate", "administer"])
    async with guarded.showing(ADMIN_TOKEN) as client:
        shown = (await client.get("/v1/whoami")).json()
        assert (shown["name"], shown["token"]) == ("HASCHEDULER_ADMIN_TOKEN", "settings")


CI: dict[str, Any] = {"name": "ci", "role": "submitter", "tenant": "acme"}


async def make(client: Client, **changes: Any) -> dict[str, Any]:
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
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert guarded.world.stored(Collection.TOKENS, digest)["name"] == "ci"
    for text in (str(guarded.world.everything()), listed.text, audited.text):
        assert secret not in text
        assert ADMIN_TOKEN not in text
    # What is stored is in no answer either: it would tell who can look into the database which one it is.
    assert digest not in listed.text + audited.text
