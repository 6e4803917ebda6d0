"""``/ui/session``: a token makes a session, a session opens the API to the page, and ends with its parent."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.admission.logins import BURST, EVERY_MS, SESSIONS_MAX, Logins
from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import PageTerms
from hascheduler.api.ui import sessions
from hascheduler.model.collection import Collection
from hascheduler.model.token import digest_of
from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, OF_PAGE, Guarded, cookie_in

HOUR_MS = 3_600_000
PATH = "/ui/session"


async def log_in(guarded: Guarded, secret: str, **headers: str) -> httpx2.Response:
    async with guarded.showing(None) as page:
        return await page.post(PATH, json={"token": secret}, headers={**OF_PAGE, **headers})


def stored(world: World) -> list[dict[str, Any]]:
    """The sessions, by their ids."""
    found = [document for document in world.everything()["tokens"] if document.get("session_of")]
    return sorted(found, key=lambda document: document["id"])


def guarded_with(app: Edge, world: World, *, required: bool = True, **terms: Any) -> Guarded:
    world.auth = replace(world.auth, pages=PageTerms(**terms))
    return Guarded(app, world, required=required)


async def test_a_token_begins_a_session_and_the_answer_says_who_one_is(guarded: Guarded) -> None:
    answer = await log_in(guarded, await guarded.token("operator", "acme"))
    [session] = stored(guarded.world)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        "name": "operator-1", "token": session["id"], "role": "operator", "tenant": "acme",
        "may": ["read", "submit", "operate"], "session": True,
        "tokens_demanded": True, "read_only": False, "payloads": "on_request", "environment": "",
    }  # fmt: skip
    assert session["id"].startswith("session-1-")
    assert {**session, "_id": "", "id": "", "session_of": ""} == {
        "_id": "", "v": 1, "rev": 1, "id": "", "name": "operator-1", "role": "operator", "tenant": "acme",
        "created_at_ms": NOW, "created_by": "operator-1", "expires_at_ms": NOW + 12 * HOUR_MS, "session_of": "",
    }  # fmt: skip
    cookie = cookie_in(answer).removeprefix("hascheduler_session=")
    assert session["_id"] == digest_of(cookie)
    assert cookie not in str(guarded.world.everything())


@pytest.mark.parametrize(
    ("scheme", "headers", "is_secure"),
    [
        ("http", {}, False),
        ("http", {"Origin": "https://api"}, True),  # behind something that speaks TLS
        ("https", {}, True),
    ],
)
async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    guarded: Guarded, scheme: str, headers: dict[str, str], is_secure: bool
) -> None:
    secret = await guarded.token("viewer")
    transport = httpx2.ASGITransport(guarded.app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"{scheme}://api") as page:
        answer = await page.post(PATH, json={"token": secret}, headers=headers)
    pair, *attributes = answer.headers["set-cookie"].split("; ")
    assert pair.startswith("hascheduler_session=hsk_")
    expected = {"Max-Age=43200", "Path=/", "HttpOnly", "SameSite=Strict"} | ({"Secure"} if is_secure else set())
    assert set(attributes) == expected


async def test_a_session_ends_no_later_than_its_token(app: Edge, world: World) -> None:
    guarded = guarded_with(app, world, session_life_ms=HOUR_MS)
    for life_ms, ends_ms in ((None, HOUR_MS), (2 * HOUR_MS, HOUR_MS), (60_500, 60_500)):
        expires_at_ms = None if life_ms is None else NOW + life_ms
        answer = await log_in(guarded, await guarded.token("viewer", expires_at_ms=expires_at_ms))
        assert f"Max-Age={ends_ms // 1_000};" in answer.headers["set-cookie"]
        [session] = [each for each in stored(world) if each["id"] == answer.json()["token"]]
        assert session["expires_at_ms"] == NOW + ends_ms


@pytest.mark.parametrize(
    ("who", "status", "said"),
    [
        ("hsk_" + "x" * 43, 401, "unknown"), ("\u0661", 401, "unknown"), ("expired", 401, "expired"),
        ("worker", 403, "expected viewer"), ("no mirror", 503, ""), ("no mirror for the settings' own", 503, ""),
    ],
)  # fmt: skip
async def test_who_may_not_log_in_begins_nothing(guarded: Guarded, who: str, status: int, said: str) -> None:
    made = await guarded.token("worker" if who == "worker" else "viewer", expires_at_ms=NOW + (who != "expired"))
    guarded.world.view.ready = "no mirror" not in who
    secret = ADMIN_TOKEN if "settings" in who else who if said == "unknown" else made
    answer = await log_in(guarded, secret)
    assert said in check_problem(answer, status)["detail"]
    assert "set-cookie" not in answer.headers
    assert answer.headers.get("retry-after") == ("2" if status == 503 else None)
    assert stored(guarded.world) == []


async def test_where_no_tokens_are_demanded_there_is_nothing_to_log_in_to(app: Edge, world: World) -> None:
    guarded = Guarded(app, world, required=False)
    check_problem(await log_in(guarded, ADMIN_TOKEN), 409)
    async with guarded.showing(None) as page:
        shown = (await page.get(PATH, headers={"Cookie": f"hascheduler_session=hsk_{'x' * 43}"})).json()
    assert (shown["name"], shown["role"], shown["token"], shown["session"]) == ("anonymous", "admin", None, False)
    assert shown["tokens_demanded"] is False
    assert "work" in shown["may"]
    assert stored(world) == []


async def test_a_mirror_that_is_too_late_begins_no_session(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_POLLS_MAX", 3)
    monkeypatch.setattr(sessions, "_POLL_S", 0)
    known = guarded.world.view.token
    guarded.world.view.token = lambda digest: found if (found := known(digest)) and not found.is_session else None
    answer = await log_in(guarded, await guarded.token("viewer"))
    check_problem(answer, 503)
    assert answer.headers["retry-after"] == "2"
    assert "set-cookie" not in answer.headers
    assert stored(guarded.world) == []


async def test_a_session_ends_when_its_time_is_over(guarded: Guarded) -> None:
    async with await guarded.page("viewer") as page:
        guarded.world.clock.now = WallMs(NOW + 12 * HOUR_MS - 1)
        assert (await page.get("/v1/lanes")).status_code == 200
        guarded.world.clock.now = WallMs(NOW + 12 * HOUR_MS)
        answer = await page.get("/v1/lanes")
    assert "expired" in check_problem(answer, 401)["detail"]
    assert "retry-after" not in answer.headers


async def test_a_session_ends_when_its_token_is_revoked_and_leaves_nothing(guarded: Guarded) -> None:
    async with await guarded.page("viewer") as page, guarded.showing(ADMIN_TOKEN) as boss:
        assert (await boss.delete("/v1/tokens/token-1")).status_code == 204
        check_problem(await page.get("/v1/lanes"), 401)
    assert guarded.world.everything()["tokens"] == []


async def test_a_session_whose_token_went_without_it_opens_nothing(guarded: Guarded) -> None:
    """A login that was under way while the token was revoked leaves one."""
    async with await guarded.page("viewer") as page:
        [session] = stored(guarded.world)
        guarded.world.database.delete(Collection.TOKENS, session["session_of"])
        answer = await page.get("/v1/lanes")
    assert "no longer valid" in check_problem(answer, 401)["detail"]


@pytest.mark.parametrize("after", ["another-admin-token-of-the-settings", None])
async def test_sessions_of_a_settings_token_that_was_changed_open_nothing(
    app: Edge, world: World, after: str | None
) -> None:
    async with await Guarded(app, world).page_of(ADMIN_TOKEN) as page:
        assert (await page.get("/v1/lanes")).status_code == 200
        digest = None if after is None else digest_of(after)
        auth = replace(app.services.auth, admin_digest=digest)
        app.services = replace(app.services, auth=auth)
        check_problem(await page.get("/v1/lanes"), 401)


async def test_who_logs_out_has_no_session_any_more(guarded: Guarded) -> None:
    async with await guarded.page("viewer") as page, await guarded.page_of(ADMIN_TOKEN) as other:
        answer = await page.delete(PATH)
        assert answer.status_code == 204
        assert answer.headers["set-cookie"] == "hascheduler_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
        check_problem(await page.get(PATH), 401)
        assert (await other.get(PATH)).status_code == 200
    assert [each["name"] for each in stored(guarded.world)] == ["HASCHEDULER_ADMIN_TOKEN"]


async def test_an_admin_ends_the_session_of_another(guarded: Guarded) -> None:
    async with (
        await guarded.page("viewer", "acme") as page,
        await guarded.client("admin", "acme") as boss,
        await guarded.client("admin", "other") as stranger,
    ):
        items = (await boss.get("/v1/tokens")).json()["items"]
        assert [(item["name"], item["session"]) for item in items] == [
            ("viewer-1", True), ("viewer-1", False), ("admin-2", False)
        ]  # fmt: skip
        [id] = [item["id"] for item in items if item["session"]]
        check_problem(await stranger.delete(f"/v1/tokens/{id}"), 404)
        assert (await boss.delete(f"/v1/tokens/{id}")).status_code == 204
        check_problem(await page.get(PATH), 401)


async def test_one_token_has_so_many_sessions_and_the_oldest_ends(guarded: Guarded) -> None:
    secret = await guarded.token("viewer")
    cookies = []
    for number in range(SESSIONS_MAX + 2):
        guarded.world.clock.now = WallMs(NOW + number)
        guarded.app.services = replace(guarded.app.services, logins=Logins())
        cookies.append(cookie_in(await log_in(guarded, secret)))
    assert len(stored(guarded.world)) == SESSIONS_MAX
    async with guarded.showing(None) as page:
        answers = [(await page.get(PATH, headers={"Cookie": cookie})).status_code for cookie in cookies]
    assert answers == [401, 401, *[200] * SESSIONS_MAX]


async def test_one_token_does_not_log_in_again_and_again(guarded: Guarded) -> None:
    """Each login writes, and every mirror takes note."""
    secret, other = await guarded.token("viewer"), await guarded.token("viewer")
    for _ in range(BURST):
        assert (await log_in(guarded, secret)).status_code == 200
    before = guarded.world.everything()["tokens"]
    answer = await log_in(guarded, secret)
    check_problem(answer, 429)
    assert answer.headers["retry-after"] == str(EVERY_MS // 1_000)
    assert guarded.world.everything()["tokens"] == before
    assert (await log_in(guarded, other)).status_code == 200
    guarded.world.clock.mono = EVERY_MS
    assert (await log_in(guarded, secret)).status_code == 200


@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_a_read_only_page_has_viewers(app: Edge, world: World, role: str) -> None:
    guarded = guarded_with(app, world, read_only=True, environment="staging")
    secret = await guarded.token(role, "acme")
    answer = await log_in(guarded, secret)
    said = answer.json()
    assert (said["role"], said["may"], said["read_only"], said["environment"]) == ("viewer", ["read"], True, "staging")
    async with await guarded.page_of(secret) as page, guarded.showing(secret) as program:
        check_problem(await page.post("/v1/schedules", json=TICK), 403)
        assert (await page.get("/v1/schedules")).status_code == 200
        assert (await program.post("/v1/schedules", json=TICK)).status_code == (403 if role == "viewer" else 201)
        assert (await page.delete(PATH)).status_code == 204


@pytest.mark.parametrize(("method", "path"), [("POST", PATH), ("GET", PATH), ("DELETE", PATH), ("GET", "/ui")])
async def test_where_the_dashboard_is_off_there_is_none(app: Edge, world: World, method: str, path: str) -> None:
    guarded = guarded_with(app, world, enabled=False)
    async with guarded.showing(None) as client:
        problem = check_problem(await client.request(method, path), 404)
    assert problem["type"] == "urn:hascheduler:problem:no-such-route"


async def test_a_session_takes_no_work_and_makes_no_tokens(guarded: Guarded) -> None:
    """Both would outlive it."""
    async with await guarded.page("admin") as page:
        for path, body in (
            ("/v1/tokens", {"name": "mine", "role": "viewer", "tenant": "*"}),
            ("/v1/work/fetch", {"processor": "http:far.00000001"}),
        ):
            problem = check_problem(await page.post(path, json=body), 403)
            assert "in the header Authorization" in problem["detail"]
        assert "work" not in (await page.get("/v1/whoami")).json()["may"]
