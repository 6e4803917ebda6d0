"""What one does in the page: each change is asked for first, refused in words, and seen when it is done."""

from tests.system.processes import Processes, eventually
from tests.system.ui.browser import Browser
from tests.system.ui.scene import furnish


async def test_a_job_is_cancelled_after_a_question(processes: Processes, browser: Browser) -> None:
    await processes.replica("one")
    await processes.processor("worker")
    jobs = await furnish(processes)
    await browser.open(f"{processes.any_url()}/ui/job?id={jobs['waiting']}")
    await browser.press("Cancel", "main button")
    await browser.press("Leave it", "dialog button")
    assert (await processes.get(f"/v1/jobs/{jobs['waiting']}"))["state"] == "pending"
    await browser.press("Cancel", "main button")
    await browser.press("Cancel", "dialog button")
    await browser.sees("cancelled", "main .state")
    assert (await processes.get(f"/v1/jobs/{jobs['waiting']}"))["state"] == "cancelled"


async def test_all_that_match_are_counted_then_changed_and_the_progress_is_followed(
    processes: Processes, browser: Browser
) -> None:
    await processes.replica("one")
    batch = [{"definition": "never", "target": f"t-{number}"} for number in range(500)]
    await processes.post("/v1/jobs:batch", {"jobs": batch})
    await processes.post("/v1/jobs", {"definition": "other"})
    await browser.open(f"{processes.any_url()}/ui/jobs?definition=never")
    await browser.press("Cancel all that match", "main button")
    await browser.sees("500 match", "dialog")
    await browser.press("Cancel 500", "dialog button")
    await browser.sees("500 of 500 changed", "main")
    counted = await processes.get("/v1/jobs:counts?definition=never")
    assert counted["cancelled"] == 500
    assert (await processes.get("/v1/jobs?definition=other"))["items"][0]["state"] == "pending"


async def test_two_people_edit_one_schedule_and_the_second_sees_what_the_first_did(
    processes: Processes, browser: Browser
) -> None:
    await processes.replica("one")
    trigger = {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}
    body = {"name": "nightly", "trigger": trigger, "job": {"definition": "log"}, "labels": {"team": "a"}}
    await processes.post("/v1/schedules", body)
    await browser.open(f"{processes.any_url()}/ui/schedule?name=nightly")
    await browser.press("Edit", "main button")
    await browser.until(lambda: '"team": "a"' in browser.value("textarea"), "the schedule to edit")
    changed = {**body, "labels": {"team": "first"}}
    answer = await processes.http.put(f"{processes.any_url()}/v1/schedules/nightly", json=changed)
    assert answer.status_code == 200, answer.text
    browser.replace("textarea", '"team": "a"', '"team": "second"')
    await browser.press("Show the difference", "dialog button")
    await browser.press("Send it", "dialog button")
    await browser.sees("first", "main")
    await browser.sees("second", "main")
    assert (await processes.get("/v1/schedules/nightly"))["labels"] == {"team": "first"}


async def test_a_schedule_is_paused_and_its_state_is_seen(processes: Processes, browser: Browser) -> None:
    await processes.replica("one")
    await processes.schedule("tick", "1h")
    await browser.open(f"{processes.any_url()}/ui/schedule?name=tick")
    await browser.press("Pause", "main button")
    await browser.fill("dialog input", "a reason")
    await browser.press("Pause", "dialog button")
    await browser.sees("paused", "main .state")
    await browser.sees("a reason", "main")

    async def paused() -> bool:
        return bool((await processes.get("/v1/schedules/tick"))["paused"])

    await eventually(paused, "the schedule is paused")


async def test_all_that_match_an_id_and_an_instant_are_meant_and_no_others(
    processes: Processes, browser: Browser
) -> None:
    await processes.replica("one")
    await processes.schedule("tick", "1h")
    await processes.post("/v1/jobs", {"definition": "never"})
    made = [(await processes.post("/v1/schedules/tick/trigger", {}))["id"] for _ in range(3)]
    since = (await processes.get(f"/v1/jobs/{made[1]}"))["submitted_at"]
    await browser.open(f"{processes.any_url()}/ui/jobs?id=trigger:tick:&since={since.replace('+', '%2B')}")
    await browser.sees(made[2], "tbody")
    await browser.press("Cancel all that match", "main button")
    await browser.sees("2 match", "dialog")
    await browser.press("Cancel 2", "dialog button")
    await browser.sees("2 of 2 changed", "main")
    states = [(await processes.get(f"/v1/jobs/{id}"))["state"] for id in made]
    assert states == ["pending", "cancelled", "cancelled"]
    assert (await processes.get("/v1/jobs:counts?definition=never"))["pending"] == 1


async def test_a_backfill_is_counted_first_and_then_made(processes: Processes, browser: Browser) -> None:
    await processes.replica("one")
    await processes.schedule("daily", "24h")
    await browser.open(f"{processes.any_url()}/ui/schedule?name=daily")
    await browser.press("Backfill", "main button")
    for name, value in (("from", "2026-01-01T00:00:00"), ("to", "2026-01-03T23:59:59")):
        browser.type_instant(f"dialog input[name={name}]", value)
    await browser.press("Count first", "dialog button")
    await browser.sees("3 times: 3 would get a job, 0 have one", "dialog")
    assert (await processes.get("/v1/jobs?id=backfill:"))["items"] == []
    await browser.press("Make the jobs", "dialog button")
    await browser.sees("Backfilled: 3 times got a job", "main")
    assert len((await processes.get("/v1/jobs?schedule=daily"))["items"]) == 3


async def test_who_changed_a_schedule_is_paged_back_to_its_beginning(processes: Processes, browser: Browser) -> None:
    await processes.replica("one")
    await processes.schedule("tick", "1h")
    await processes.post("/v1/schedules/tick/pause", {"because": "the first of all"})
    for number in range(30):
        await processes.post("/v1/schedules/tick/resume", {})
        await processes.post("/v1/schedules/tick/pause", {"because": f"reason {number}"})

    async def recorded() -> bool:
        return len((await processes.get("/v1/audit?path=/v1/schedules/tick/&limit=100"))["items"]) == 61

    await eventually(recorded, "all of it in the audit log")
    await browser.open(f"{processes.any_url()}/ui/schedule?name=tick")
    await browser.sees("reason 29", "main")
    assert "the first of all" not in browser.text("main")
    await browser.press("Older changes", "main button")
    await browser.sees("the first of all", "main table")
    await browser.press("Newest changes", "main button")
    await browser.sees("reason 28", "main table")
