"""Every view on a system that runs: it shows what there is, breaks no policy, and everybody can use it."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.system.processes import Processes
from tests.system.ui.browser import Browser
from tests.system.ui.scene import EXACT, HIDDEN, HOSTILE, Scene

PICTURES = os.environ.get("UI_PICTURES")
"""A folder for a picture of each view; unset: none are kept."""
NARROW = 360
LONG = 250_000
STREAMS = "return performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/live')).length"


def views(jobs: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    """By name: the address, and what is to be seen there."""
    return {
        "now": ("/ui", ["Leader", "replica-one", "Running", "Processors", "slots busy"]),
        "schedules": ("/ui/schedules", ["tick", "nightly", "asleep", "Europe/Paris"]),
        "schedule": ("/ui/schedule?name=nightly", ["nightly", "02:30", "Europe/Paris"]),
        "timeline": ("/ui/timeline", ["Timeline", "Load in the next", "All schedules", "tick", "nightly"]),
        "verdicts": ("/ui/verdicts", ["Verdicts"]),
        "jobs": ("/ui/jobs", ["succeeded", "running", "failed"]),
        "job-waiting": (f"/ui/job?id={jobs['waiting']}", ["Why it waits", "2 of 2 jobs running"]),
        "job-failed": (f"/ui/job?id={jobs['failed']}", ["Error", "PermanentError"]),
        "lanes": ("/ui/lanes", ["slow", "acme", "sleep"]),
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_each_view_shows_what_there_is_and_can_be_used_by_everybody(
    scene: Scene, browser: Browser, theme: str
) -> None:
    jobs, origin = scene.jobs, scene.url
    browser.use(theme)
    wrong: list[str] = []
    for name, (address, seen) in views(jobs).items():
        await browser.open(origin + address)
        for words in seen:
            await browser.sees(words, "main")
        wrong += [f"{name}: {each}" for each in await browser.inaccessible()]
        if PICTURES and name == "now":
            await _be_busy(scene.processes)
        if PICTURES:
            browser.screenshot(Path(PICTURES) / f"{name}-{theme}.png")
    browser.resize(NARROW)
    for name, (address, seen) in views(jobs).items():
        await browser.open(origin + address)
        await browser.sees(seen[0], "main")
        if browser.script("return document.documentElement.scrollWidth > innerWidth"):
            wrong.append(f"{name}: wider than {NARROW} pixels")
    wrong += browser.complaints((origin,))
    assert wrong == []


async def test_a_payload_is_shown_when_asked_for_and_to_the_last_digit(scene: Scene, browser: Browser) -> None:
    processes, jobs = scene.processes, scene.jobs
    await browser.open(f"{processes.any_url()}/ui/job?id={jobs['waiting']}")
    await browser.sees("Payload", "main")
    assert str(EXACT) not in browser.text()
    await browser.press("Show")
    await browser.sees(str(EXACT), "pre")


async def test_a_line_as_long_as_a_payload_may_be_is_text_and_stays_within_the_page(
    scene: Scene, browser: Browser
) -> None:
    processes = scene.processes
    line = f"{HOSTILE}{HIDDEN}" + "x" * LONG
    job = await processes.post("/v1/jobs", {"definition": "nobody-runs-it", "payload": {"line": line}})
    await browser.open(f"{processes.any_url()}/ui/job?id={job['id']}")
    browser.resize(NARROW)
    await browser.sees("Payload", "main")
    await browser.press("Show")
    await browser.sees(HOSTILE[:20], "pre")
    assert not browser.script("return document.documentElement.scrollWidth > innerWidth")
    assert not browser.script(r"return /[\u202e\u001b]/.test(document.body.innerText)")
    assert browser.complaints((processes.any_url(),)) == []


async def test_filters_are_the_address_and_the_back_button_works(scene: Scene, browser: Browser) -> None:
    processes, jobs = scene.processes, scene.jobs
    await browser.open(f"{processes.any_url()}/ui/jobs")
    await browser.sees("log", "tbody")
    await browser.choose("select[name=state]", "failed")
    await browser.sees(jobs["failed"], "tbody")
    await browser.until(lambda: "state=failed" in browser.url, "the filter in the address")
    await browser.until(lambda: jobs["running"] not in browser.text("tbody"), "no running job")
    await browser.reload()
    await browser.sees(jobs["failed"], "tbody")
    await browser.back()
    await browser.until(lambda: "state=failed" not in browser.url, "the address from before")
    await browser.sees("running", "tbody")


async def test_an_address_without_a_view_or_a_job_says_where_to_go(scene: Scene, browser: Browser) -> None:
    processes = scene.processes
    await browser.open(f"{processes.any_url()}/ui/job?id=job:none")
    await browser.sees("no job", "main")
    await browser.open(f"{processes.any_url()}/ui/schedule?name=%3Cscript%3E")
    await browser.sees("<script>", "main")
    await browser.open(f"{processes.any_url()}/ui/jobs?state=nonsense")
    await browser.sees("state", "[role=alert]")
    assert browser.complaints((processes.any_url(),)) == []


async def test_tabs_of_one_browser_share_one_stream(scene: Scene, browser: Browser) -> None:
    for _ in range(2):
        browser.another_tab()
        await browser.open(f"{scene.url}/ui")
        await browser.sees("Leader", "main")
    assert browser.script(STREAMS) == 0, "the second tab has a stream of its own"


async def _be_busy(processes: Processes) -> None:
    """While the page is open, for its picture alone: more replicas and processors, jobs, and another leader."""
    if "replica-two" not in processes.replicas:
        await processes.together("replica-two", "replica-three")
        await processes.processor("processor-two")
    for second in range(40):
        jobs = [{"definition": "log", "payload": {"message": "hello"}}] * (20 + second % 7 * 10)
        await processes.post("/v1/jobs:batch", {"jobs": jobs})
        await asyncio.sleep(0.5)
