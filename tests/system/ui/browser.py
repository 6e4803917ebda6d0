"""A browser that looks at the dashboard: Chromium, headless, with a profile of its own.

Owner of the browser's process. To start it takes longer than most of what a test does, so one serves many tests, and
forgets between them (`Browser.forget`). What must hold in every test: the page violates its own policy nowhere, asks no
other origin for anything, and throws nothing that nobody catches (`Browser.complaints`).
"""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

Found = TypeVar("Found")

_POLL_EVERY_S = 0.05
_LIMIT_S = 60
_SHOWN = """
const shown = (each) => (each.innerText ?? each.textContent).trim().replace(/\\s+/g, " ");
const all = [...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility());
"""
_TEXTS = f"{_SHOWN} return all.map(shown);"
_LABELLED = f"""{_SHOWN}
return all.find((each) => !each.disabled && [shown(each), each.getAttribute("aria-label")].includes(arguments[1]));
"""
_AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""


class Browser:
    """Its calls block, so they run in a thread: the loop has processes to look after."""

    def __init__(self, profile: Path) -> None:
        options = ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--lang=en",
            f"--user-data-dir={profile}",
            "--window-size=1300,1000",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self._driver = Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))
        self._driver.set_page_load_timeout(_LIMIT_S)
        self._driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        self.use("light")
        self._asked: list[str] = []
        self._said: list[str] = []
        self._origins: set[str] = set()

    def close(self) -> None:
        self._driver.quit()

    def use(self, theme: str) -> None:
        """``light`` or ``dark``, as the system of who looks prefers."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def forget(self) -> None:
        """As it was at its start: one tab that shows nothing, and nothing is kept of where it has been."""
        self.use("light")
        first, *others = self._driver.window_handles
        for other in others:
            self._driver.switch_to.window(other)
            self._driver.close()
        self._driver.switch_to.window(first)
        self._driver.get("about:blank")
        self._driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self._driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self._driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        for origin in self._origins:
            self._driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self._log("performance")
        self._log("browser")
        self._asked, self._said, self._origins = [], [], set()

    # Going and looking

    async def open(self, url: str) -> None:
        self._origins.add("/".join(url.split("/")[:3]))
        await asyncio.to_thread(self._driver.get, url)

    async def reload(self) -> None:
        await asyncio.to_thread(self._driver.refresh)

    async def back(self) -> None:
        await asyncio.to_thread(self._driver.back)

    def another_tab(self) -> None:
        """Opened and looked at; the one before stays open."""
        self._driver.switch_to.new_window("tab")

    @property
    def url(self) -> str:
        return self._driver.current_url

    def resize(self, width: int, height: int = 1_000) -> None:
        self._driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def script(self, source: str, *arguments: object) -> Any:
        return self._driver.execute_script(source, *arguments)

    def text(self, css: str = "body") -> str:
        return " ".join(self.texts(css))

    def texts(self, css: str) -> list[str]:
        """What each of those elements shows, in one line."""
        found: list[str] = self.script(_TEXTS, css)
        return found

    def all(self, css: str) -> list[WebElement]:
        return self._driver.find_elements(By.CSS_SELECTOR, css)

    async def sees(self, wanted: str, css: str = "body", limit_s: float = _LIMIT_S) -> None:
        """Wait until that text is shown."""
        await self.until(lambda: wanted in self.text(css), f"{wanted!r} in {css}", limit_s)

    async def until(self, find: Callable[[], Found], what: str, limit_s: float = _LIMIT_S) -> Found:
        """What ``find`` finds once it is true; an element that the page has replaced meanwhile is looked for again."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                found = await asyncio.to_thread(find)
            except StaleElementReferenceException:
                found = None
            if found:
                return found
            if time.monotonic() > deadline:
                shown = await asyncio.to_thread(self.text)
                raise AssertionError(f"not within {limit_s} s: {what}; the page shows:\n{shown[:4_000]}")
            await asyncio.sleep(_POLL_EVERY_S)

    # Acting

    async def press(self, label: str, css: str = "button, summary, a") -> None:
        """The control that shows or says that label; a second try where the page was drawn again in between."""

        def pressed() -> bool:
            element: WebElement | None = self.script(_LABELLED, css, label)
            if element is not None:
                element.click()
            return element is not None

        await self.until(lambda: _quietly(pressed), f"a control {label!r} to press")

    async def fill(self, css: str, text: str) -> None:
        def filled() -> bool:
            found = [element for element in self.all(css) if element.is_displayed()]
            if not found:
                return False
            found[0].clear()
            found[0].send_keys(text)
            return True

        await self.until(lambda: _quietly(filled), f"a field {css!r}")

    def value(self, css: str) -> str:
        found = self.all(css)
        return str(found[0].get_property("value")) if found else ""

    def replace(self, css: str, old: str, new: str) -> None:
        """A part of a field's text, as if it were typed."""
        source = """
        const field = document.querySelector(arguments[0]);
        field.value = field.value.replace(arguments[1], arguments[2]);
        field.dispatchEvent(new Event("input", {bubbles: true}));
        """
        assert old in self.value(css), f"{old!r} is not in {css}"
        self.script(source, css, old, new)

    def type_instant(self, css: str, value: str) -> None:
        """Into a field for an instant: what its keys do depends on the language of the browser."""
        self.script("document.querySelector(arguments[0]).value = arguments[1]", css, value)

    async def choose(self, css: str, value: str) -> None:
        """An option of a select, as a person chooses it: the page hears of the change."""
        source = """
        const select = document.querySelector(arguments[0]);
        if (!select) return false;
        select.value = arguments[1];
        select.dispatchEvent(new Event("change", {bubbles: true}));
        return true;
        """
        await self.until(lambda: self.script(source, css, value), f"a select {css!r}")

    # Judging

    def complaints(self, origins: tuple[str, ...]) -> list[str]:
        """Violations of the page's policy, requests to other origins, errors that nobody caught."""
        found = [f"policy: {each}" for each in self.script("return window.violations || []")]
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._asked.append(message["params"]["request"]["url"])
        for entry in self._log("browser"):
            if "Uncaught" in entry["message"] or "Content Security Policy" in entry["message"]:
                self._said.append(entry["message"])
        foreign = [
            url
            for url in self._asked
            if not url.startswith((*origins, "data:", "chrome://", "chrome-untrusted://", "about:"))
        ]
        return [*found, *(f"asked {url}" for url in foreign), *self._said]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._driver.get_log(kind)  # type: ignore[no-untyped-call]  # selenium's
        return entries

    async def inaccessible(self, *rules: str) -> list[str]:
        """What axe-core finds wrong with the page as it is, by these rules or by all."""
        source = _AXE.read_text(encoding="utf-8")

        def judged() -> list[str]:
            if not self.script("return Boolean(window.axe)"):
                self.script(source)
            self._driver.set_script_timeout(_LIMIT_S)
            found = self._driver.execute_async_script(
                "const [rules, done] = arguments, runOnly = {type: 'rule', values: rules};"
                " axe.run(document, {resultTypes: ['violations'], ...(rules.length ? {runOnly} : {})})"
                ".then((found) => done(found.violations))",
                rules,
            )
            return [
                f"{each['id']} ({each['impact']}): {node['html'][:300]} {node.get('failureSummary', '')[:200]}"
                for each in found
                for node in each["nodes"]
            ]

        return await asyncio.to_thread(judged)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._driver.save_screenshot(str(path))


def _quietly(act: Callable[[], bool]) -> bool:
    """An element that moved or was covered is tried again."""
    try:
        return act()
    except StaleElementReferenceException:
        return False
    except WebDriverException as error:
        if "not clickable" in str(error) or "not interactable" in str(error):
            return False
        raise
