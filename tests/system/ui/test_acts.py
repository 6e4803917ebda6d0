"""What one does to schedules and limits: each change is asked for first, refused in words, and seen when it is done."""

from tests.system.processes import Processes, eventually
from tests.system.ui.browser import Browser
from tests.system.ui.scene import Scene, furnish


async def test_a_schedule_is_paused_and_who_changed_it_is_paged_back_to_its_beginning(
    scene: Scene, browser: Browser
) -> None:
    processes = scene.processes
    await processes.schedule("changed", "1h")
    await browser.open(f"{scene.url}/ui/schedule?name=changed")
    await browser.press("Pause", "main button")
    await browser.fill("dialog input", "the first of all")
    await browser.press("Pause", "dialog button")
    await browser.sees("paused", "main .state")
    await browser.sees("the first of all", "main")
    for number in range(30):
        await processes.post("/v1/schedules/changed/resume", {})
        await processes.post("/v1/schedules/changed/pause", {"because": f"reason {number}"})

    async def recorded() -> bool:
        return len((await processes.get("/v1/audit?path=/v1/schedules/changed/&limit=100"))["items"]) == 61

    await eventually(recorded, "all of it in the audit log")
    await browser.reload()
    await browser.sees("reason 29", "main")
    assert "the first of all" not in browser.text("main")
    await browser.press("Older changes", "main button")
    await browser.sees("the first of all", "main table")
    await browser.press("Newest changes", "main button")
    await browser.sees("reason 28", "main table")


async def test_a_backfill_is_counted_first_and_then_made(scene: Scene, browser: Browser) -> None:
    await scene.processes.schedule("daily", "24h")
    await browser.open(f"{scene.url}/ui/schedule?name=daily")
    await browser.press("Backfill", "main button")
    for name, value in (("from", "2026-01-01T00:00:00"), ("to", "2026-01-03T23:59:59")):
        browser.type_instant(f"dialog input[name={name}]", value)
    await browser.press("Count first", "dialog button")
    await browser.sees("3 times: 3 would get a job, 0 already have one", "dialog")
    assert (await scene.processes.get("/v1/jobs?id=backfill:daily"))["items"] == []
    await browser.press("Create the jobs", "dialog button")
    await browser.sees("Created 3 jobs", "main")
    assert len((await scene.processes.get("/v1/jobs?schedule=daily"))["items"]) == 3


async def test_what_runs_and_waits_is_beside_quotas_and_an_edit_that_meets_another_shows_both(
    processes: Processes, browser: Browser
) -> None:
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
    assert "not defined" in row("default")
    assert "Waiting in slow: 3 of 4" in [one.get_attribute("aria-label") for one in browser.all("tbody .bar")]

    await browser.open(f"{processes.any_url()}/ui/lanes?kind=tenants")
    await browser.until(lambda: "0 of 3" in row("acme") and "3 of 1,000" in row("acme"), "what acme uses")
    await browser.press("Edit", "main button")
    await browser.until(lambda: '"max_running": 3' in browser.value("dialog textarea"), "the tenant to edit")
    browser.replace("dialog textarea", '"max_running": 3', '"max_running": 9')
    await browser.press("Show the difference", "dialog button")
    await processes.put("/v1/tenants/acme", {"max_running": 3, "max_pending": 500})
    await browser.press("Save", "dialog button")
    await browser.sees("was changed meanwhile", "dialog")
    await browser.sees('"max_pending": 500', "dialog")
    assert (await processes.get("/v1/tenants/acme"))["max_running"] == 3
    await browser.press("Save the merged version", "dialog button")
    await browser.until(lambda: "0 of 9" in row("acme"), "the new quota")
    tenant = await processes.get("/v1/tenants/acme")
    assert (tenant["max_running"], tenant["max_pending"]) == (9, 500)
    assert browser.complaints((processes.any_url(),)) == []
