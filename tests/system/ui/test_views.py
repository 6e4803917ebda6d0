"""Every view on a system that runs: it shows what there is, breaks no policy, and all can use it at each width."""

import asyncio
import os
from itertools import product
from pathlib import Path

from tests.system.ui.browser import Browser
from tests.system.ui.scene import EXACT, HIDDEN, HOSTILE, Scene
from tests.tiers import TIER

PICTURES = os.environ.get("UI_PICTURES")
"""A folder for a picture of each view; unset: none are kept."""
WIDTHS = (1440, 1024, 390, 320)
JUDGED = WIDTHS if TIER == "long" else (1440, 390)
"""Where axe-core judges; once beside the side bar and with tables, once with the bar on top and rows as blocks."""
_THEMED = [] if TIER == "long" else ["color-contrast", "link-in-text-block"]
THEMES: dict[str, list[str]] = {"light": [], "dark": _THEMED}
"""Which rules of axe-core judge there: all, or those of what a theme changes."""
LONG = 250_000
STREAMS = "return performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/live')).length"
SIDEWAYS = "return document.documentElement.scrollWidth > innerWidth"


def views(jobs: dict[str, str], slots: int = 8) -> dict[str, tuple[str, list[str]]]:
    """By name: the address, and what is to be seen there."""
    return {
        "now": ("/ui", ["replica-one", "Running", "Next", "Replicas", "Processors", f"of {slots}"]),
        "schedules": ("/ui/schedules", ["tick", "nightly", "asleep", "Europe/Paris"]),
        "schedule": ("/ui/schedule?name=nightly", ["nightly", "02:30", "Europe/Paris"]),
        "schedule-new": ("/ui/schedule-new", ["New schedule", "Every day at 02:30", "follows what you type"]),
        "timeline": ("/ui/timeline", [f"of {slots} slots", "Slots", "tick", "nightly", "to come"]),
        "verdicts": ("/ui/verdicts", ["Verdicts"]),
        "jobs": ("/ui/jobs", ["runs", "failed", "succeeded"]),
        "jobs-failed": ("/ui/jobs?state=failed", ["By error", "PermanentError", "Retry 1…"]),
        "job-waiting": (
            f"/ui/job?id={jobs['waiting']}",
            ["Why it waits", "2 of 2 jobs running", "not yet", "A replica leads"],
        ),
        "job-failed": (f"/ui/job?id={jobs['failed']}", ["It failed for good", "PermanentError", "Try 1 failed"]),
        "lanes": ("/ui/lanes", ["slow", "acme", "sleep"]),
    }


async def test_each_view_shows_what_there_is_and_can_be_used_by_everybody_at_each_width(
    scene: Scene, browser: Browser
) -> None:
    wrong: list[str] = []
    for name, (address, seen) in views(scene.jobs).items():
        await _open(browser, scene.url + address)
        for words in seen:
            await browser.sees(words, "main")
        for theme, width in product(THEMES, WIDTHS):
            browser.use(theme)
            browser.resize(width)
            if browser.script(SIDEWAYS):
                wrong.append(f"{name}: wider than {width} pixels")
            if width in JUDGED:
                wrong += [f"{name}, {width}, {theme}: {each}" for each in await browser.inaccessible(*THEMES[theme])]
    wrong += browser.complaints((scene.url,))
    assert wrong == []
    if PICTURES:
        await _take_pictures(scene, browser, Path(PICTURES))


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
    browser.resize(WIDTHS[-1])
    await browser.sees("Payload", "main")
    await browser.press("Show")
    await browser.sees(HOSTILE[:20], "pre")
    assert not browser.script(SIDEWAYS)
    assert not browser.script(r"return /[\u202e\u001b]/.test(document.body.innerText)")
    assert browser.complaints((processes.any_url(),)) == []


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
        await browser.sees("Replicas", "main")
    assert browser.script(STREAMS) == 0, "the second tab has a stream of its own"


async def _open(browser: Browser, url: str) -> None:
    browser.use("light")
    browser.resize(WIDTHS[0])
    await browser.open(url)
    await browser.until(lambda: browser.text("h1") and "Loading…" not in browser.text("main"), "all of the view")


async def _take_pictures(scene: Scene, browser: Browser, folder: Path) -> None:
    """Of a busier system: more replicas and processors, jobs, and another leader."""
    await scene.processes.together("replica-two", "replica-three")
    await scene.processes.processor("processor-two")
    for second in range(40):
        jobs = [{"definition": "log", "payload": {"message": "hello"}}] * (10 + second % 7 * 5)
        await scene.processes.post("/v1/jobs:batch", {"jobs": jobs})
        await asyncio.sleep(0.5)
    for name, (address, seen) in views(scene.jobs, slots=16).items():
        await _open(browser, scene.url + address)
        await browser.sees(seen[-1], "main")
        for theme, width in product(THEMES, WIDTHS):
            browser.use(theme)
            browser.resize(width)
            browser.screenshot(folder / f"{name}-{width}-{theme}.png")
