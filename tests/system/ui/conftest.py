"""Systems with a dashboard, one browser before all of them, and one address for all replicas, as a Service gives."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from selenium.common.exceptions import WebDriverException

from tests.chaos.proxy import Line
from tests.system.processes import Processes, environment_of
from tests.system.ui.browser import Browser
from tests.system.ui.scene import ADMIN, Scene, furnish

GUARDED = {"HASCHEDULER_AUTH": "tokens", "HASCHEDULER_ADMIN_TOKEN": ADMIN}


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


@pytest.fixture(scope="module")
async def kept_processes(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, amqp_url: str
) -> AsyncIterator[Processes]:
    """For all tests of a file, each of which has names of its own."""
    name = f"test-{secrets.token_hex(6)}"
    environment = environment_of(mongodb_uri, amqp_url, name)
    async with Processes(tmp_path_factory.mktemp("kept"), environment, mongodb_uri, name) as running:
        yield running


@pytest.fixture(scope="module")
async def scene(kept_processes: Processes) -> Scene:
    await kept_processes.replica("replica-one")
    await kept_processes.processor("processor-one")
    return Scene(kept_processes, await furnish(kept_processes))


@pytest.fixture(scope="module")
async def guarded(kept_processes: Processes) -> Processes:
    """Two replicas that want tokens."""
    await kept_processes.together("one", "two", **GUARDED)
    return kept_processes


class KeptBrowser:
    """Owner of the browser. One that does not come back to where it began is ended, and another started."""

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
