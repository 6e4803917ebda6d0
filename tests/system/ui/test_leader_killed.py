"""The page goes on through the loss of the leader, and of the replica that it came from, and shows both."""

from functools import partial
from signal import SIGCONT, SIGSTOP

from tests.system.processes import Processes
from tests.system.ui.browser import Browser


async def test_the_page_survives_the_leader_shows_who_follows_and_calls_old_numbers_old(
    processes: Processes, service: str, browser: Browser
) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    await processes.schedule("tick", "500ms")
    _, term = await processes.leader()
    await browser.open(f"{service}/ui")
    await browser.sees(f"Term {term},", "main")
    browser.script("window.sameDocument = true")
    for _ in range(2):  # of three: one of the two is the replica that answers the page
        leader, term = await processes.leader()
        await leader.kill()
        following, term = await processes.leader(not_in_term=term)
        await browser.sees(f"Term {term},", "main")
        await browser.until(partial(_leads, browser, following.name), "the replica that leads now")
        await browser.sees(f"{following.name} leads", "main")
        await browser.sees("Live", "header")
    assert browser.script("return window.sameDocument") is True
    assert browser.complaints((service,)) == []
    await processes.kill_all()
    await browser.sees("has not answered for", "main")
    await browser.sees("No replica can be reached", "main")
    aged = browser.text("table[aria-label=Replicas]")
    await browser.sees("has not answered for 1", "main")  # its seconds run, and all else stands still
    assert browser.text("table[aria-label=Replicas]") == aged
    await processes.replica("four")
    await browser.until(lambda: "has not answered" not in browser.text(), "fresh numbers again")
    await browser.until(lambda: _leads(browser, "four"), "the replica that leads now")


def _leads(browser: Browser, name: str) -> bool:
    rows = browser.texts("table[aria-label=Replicas] tr")
    return any(row.startswith(name) and "leads" in row for row in rows)


async def test_a_replica_that_stalls_is_named_and_called_slow_not_dead(processes: Processes, browser: Browser) -> None:
    one = await processes.replica("one")
    await browser.open(f"{one.url}/ui")
    await browser.sees("Live", "header")
    one.signal(SIGSTOP)
    try:
        await browser.sees("one has not answered for", "main")
        await browser.sees("It may only be slow", "main")
        assert await browser.inaccessible() == []
    finally:
        one.signal(SIGCONT)
    await browser.sees("Live", "header")
    await browser.until(lambda: "has not answered" not in browser.text(), "fresh numbers")


async def test_a_frozen_page_stays_as_it_is(processes: Processes, service: str, browser: Browser) -> None:
    await processes.replica("one")
    await browser.open(f"{service}/ui")
    await browser.sees("Replicas", "main")
    await browser.press("Page and account ▾")
    await browser.press("Freeze this page")
    await browser.sees("The page does not update", "main")
    two = await processes.replica("two")
    assert "two" not in browser.text("table")
    await browser.press("Go live again", "main button")
    await browser.sees(two.name, "table")
