"""A system with a dashboard, a browser before it, and one address for all replicas, as a Service gives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException

from tests.system.processes import Processes
from tests.system.ui.browser import Browser

PIECE_BYTES = 65_536


class Service:
    """One address; each connection goes to a replica that takes it, as connections to a Kubernetes Service do.

    Owner of its listening socket and of the connections through it.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._turn = 0

    async def open(self) -> str:
        self._server = await asyncio.start_server(self._taken, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            onward = await self._onward()
            if onward is not None:
                there, back = onward
                pumps = [
                    asyncio.create_task(_pump(reader, back), name="to the replica"),
                    asyncio.create_task(_pump(there, writer), name="from the replica"),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    back.close()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _onward(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        living = [each for each in self._processes.replicas.values() if each.running]
        for place in range(len(living)):
            self._turn += 1
            replica = living[(self._turn + place) % len(living)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", int(replica.url.rpartition(":")[2]))
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()


@pytest.fixture
async def service(processes: Processes) -> AsyncIterator[str]:
    """The address of all replicas."""
    service = Service(processes)
    try:
        yield await service.open()
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
