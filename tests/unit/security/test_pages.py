"""What pages make a browser send: DNS rebinding, forged requests, and the sessions of the dashboard."""

import re
from collections.abc import Iterator

import httpx2
import pytest

from hascheduler.api.app import OPEN_PATHS, PUBLIC_PAGES
from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import AuthConfig, charged, identified
from hascheduler.api.middleware.session_cookie import NAME
from hascheduler.model.token import digest_of
from tests.tiers import spread
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, OF_PAGE, Guarded, cookie_in

EMPTY = World().everything()


def operations() -> Iterator[tuple[str, str]]:
    for pattern, path in description()["paths"].items():
        for method in path:
            yield method.upper(), re.sub(r"\{\w+\}", "any", pattern)


OPERATIONS = list(operations())
CHANGES = [operation for operation in OPERATIONS if operation[0] != "GET"]
PATHS = sorted({path for _, path in OPERATIONS} | OPEN_PATHS)
ENDING = [path for path in PATHS if path not in ("/v1/events", "/v1/cluster/live")]
"""Those whose answer to GET comes to an end."""


def listening(app: Edge, world: World, lock: AuthConfig) -> httpx2.AsyncClient:
    """A client of a replica with that lock; the test says which Host it asks for."""
    world.auth = lock
    app.services = world.services()
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_was_made_to_lead_here_is_not_answered(app: Edge, world: World, path: str) -> None:
    async with listening(app, world, AuthConfig()) as client:
        problem = check_problem(await client.get(path, headers={"Host": "evil.example"}), 421)
    assert problem["type"] == "urn:hascheduler:problem:foreign-host"
    assert "HASCHEDULER_HTTP_ALLOWED_HOSTS" in problem["detail"]


LOOPBACK = AuthConfig(hosts=frozenset({"127.0.0.1", "scheduler.corp"}))
ANYWHERE = AuthConfig(hosts=frozenset({"0.0.0.0", "scheduler.corp"}), any_address=True)


@pytest.mark.parametrize(
    ("host", "on_loopback", "anywhere"),
    [
        ("127.0.0.1:8080", True, True),
        ("127.8.9.10:1", True, True),
        ("localhost", True, True),
        ("localhost.", True, True),
        ("a.localhost:8080", True, True),
        ("[::1]:8080", True, True),
        ("[0:0:0:0:0:0:0:1]:8080", True, True),
        ("[::ffff:127.0.0.1]:8080", True, True),
        ("scheduler.corp:8080", True, True),
        ("10.1.2.3:8080", False, True),
        ("[fd00::1]:8080", False, True),
        ("evil.example:8080", False, False),
        ("127.0.0.1.evil.example", False, False),
        ("127.0.0.1@evil.example", False, False),
        ("localhost.evil.example", False, False),
        ("scheduler.corp.evil.example", False, False),
        ("localhost, evil.example", False, False),
        ("localhost:", False, False),
        ("[::1", False, False),
        ("2130706433", False, False),
        ("١٢٧.0.0.1", False, False),
        ("", False, False),
    ],
)
async def test_without_tokens_only_own_names_are_answered(
    app: Edge, world: World, host: str, on_loopback: bool, anywhere: bool
) -> None:
    for lock, answered in ((LOOPBACK, on_loopback), (ANYWHERE, anywhere)):
        async with listening(app, world, lock) as client:
            answer = await client.get("/v1/lanes", headers=[(b"host", host.encode())])
        assert answer.status_code == (200 if answered else 421), lock


@pytest.mark.parametrize("required", spread([False, True], check=1), ids="token required: {}".format)
@pytest.mark.parametrize(("method", "path"), CHANGES, ids=[f"{method} {path}" for method, path in CHANGES])
async def test_no_other_site_changes_anything(app: Edge, world: World, method: str, path: str, required: bool) -> None:
    guarded = Guarded(app, world, required=required)
    secret = await guarded.token("admin")
    before = world.everything()
    async with guarded.showing(secret) as client:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            problem = check_problem(await client.request(method, path, headers=headers), 403)
            assert problem["type"] == "urn:hascheduler:problem:foreign-origin"
            assert "expected" in problem["detail"]
    assert world.everything() == before


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:8080"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Host": "localhost", "Origin": "http://localhost"}, True),
        ({"Host": "localhost", "Origin": "http://localhost:80"}, True),
        ({"Host": "localhost", "Origin": "https://localhost"}, True),  # behind something that speaks TLS
        ({"Host": "[::1]:8080", "Origin": "http://[::1]:8080"}, True),
        ({"Origin": "http://127.0.0.1:3000"}, False),
        ({"Origin": "http://localhost:8080"}, False),
        ({"Origin": "http://127.0.0.1:8080.evil.example"}, False),
        ({"Origin": "http://evil@127.0.0.1:8080"}, False),
        ({"Origin": "http://127.0.0.1:8080/"}, False),
        ({"Origin": "chrome-extension://127.0.0.1:8080"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),  # another port of this host, a neighbour of this domain
        ({"Sec-Fetch-Site": "brand-new"}, False),
    ],
)
async def test_a_change_is_asked_for_by_own_pages_and_by_programs(
    app: Edge, world: World, headers: dict[str, str], passes: bool
) -> None:
    async with listening(app, world, AuthConfig()) as client:
        answer = await client.post("/v1/schedules/none/pause", headers=headers)
    check_problem(answer, 404 if passes else 403)


async def test_without_tokens_other_sites_do_not_read_either(app: Edge, world: World) -> None:
    """They could not see the answer; the waits would hold places open all the same."""
    async with listening(app, world, AuthConfig()) as client:
        for path in PATHS:
            answer = await client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
            if path in PUBLIC_PAGES:  # a link to it may stand anywhere
                assert answer.status_code == (404 if path == "/" else 200)
            else:
                check_problem(answer, 403)


async def test_no_answer_lets_other_sites_read_it_or_is_taken_for_another_type(app: Edge, world: World) -> None:
    async with listening(app, world, AuthConfig()) as client:
        for path in [*ENDING, "/nowhere"]:
            asked = await client.options(path, headers={"Origin": "https://evil.example"})
            answer = await client.get(path)
            assert not [name for name in (*asked.headers, *answer.headers) if name.startswith("access-control-")]
            assert answer.headers.get_list("x-content-type-options") == ["nosniff"], path
        assert (await client.get("/", headers={"Host": "evil"})).headers["x-content-type-options"] == "nosniff"


# Sessions: no other site uses one, none is worth more than its token, and none is left in a text

SESSION = "/ui/session"
FOREIGN = "urn:hascheduler:problem:foreign-origin"


@pytest.mark.parametrize(
    ("headers", "reads", "changes"),
    [
        # The page itself, in browsers old and new, and by an address that is not worth their trust.
        ({"Origin": "http://api", "Sec-Fetch-Site": "same-origin"}, True, True),
        ({"Origin": "http://api"}, True, True),
        ({"Origin": "https://api"}, True, True),  # behind something that speaks TLS
        ({"Sec-Fetch-Site": "same-origin"}, True, True),
        # Typed into the address bar; no browser changes anything so.
        ({"Sec-Fetch-Site": "none"}, True, False),
        # Who adds neither header is no page; programs have tokens.
        ({}, True, False),
        # Others.
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, False, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False, False),
        ({"Origin": "http://api", "Sec-Fetch-Site": "cross-site"}, False, False),
        ({"Origin": "null"}, False, False),
        ({"Sec-Fetch-Site": "cross-site"}, False, False),
        ({"Sec-Fetch-Site": "same-site"}, False, False),  # another port of this host: cookies know no ports
        ({"Origin": "http://api:3000", "Sec-Fetch-Site": "same-site"}, False, False),
        ({"Origin": "http://api.evil.example"}, False, False),
    ],
)
async def test_a_session_is_used_by_its_own_page_alone(
    guarded: Guarded, headers: dict[str, str], reads: bool, changes: bool
) -> None:
    async with await guarded.page("admin") as page:
        cookie = {"Cookie": page.headers["Cookie"]}
    before = guarded.world.everything()
    async with guarded.showing(None) as browser:
        for method, path, passes, status in (
            ("GET", "/v1/lanes", reads, 200),
            ("GET", SESSION, reads, 200),
            ("POST", "/v1/schedules/none/pause", changes, 404),
            ("DELETE", "/v1/lanes/none", changes, 404),
        ):
            answer = await browser.request(method, path, headers={**cookie, **headers})
            if passes:
                assert answer.status_code == status, answer.text
            else:
                assert check_problem(answer, 403)["type"] == FOREIGN
        if not changes:
            check_problem(await browser.delete(SESSION, headers={**cookie, **headers}), 403)
    assert guarded.world.everything() == before


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"}])
async def test_no_other_site_logs_anybody_in(guarded: Guarded, headers: dict[str, str]) -> None:
    """With its own token: the user would work in another's name."""
    async with guarded.showing(None) as page:
        answer = await page.post(SESSION, json={"token": ADMIN_TOKEN}, headers=headers)
    assert check_problem(answer, 403)["type"] == FOREIGN
    assert "set-cookie" not in answer.headers
    assert guarded.world.everything()["tokens"] == []


async def test_a_token_beside_the_cookie_wins(guarded: Guarded) -> None:
    """A program that keeps cookies is no page; and no page of another site can add a token."""
    async with await guarded.page("admin") as page:
        cookie = page.headers["Cookie"]
    async with await guarded.client("viewer") as client:
        shown = (await client.get("/v1/whoami", headers={"Cookie": cookie})).json()
        assert (shown["name"], shown["role"]) == ("viewer-2", "viewer")
        check_problem(await client.post("/v1/schedules/none/pause", headers={"Cookie": cookie}), 403)
    async with guarded.showing("hsk_" + "x" * 43) as wrong:
        check_problem(await wrong.get("/v1/whoami", headers={"Cookie": cookie}), 401)


async def test_a_session_is_no_token_and_a_token_is_no_session(guarded: Guarded) -> None:
    secret = await guarded.token("viewer")
    async with await guarded.page_of(secret) as page:
        session = page.headers["Cookie"].removeprefix(f"{NAME}=")
    async with guarded.showing(session) as client:
        check_problem(await client.get("/v1/lanes"), 401)
    async with guarded.showing(None) as browser:
        for wrong in (secret, ADMIN_TOKEN, "", "x", session[:-1], f"{session}x", f'"{session}"'):
            answer = await browser.get("/v1/lanes", headers={"Cookie": f"{NAME}={wrong}"})
            check_problem(answer, 401)
        check_problem(await browser.post(SESSION, json={"token": session}), 401)


async def test_a_cookie_that_comes_with_a_login_is_ignored(guarded: Guarded) -> None:
    """Session fixation: the session after the login is never one that another may know."""
    planted = f"hsk_{'z' * 43}"
    secret = await guarded.token("viewer")
    async with await guarded.page("admin") as victim:
        for cookie in (f"{NAME}={planted}", victim.headers["Cookie"], "x" * 8_000):
            async with guarded.showing(None) as page:
                answer = await page.post(SESSION, json={"token": secret}, headers={**OF_PAGE, "Cookie": cookie})
            assert answer.status_code == 200
            assert cookie_in(answer) not in (cookie, f"{NAME}={planted}")
            assert answer.json()["role"] == "viewer"
        assert (await victim.get(SESSION)).json()["role"] == "admin"
    assert guarded.world.view.token(digest_of(planted)) is None


async def test_two_sessions_are_none(guarded: Guarded) -> None:
    """A page of another port may set a cookie of that name beside the right one."""
    async with await guarded.page("viewer") as one, await guarded.page("viewer") as other:
        cookies = [one.headers["Cookie"], other.headers["Cookie"]]
    async with guarded.showing(None) as browser:
        for headers in ([("Cookie", "; ".join(cookies))], [("Cookie", cookie) for cookie in cookies]):
            check_problem(await browser.get("/v1/lanes", headers=headers), 401)


async def test_sessions_are_charged_to_their_token(guarded: Guarded) -> None:
    """Else a token would have as many shares as it logs in."""
    async with await guarded.page("operator") as page:
        caller = (await page.get("/v1/whoami")).json()
    services = guarded.app.services
    scope = {"headers": [(b"cookie", page.headers["Cookie"].encode())], "path": "/v1/jobs"}
    found = identified(scope, services.auth, services.view, services.clock)
    assert found.id == caller["token"]
    parties, _ = charged({"state": {"caller": found}, "client": ("10.0.0.1", 1), "path": "/v1/jobs"})
    assert ("token", "token-1") in parties


async def test_secrets_are_in_no_answer_no_log_and_no_record(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = await guarded.token("admin")
    texts: list[str] = []
    secrets = [secret, ADMIN_TOKEN, digest_of(secret), digest_of(ADMIN_TOKEN)]
    for token in (secret, ADMIN_TOKEN):
        async with await guarded.page_of(token) as page:
            secrets.append(page.headers["Cookie"].removeprefix(f"{NAME}="))
            texts += [(await page.get(path)).text for path in (SESSION, "/v1/tokens", "/v1/whoami", "/v1/jobs/x")]
            texts.append((await page.delete(SESSION)).text)
            texts.append((await page.get(SESSION)).text)
    async with guarded.showing(None) as page:
        for body in ({"token": ADMIN_TOKEN, "x": 1}, {"tokn": ADMIN_TOKEN}, ADMIN_TOKEN, [ADMIN_TOKEN]):
            texts.append((await page.post(SESSION, json=body)).text)
        texts.append((await page.post(SESSION, content=ADMIN_TOKEN, headers={"Content-Type": "text/plain"})).text)
        texts.append((await page.post(SESSION, content=ADMIN_TOKEN, headers={"Content-Type": "application/json"})).text)
    await guarded.world.audit_writer.flush()
    texts.append(str(guarded.world.everything()["audit"]))
    logged = capsys.readouterr()
    for text in (*texts, logged.out, logged.err):
        assert not [each for each in secrets if each in text], text


async def test_the_body_of_a_login_is_small(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)

    async def endless() -> object:
        raise AssertionError("it is not read")
        yield b""

    async with guarded.showing(None) as page:
        headers = {"Content-Type": "application/json", "Content-Length": "5000"}
        answer: httpx2.Response = await page.post(SESSION, content=endless(), headers=headers)  # type: ignore[arg-type]
    check_problem(answer, 413)
