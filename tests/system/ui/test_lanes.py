"""Lanes and tenants: what runs and waits beside what is allowed, and edits that meet another's."""

from tests.system.processes import Processes
from tests.system.ui.browser import Browser
from tests.system.ui.scene import furnish


async def test_what_runs_and_waits_is_beside_shares_and_quotas(processes: Processes, browser: Browser) -> None:
    await processes.replica("replica-one")
    await processes.processor("processor-one")
    await furnish(processes)
    for _ in range(3):
        await processes.post("/v1/jobs", {"definition": "never", "tenant": "acme", "lane": "slow"})
    await browser.open(f"{processes.any_url()}/ui/lanes?kind=lanes")
    await browser.sees("slow 2", "tbody")

    def row(name: str) -> str:
        return next((one.text for one in browser.all("tbody tr") if one.text.startswith(name)), "")

    # Of 4 that wait, one is in the lane that nobody set up, where two run.
    await browser.until(lambda: "3 75.0 %" in row("slow"), "the jobs that wait in slow")
    await browser.until(lambda: "1 25.0 %" in row("default") and "2 100.0 %" in row("default"), "the rest")
    assert "not set up" in row("default")
    bars = [one.get_attribute("aria-label") for one in browser.all("tbody .bar")]
    assert "Waiting in slow: 3 of 4" in bars
    await browser.open(f"{processes.any_url()}/ui/lanes?kind=tenants")
    await browser.until(lambda: "0 of 3" in row("acme") and "3 of 1,000" in row("acme"), "what acme uses")
    assert browser.complaints((processes.any_url(),)) == []


async def test_a_quota_is_edited_and_an_edit_that_meets_another_shows_both(
    processes: Processes, browser: Browser
) -> None:
    await processes.replica("replica-one")
    address = f"{processes.any_url()}/v1/tenants/acme"
    first = await processes.http.put(address, json={"max_running": 3, "max_pending": 1_000})
    assert first.status_code < 300, first.text
    await browser.open(f"{processes.any_url()}/ui/lanes?kind=tenants")
    await browser.press("Edit", "main button")
    await browser.until(lambda: '"max_running": 3' in browser.value("dialog textarea"), "the tenant to edit")
    browser.replace("dialog textarea", '"max_running": 3', '"max_running": 7')
    await browser.press("Show the difference", "dialog button")
    await browser.press("Send it", "dialog button")
    await browser.sees("0 of 7", "tbody")
    assert (await processes.get("/v1/tenants/acme"))["max_running"] == 7

    await browser.press("Edit", "main button")
    await browser.until(lambda: '"max_running": 7' in browser.value("dialog textarea"), "the tenant to edit again")
    browser.replace("dialog textarea", '"max_running": 7', '"max_running": 9')
    await browser.press("Show the difference", "dialog button")
    theirs = await processes.http.put(address, json={"max_running": 7, "max_pending": 500})
    assert theirs.status_code < 300, theirs.text
    await browser.press("Send it", "dialog button")
    await browser.sees("was changed meanwhile", "dialog")
    await browser.sees('"max_pending": 500', "dialog")
    assert (await processes.get("/v1/tenants/acme"))["max_running"] == 7
    await browser.press("Send mine on top", "dialog button")
    await browser.sees("0 of 9", "tbody")
    tenant = await processes.get("/v1/tenants/acme")
    assert (tenant["max_running"], tenant["max_pending"]) == (9, 500)
