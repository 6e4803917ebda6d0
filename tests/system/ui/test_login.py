"""Sign in as each role: the page offers what the role may do, and the session ends when it is to end."""

import httpx2

from tests.system.processes import Processes
from tests.system.ui.browser import Browser
from tests.system.ui.conftest import GUARDED
from tests.system.ui.scene import ADMIN

OFFERED = {
    "viewer": set[str](),
    "submitter": {"Submit a job…", "Cancel the job…"},
    "operator": {"Submit a job…", "Cancel the job…", "Reprioritize…"},
    "admin": {"Submit a job…", "Cancel the job…", "Reprioritize…"},
}
"""On the list of jobs and in the menu of one that waits."""


async def token(url: str, role: str) -> tuple[str, str]:
    """The public id and the secret of a new token of that role."""
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"}) as boss:
        answer = await boss.post("/v1/tokens", json={"name": f"a-{role}", "role": role, "tenant": "*"})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["token"]


async def log_in(browser: Browser, url: str, secret: str, sees: str) -> None:
    await browser.open(url)
    await browser.fill("input[name=token]", secret)
    await browser.press("Sign in", "button")
    await browser.sees(sees, ".who")


async def test_each_role_is_offered_what_it_may_do(guarded: Processes, browser: Browser) -> None:
    one = guarded.replicas["one"]
    async with httpx2.AsyncClient(base_url=one.url, headers={"Authorization": f"Bearer {ADMIN}"}) as boss:
        await boss.post("/v1/jobs", json={"definition": "nobody-runs-it", "target": "waits"})
    for role, expected in OFFERED.items():
        _, secret = await token(one.url, role)
        await log_in(browser, f"{one.url}/ui/jobs?state=pending", secret, f"a-{role} · {role}")
        await browser.sees("waits", "tbody")
        if role != "viewer":
            await browser.press("Actions for waits", "summary")
        offered = {element.text for element in browser.all("main button") if element.is_displayed()}
        assert offered == expected
        assert bool(browser.all("main input[type=checkbox]")) == (role != "viewer")
        assert secret not in browser.script("return document.documentElement.outerHTML + document.cookie")
        assert browser.script("return JSON.stringify({...localStorage, ...sessionStorage})").find("hsk_") == -1
        assert browser.complaints((one.url,)) == []
        browser.forget()


async def test_a_session_works_at_each_replica_and_ends_when_its_token_is_revoked(
    guarded: Processes, browser: Browser
) -> None:
    one, two = guarded.replicas["one"], guarded.replicas["two"]
    id, secret = await token(one.url, "operator")
    await log_in(browser, f"{one.url}/ui", secret, "a-operator")
    await browser.sees("Replicas", "main")
    for url in (one.url, two.url):  # cookies know no ports: the session is one of this host
        await browser.open(f"{url}/ui/jobs?state=failed")
        await browser.sees("No job matches", "main")
    async with httpx2.AsyncClient(base_url=two.url, headers={"Authorization": f"Bearer {ADMIN}"}) as boss:
        assert (await boss.delete(f"/v1/tokens/{id}")).status_code == 204
    await browser.sees("Your session has ended")
    _, other = await token(one.url, "viewer")
    await browser.fill("input[name=token]", other)
    await browser.press("Sign in", "button")
    await browser.sees("a-viewer", ".who")
    assert "state=failed" in browser.url, "one goes on where one was"
    for log in guarded.folder.glob("*.err"):
        assert not [shown for shown in (secret, other, ADMIN) if shown in log.read_text()], log


async def test_a_read_only_page_offers_an_admin_nothing_that_changes(processes: Processes, browser: Browser) -> None:
    one = await processes.replica("one", **GUARDED, HASCHEDULER_UI_READ_ONLY="true", HASCHEDULER_UI_NAME="staging")
    await log_in(browser, f"{one.url}/ui", ADMIN, "read-only")
    await browser.sees("staging", "header")
    await browser.sees("Replicas", "main")
    assert "Stop all scheduling" not in browser.text("main")
    status = browser.script(
        "return fetch('/v1/cluster/pause', {method: 'POST', headers: {'content-type': 'application/json'},"
        " body: JSON.stringify({because: 'x'})}).then((answer) => answer.status)"
    )
    assert status == 403
