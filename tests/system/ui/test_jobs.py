"""What one does to jobs: found by one line, asked for first, counted, and seen when it is done."""

from tests.system.ui.browser import Browser
from tests.system.ui.scene import Scene

BULK = "[role=region] button"


async def test_a_job_is_cancelled_after_a_question(scene: Scene, browser: Browser) -> None:
    job = (await scene.processes.post("/v1/jobs", {"definition": "asked"}))["id"]
    await browser.open(f"{scene.url}/ui/job?id={job}")
    await browser.press("Cancel the job…", "main button")
    await browser.press("Close", "dialog button")
    assert (await scene.processes.get(f"/v1/jobs/{job}"))["state"] == "pending"
    await browser.press("Cancel the job…", "main button")
    await browser.press("Cancel the job", "dialog button")
    await browser.sees("cancelled", "h1")
    await browser.sees("It was cancelled", "main")
    assert (await scene.processes.get(f"/v1/jobs/{job}"))["state"] == "cancelled"


async def test_a_row_has_one_menu_and_selected_rows_have_a_bar(scene: Scene, browser: Browser) -> None:
    batch = [{"definition": "picked", "target": f"order-{number}"} for number in range(3)]
    await scene.processes.post("/v1/jobs:batch", {"jobs": batch})
    await browser.open(f"{scene.url}/ui/jobs?definition=picked")
    await browser.sees("order-2", "tbody")
    controls = browser.all("tbody tr:first-child button, tbody tr:first-child summary")
    assert [one.accessible_name for one in controls if one.is_displayed()] == ["Actions for order-2"]
    await browser.press("Actions for order-2", "summary")
    await browser.press("Cancel the job…", "tbody button")
    await browser.press("Cancel the job", "dialog button")
    await browser.sees("cancelled", "tbody tr:first-child")
    assert browser.all("[role=region]") == []
    browser.resize(1024)
    for name in ("Select order-1", "Select order-0"):
        await browser.press(name, "tbody input")
    await browser.sees("2 selected", "[role=region]")
    assert await browser.inaccessible() == []
    # Nothing that can do nothing: those that wait are not retried.
    assert {one.text for one in browser.all(BULK)} == {"×", "Cancel…", "Reprioritize…"}
    await browser.press("Cancel…", BULK)
    await browser.press("Cancel 2 jobs", "dialog button")
    await browser.sees("2 of 2 changed", "main")
    assert (await scene.processes.get("/v1/jobs:counts?definition=picked"))["cancelled"] == 3
    assert browser.complaints((scene.url,)) == []


async def test_all_that_match_are_counted_then_changed_and_the_progress_is_followed(
    scene: Scene, browser: Browser
) -> None:
    batch = [{"definition": "many", "target": f"t-{number}"} for number in range(500)]
    await scene.processes.post("/v1/jobs:batch", {"jobs": batch})
    await browser.open(f"{scene.url}/ui/jobs?definition=many&state=pending")
    await browser.press("Select all on this page", "thead input")
    await browser.press("Select all 500 that match", BULK)
    await browser.press("Cancel…", BULK)
    await browser.press("Cancel 500 jobs", "dialog button")
    await browser.sees("500 of 500 changed", "main")
    assert (await scene.processes.get("/v1/jobs:counts?definition=many"))["cancelled"] == 500
    # None but those.
    assert (await scene.processes.get(f"/v1/jobs/{scene.jobs['waiting']}"))["state"] == "pending"


async def test_all_that_match_an_id_and_an_instant_are_meant_and_no_others(scene: Scene, browser: Browser) -> None:
    processes = scene.processes
    await processes.schedule("meant", "1h", definition="never")
    made = [(await processes.post("/v1/schedules/meant/trigger", {}))["id"] for _ in range(60)]
    since = (await processes.get(f"/v1/jobs/{made[1]}"))["submitted_at"]
    await browser.open(f"{scene.url}/ui/jobs?id=trigger:meant:&since={since.replace('+', '%2B')}&state=pending")
    await browser.press("Select all on this page", "thead input")
    await browser.press("Select all 59 that match", BULK)
    await browser.press("Cancel…", BULK)
    await browser.press("Cancel 59 jobs", "dialog button")
    await browser.sees("59 of 59 changed", "main")
    ended = [(await processes.get(f"/v1/jobs/{id}"))["state"] == "cancelled" for id in made]
    assert ended == [False, *[True] * 59]


async def test_one_line_finds_by_chips_that_are_the_address_and_pages_go_both_ways(
    scene: Scene, browser: Browser
) -> None:
    jobs = scene.jobs
    await scene.processes.post("/v1/jobs:batch", {"jobs": [{"definition": "paged"}] * 60})
    await browser.open(f"{scene.url}/ui/jobs")
    await browser.press("Failed", ".tabs a .s")
    await browser.sees(jobs["failed"], "tbody")
    await browser.until(lambda: "state=failed" in browser.url, "the filter in the address")
    await browser.until(lambda: jobs["running"] not in browser.text("tbody"), "no running job")
    await browser.reload()
    await browser.sees(jobs["failed"], "tbody")
    await browser.back()
    await browser.until(lambda: "state=failed" not in browser.url, "the address from before")
    for typed in ("definition:paged\n", "since:1h\n"):
        await browser.fill("main input[type=search]", typed)
    await browser.sees("submitted since", "[role=search]")
    await browser.sees("1 to 50", "nav")
    await browser.press("Next")
    await browser.sees("51 to 60", "nav")
    await browser.press("Previous")
    await browser.sees("1 to 50", "nav")
    await browser.fill("main input[type=search]", "until:nonsense\n")
    await browser.sees("expected such as 2h, 7d or 2026-11-22", "[role=alert]")
    await browser.press("Remove the filter definition")
    await browser.until(lambda: "definition=" not in browser.url and "since=" in browser.url, "one filter less")
    assert browser.complaints((scene.url,)) == []
