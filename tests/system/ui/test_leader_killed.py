"""The page goes on through the loss of the leader, and of the replica that it came from, and shows both."""

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
    await browser.sees(f"Term {term} ", "main")
    browser.script("window.sameDocument = true")
    for _ in range(2):  # of three: one of the two is the replica that answers the page
        leader, term = await processes.leader()
        await leader.kill()
        following, term = await processes.leader(not_in_term=term)
        await browser.sees(f"Term {term} ", "main")
        await browser.sees(following.name, ".facts")
        await browser.until(lambda: "Stale" not in browser.text(), "fresh numbers")
    assert browser.script("return window.sameDocument") is True
    assert browser.complaints((service,)) == []
    await processes.kill_all()
    await browser.sees("Stale since")
    await processes.replica("four")
    await browser.until(lambda: "Stale since" not in browser.text(), "fresh numbers again")
    await browser.until(lambda: "four" in browser.text(".facts"), "the replica that leads now")


async def test_a_paused_page_stays_as_it_is(processes: Processes, service: str, browser: Browser) -> None:
    await processes.replica("one")
    await browser.open(f"{service}/ui")
    await browser.sees("Leader", "main")
    await browser.press("❚❚ Pause")
    await browser.sees("Paused: the page does not")
    two = await processes.replica("two")
    assert "two" not in browser.text("table")
    await browser.press("▶ Continue")
    await browser.sees(two.name, "table")
