"""The dashboard's sessions: no other site uses one, none is worth more than its token, and none is left in a text."""

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import charged, identified
from hascheduler.api.middleware.session_cookie import NAME
from hascheduler.model.token import digest_of
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import ADMIN_TOKEN, OF_PAGE, Guarded, cookie_in

SESSION = "/ui/session"
FOREIGN = "urn:hascheduler:problem:foreign-origin"


# Other sites


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
        ({"Origin": "https://evil.example"}, False, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False, False),
        ({"Origin": "http://api", "Sec-Fetch-Site": "cross-site"}, False, False),
        ({"Origin": "null"}, False, False),
        ({"Origin": ""}, False, False),
        ({"Sec-Fetch-Site": "cross-site"}, False, False),
        ({"Sec-Fetch-Site": "same-site"}, False, False),  # another port of this host: cookies know no ports
        ({"Origin": "http://api:3000", "Sec-Fetch-Site": "same-site"}, False, False),
        ({"Origin": "http://api:3000"}, False, False),
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


# Secrets in the wrong place


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


# No more than its token


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


# Strangers


async def test_the_body_of_a_login_is_small(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)

    async def endless() -> object:
        raise AssertionError("it is not read")
        yield b""

    async with guarded.showing(None) as page:
        headers = {"Content-Type": "application/json", "Content-Length": "5000"}
        answer: httpx.Response = await page.post(SESSION, content=endless(), headers=headers)  # type: ignore[arg-type]
    check_problem(answer, 413)
