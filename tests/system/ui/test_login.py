"""Log in as each role: the page offers what the role may do, and the session ends when it is to end."""

from collections.abc import Callable

import httpx
import pytest

from tests.system.processes import Processes, eventually
from tests.system.ui.browser import Browser

ADMIN = "an-admin-token-of-the-settings"
GUARDED = {"HASCHEDULER_AUTH": "tokens", "HASCHEDULER_ADMIN_TOKEN": ADMIN}
BUTTONS = {
    "viewer": set[str](),
    "submitter": {"Cancel all that match"},
    "operator": {"Cancel all that match", "Retry all that match", "Reprioritize all that match"},
    "admin": {"Cancel all that match", "Retry all that match", "Reprioritize all that match"},
}


async def tokens(url: str) -> dict[str, tuple[str, str]]:
    """The public id and the secret of a token of each role."""
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"}) as boss:
        made = {}
        for role in BUTTONS:
            answer = await boss.post("/v1/tokens", json={"name": f"a-{role}", "role": role, "tenant": "*"})
            assert answer.status_code == 201, answer.text
            made[role] = (answer.json()["id"], answer.json()["token"])
    return made


async def log_in(browser: Browser, url: str, secret: str, sees: str) -> None:
    await browser.open(url)
    await browser.fill("input[name=token]", secret)
    await browser.press("Log in", "button")
    await browser.sees(sees, ".who")


async def test_each_role_is_offered_what_it_may_do(processes: Processes, new_browser: Callable[..., Browser]) -> None:
    one = await processes.replica("one", **GUARDED)
    made = await tokens(one.url)
    for role, expected in BUTTONS.items():
        browser = new_browser()
        await log_in(browser, f"{one.url}/ui/jobs?definition=log", made[role][1], f"a-{role} · {role}")
        await browser.sees("No job matches", "main")
        offered = {element.text for element in browser.all("main .buttons button")} - {"Dead letters by error"}
        assert offered == expected
        assert made[role][1] not in browser.script("return document.documentElement.outerHTML + document.cookie")
        assert browser.script("return JSON.stringify({...localStorage, ...sessionStorage})").find("hsk_") == -1
        assert browser.complaints((one.url,)) == []


async def test_a_session_works_at_each_replica_and_ends_when_its_token_is_revoked(
    processes: Processes, service: str, browser: Browser
) -> None:
    one, two = await processes.together("one", "two", **GUARDED)
    id, secret = (await tokens(one.url))["operator"]
    await log_in(browser, f"{service}/ui", secret, "a-operator")
    await browser.sees("Leader", "main")
    for url in (one.url, two.url):  # cookies know no ports: the session is one of this host
        await browser.open(f"{url}/ui/jobs?state=failed")
        await browser.sees("No job matches", "main")
    async with httpx.AsyncClient(base_url=two.url, headers={"Authorization": f"Bearer {ADMIN}"}) as boss:
        assert (await boss.delete(f"/v1/tokens/{id}")).status_code == 204
    await browser.sees("Your session has ended")
    other = (await tokens(one.url))["viewer"][1]
    await browser.fill("input[name=token]", other)
    await browser.press("Log in", "button")
    await browser.sees("a-viewer", ".who")
    assert "state=failed" in browser.url, "one goes on where one was"


async def test_logging_out_ends_the_session_itself(processes: Processes, browser: Browser) -> None:
    one = await processes.replica("one", **GUARDED)
    secret = (await tokens(one.url))["viewer"][1]
    await log_in(browser, f"{one.url}/ui", secret, "a-viewer")
    cookie = browser.cookie("hascheduler_session")
    await browser.press("Log out", "button")
    await browser.sees("Log in", "button")

    async def refused() -> bool:
        answer = await processes.http.get(f"{one.url}/v1/cluster", headers={"Cookie": f"hascheduler_session={cookie}"})
        return answer.status_code == 401

    await eventually(refused, "the cookie opens nothing any more")


@pytest.mark.parametrize("text", ["hsk_" + "x" * 43, "<script>alert(1)</script>", " "])
async def test_a_token_that_is_none_is_refused_in_words(processes: Processes, browser: Browser, text: str) -> None:
    one = await processes.replica("one", **GUARDED)
    await browser.open(f"{one.url}/ui")
    await browser.fill("input[name=token]", text)
    await browser.press("Log in", "button")
    await browser.sees("", "form")
    assert browser.all(".who") == []
    assert browser.complaints((one.url,)) == []


async def test_a_read_only_page_offers_an_admin_nothing_that_changes(processes: Processes, browser: Browser) -> None:
    one = await processes.replica("one", **GUARDED, HASCHEDULER_UI_READ_ONLY="true", HASCHEDULER_UI_NAME="staging")
    await log_in(browser, f"{one.url}/ui", ADMIN, "read-only")
    await browser.sees("staging", "header")
    await browser.sees("Leader", "main")
    assert "Pause everything" not in browser.text("main")
    status = browser.script(
        "return fetch('/v1/cluster/pause', {method: 'POST', headers: {'content-type': 'application/json'},"
        " body: JSON.stringify({because: 'x'})}).then((answer) => answer.status)"
    )
    assert status == 403
