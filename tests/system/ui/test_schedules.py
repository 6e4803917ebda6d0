"""What one does to schedules and limits: each change is asked for first, refused in words, and seen when it is done."""

from tests.system.processes import Processes, eventually
from tests.system.ui.browser import Browser
from tests.system.ui.conftest import GUARDED
from tests.system.ui.scene import Scene, furnish
from tests.system.ui.test_login import log_in, token

BULK = "[role=region] button"


def row(browser: Browser, name: str) -> str:
    """What the row of that name says."""
    return next((text for text in browser.texts("tbody tr") if text.startswith(name)), "")


async def test_a_schedule_is_made_in_a_form_that_says_when_it_fires(scene: Scene, browser: Browser) -> None:
    await browser.open(f"{scene.url}/ui/schedules")
    await browser.press("New schedule", "a")
    await browser.fill("#name", "invoices")
    await browser.fill("#definition", "log")
    await browser.sees("1 live processor runs it", "form")
    await browser.press("Cron", "label")
    await browser.fill(".cron input", "30 2 * * *")
    await browser.fill("#zone", "Europe/Berlinx")
    await browser.sees("'Europe/Berlinx' is not a time zone", "[aria-label=Preview]")
    await browser.fill("#zone", "Europe/Berlin")
    await browser.sees("Every day at 02:30 in Berlin", "form")
    await browser.sees("02:30 does not exist", "[aria-label=Preview]")
    await browser.sees("Room then", "[aria-label=Preview]")
    await browser.press("At times of day", "label")
    for day in ("Sat", "Sun"):
        await browser.press(day, "label")
    await browser.fill("[aria-label='Times of day']", "07:30, 18:00")
    await browser.sees("Every weekday at 07:30 in Berlin or every weekday at 18:00 in Berlin", "form")
    await browser.press("JSON", "label")
    browser.replace("textarea", '"skip"', '"allow"')
    browser.replace("textarea", '"payload": {}', '"payload": {"message": "good"')
    await browser.sees("This is not JSON", "[role=alert]")
    browser.replace("textarea", '{"message": "good"', '{"message": "good"}')
    await browser.press("Form", "label")
    await browser.until(lambda: browser.value("#overlap") == "allow", "what was typed as JSON, in the form")
    assert await browser.inaccessible() == []
    await browser.press("Create paused", "button")
    await browser.sees("It fires again after it is resumed", "main")
    made = await scene.processes.get("/v1/schedules/invoices")
    assert [part["expression"] for part in made["trigger"]["of"]] == ["30 7 * * mon-fri", "0 18 * * mon-fri"]
    assert (made["paused"], made["overlap"], made["job"]["payload"]) == (True, "allow", {"message": "good"})
    assert browser.complaints((scene.url,)) == []


async def test_trouble_comes_first_and_rows_have_one_menu_and_a_bar_once_they_are_selected(
    scene: Scene, browser: Browser
) -> None:
    processes = scene.processes
    paused = (await processes.get("/v1/schedules:counts"))["paused"] + 1  # other tests pause some, too
    await processes.put("/v1/definitions/sleep", {"max_concurrency": 3})
    await processes.schedule("z-fails", "1s", definition="sleep", payload={"seconds": "no"})
    await browser.open(f"{scene.url}/ui/schedules")
    await browser.until(lambda: "in a row" in browser.text("tbody tr:first-child"), "the one that fails, first")
    assert "z-fails" in browser.text("tbody tr:first-child")
    assert "PermanentError" in browser.text("tbody tr:first-child")
    controls = [one for one in browser.all("tbody tr:first-child :is(button, summary)") if one.is_displayed()]
    assert [one.accessible_name for one in controls] == ["Actions for z-fails"]
    await browser.press("Actions for z-fails", "summary")
    await browser.press("Pause…", "tbody button")
    await browser.fill("dialog input", "the disk is full")
    await browser.press("Pause", "dialog button")
    await browser.press(f"Paused {paused}", ".tabs a")
    await browser.until(lambda: "the disk is full" in row(browser, "z-fails"), "why it is paused")
    browser.resize(1024)
    await browser.press("Select all on this page", "thead input")
    await browser.sees(f"{paused} selected", "[role=region]")
    assert await browser.inaccessible() == []
    await browser.press("Resume…", BULK)
    await browser.press(f"Resume {paused} schedules", "dialog button")
    await browser.sees(f"{paused} of {paused} changed", "main")
    assert (await processes.get("/v1/schedules:counts"))["paused"] == 0
    assert browser.complaints((scene.url,)) == []


async def test_a_viewer_sees_schedules_and_may_change_none(scene: Scene, browser: Browser) -> None:
    guarded = await scene.processes.replica("guarded", **GUARDED)
    _, secret = await token(guarded.url, "viewer")
    await log_in(browser, f"{guarded.url}/ui/schedules", secret, "a-viewer")
    await browser.sees("nightly", "tbody")
    assert browser.all("tbody input") == []
    assert "New schedule" not in browser.text("main")
    await browser.press("Actions for nightly", "summary")
    assert [one.text for one in browser.all("tbody tr .menu[open] > div > *")] == ["Its jobs"]
    await browser.open(f"{guarded.url}/ui/schedule-new")
    await browser.sees("Your role may not create schedules", "main")
    assert browser.all("main button") == []


async def test_the_timeline_says_whether_there_is_room_and_what_each_schedule_did(
    scene: Scene, browser: Browser
) -> None:
    await browser.open(f"{scene.url}/ui/timeline?text=nightly")
    await browser.sees("of 8 slots", "h1 + p")
    await browser.until(lambda: "1 to come" in row(browser, "nightly"), "the next fire of nightly")
    lines = [one.get_attribute("aria-label") or "" for one in browser.all("tbody [role=img]")]
    assert lines == ["0 fires, 0 failed, 0 missed, 0 late; 1 to come"]


async def test_a_schedule_is_paused_and_who_changed_it_is_paged_back_to_its_beginning(
    scene: Scene, browser: Browser
) -> None:
    processes = scene.processes
    await processes.schedule("changed", "1h")
    await browser.open(f"{scene.url}/ui/schedule?name=changed")
    await browser.press("Pause…", "main button")
    await browser.fill("dialog input", "the first of all")
    await browser.press("Pause", "dialog button")
    await browser.sees("It fires again after it is resumed", "main")
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
    await browser.press("More actions", "summary")
    await browser.press("Backfill…", "main button")
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

    # Of 4 that wait, one is in the lane that nobody set up, where two run.
    await browser.until(lambda: "3 75.0 %" in row(browser, "slow"), "the jobs that wait in slow")
    await browser.until(
        lambda: "1 25.0 %" in row(browser, "default") and "2 100.0 %" in row(browser, "default"), "the rest"
    )
    assert "not defined" in row(browser, "default")
    assert "Waiting in slow: 3 of 4" in [one.get_attribute("aria-label") for one in browser.all("tbody [role=img]")]

    await browser.open(f"{processes.any_url()}/ui/lanes?kind=tenants")
    await browser.until(
        lambda: "0 of 3" in row(browser, "acme") and "3 of 1,000" in row(browser, "acme"), "what acme uses"
    )
    await browser.press("Actions for acme", "summary")
    await browser.press("Edit…", "main button")
    await browser.until(lambda: '"max_running": 3' in browser.value("dialog textarea"), "the tenant to edit")
    browser.replace("dialog textarea", '"max_running": 3', '"max_running": 9')
    await browser.press("Show the difference", "dialog button")
    await processes.put("/v1/tenants/acme", {"max_running": 3, "max_pending": 500})
    await browser.press("Save", "dialog button")
    await browser.sees("was changed meanwhile", "dialog")
    await browser.sees('"max_pending": 500', "dialog")
    assert (await processes.get("/v1/tenants/acme"))["max_running"] == 3
    await browser.press("Save the merged version", "dialog button")
    await browser.until(lambda: "0 of 9" in row(browser, "acme"), "the new quota")
    tenant = await processes.get("/v1/tenants/acme")
    assert (tenant["max_running"], tenant["max_pending"]) == (9, 500)
    assert browser.complaints((processes.any_url(),)) == []
