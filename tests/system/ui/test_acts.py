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
    await browser.sees("done", "main .state")
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
