"""A system with a dashboard, a browser before it, and one address for all replicas, as a Service gives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException

from tests.chaos.proxy import Line
from tests.system.processes import Processes
from tests.system.ui.browser import Browser


class Service(Line):
    """One address; each connection goes to a replica that takes it, as connections to a Kubernetes Service do."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(("", 0))
        self._processes = processes
        self._turn = 0

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        living = [each for each in self._processes.replicas.values() if each.running]
        for place in range(len(living)):
            self._turn += 1
            replica = living[(self._turn + place) % len(living)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", int(replica.url.rpartition(":")[2]))
        raise ConnectionRefusedError("no replica takes it")


@pytest.fixture
async def service(processes: Processes) -> AsyncIterator[str]:
    """The address of all replicas."""
    service = Service(processes)
    try:
        await service.open("127.0.0.1")
        yield f"http://127.0.0.1:{service.port}"
    finally:
        await service.close()


@pytest.fixture
def new_browser(tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Starts browsers, each with a profile of its own; all of them are closed at the end."""
    browsers: list[Browser] = []

    def start(**options: object) -> Browser:
        browser = Browser(tmp_path / f"profile-{len(browsers)}", **options)  # type: ignore[arg-type]  # as `Browser` says
        browsers.append(browser)
        return browser

    try:
        yield start
    finally:
        for browser in browsers:
            browser.close()


class KeptBrowser:
    """One for the tests of a process, one test after the other. Owner of the browser: one that does not come back to
    where it began is ended, and the next test gets a new one."""

    def __init__(self, profiles: pytest.TempPathFactory) -> None:
        self._profiles = profiles
        self._browser: Browser | None = None

    def get(self) -> Browser:
        if self._browser is None:
            self._browser = Browser(self._profiles.mktemp("profile"))
        return self._browser

    def forget(self) -> None:
        if self._browser is not None:
            try:
                self._browser.forget()
            except WebDriverException:
                self.close()

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()
            self._browser = None


@pytest.fixture(scope="session")
def kept_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptBrowser]:
    kept = KeptBrowser(tmp_path_factory)
    yield kept
    kept.close()


@pytest.fixture
def browser(kept_browser: KeptBrowser) -> Iterator[Browser]:
    yield kept_browser.get()
    kept_browser.forget()
