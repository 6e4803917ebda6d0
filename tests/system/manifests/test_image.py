"""What the image would hold, built here by the Dockerfile's own commands, and run as a pod would run it."""

import asyncio
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hascheduler import __version__
from hascheduler.embedded.children import free_port
from tests.manifests import dockerfile
from tests.manifests.building import Built, build
from tests.manifests.confinement import confined, is_root
from tests.system.processes import eventually

# The environment is made again, with all its packages.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_UNCHECKED_HASH = b"\x01\0\0\0"


@pytest.fixture(scope="session")
def built() -> Iterator[Built]:
    # Not pytest's own folder: only its owner may look into that.
    folder = Path(tempfile.mkdtemp(prefix="hascheduler-image-"))
    folder.chmod(0o755)
    try:
        yield build(folder)
    finally:
        shutil.rmtree(folder)


def _environment(built: Built, **more: str) -> dict[str, str]:
    """The image's own variables, and no home."""
    given = dict(word.split("=", 1) for word in dockerfile.last("scheduler", "ENV").value.split())
    return {**given, "PATH": f"{built.home}/bin:/usr/bin:/bin:/usr/sbin:/sbin", **more}


def _run(built: Built, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        confined(words), cwd="/", env=_environment(built), capture_output=True, text=True, check=False, timeout=120
    )


def test_nothing_that_builds_is_in_it(built: Built) -> None:
    names = {path.name.lower().partition("-")[0] for path in built.packages.iterdir()}
    assert "hascheduler" in names
    assert not names & {"pip", "setuptools", "wheel", "hatchling", "pytest", "mypy", "tests", "k8s"}
    assert not list(built.home.rglob("*.lock"))


def test_all_is_compiled_and_believed(built: Built) -> None:
    for source in built.packages.rglob("*.py"):
        compiled = Path(importlib.util.cache_from_source(str(source)))
        assert compiled.exists(), source
        assert compiled.read_bytes()[4:8] == _UNCHECKED_HASH, source


def test_it_says_its_version(built: Built) -> None:
    done = _run(built, "hascheduler", "--version")
    assert (done.returncode, done.stdout) == (0, f"hascheduler {__version__}\n"), done.stderr


@pytest.mark.skipif(
    not is_root(),
    reason="only root can make the root read-only for a process",
)
def test_the_confinement_is_one(built: Built) -> None:
    tries = "\n".join(
        f"try: open({path!r}, 'w')\nexcept OSError as error: print(error.errno)"
        for path in ("/tmp/x", "/var/tmp/x", "/dev/shm/x", str(built.packages / "x"))
    )
    program = f"import os, sys\nprint(os.getuid(), os.environ.get('HOME'), sys.base_prefix)\n{tries}"
    done = _run(built, "python", "-c", program)
    assert done.stdout.split() == ["65534", "None", sys.base_prefix, "30", "30", "30", "30"], done.stderr


@asynccontextmanager
async def _running(
    built: Built, words: Sequence[str], output: Path, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    with output.open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            *confined(["hascheduler", *words]),
            cwd="/",
            env=_environment(built, HASCHEDULER_LOG_FORMAT="json", **environment),
            stdout=log,
            stderr=log,
        )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


@pytest.fixture
def servers(mongodb_uri: str, amqp_url: str, database_name: str) -> dict[str, str]:
    """Where they are, as settings."""
    return {
        "HASCHEDULER_MONGODB_URI": mongodb_uri,
        "HASCHEDULER_AMQP_URL": amqp_url,
        "HASCHEDULER_DATABASE": database_name,
    }


def _status(child: asyncio.subprocess.Process) -> str:
    return Path(f"/proc/{child.pid}/status").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("serve",),
        ("processor", "hascheduler.handlers.log", "hascheduler.handlers.sleep", "hascheduler.handlers.webhook"),
    ],
    ids=" ".join,
)
async def test_it_runs_without_a_home_or_a_place_to_write(
    built: Built, words: Sequence[str], tmp_path: Path, servers: dict[str, str]
) -> None:
    port, output = free_port(), tmp_path / "output"
    environment = {**servers, "HASCHEDULER_HEALTH_PORT": str(port), "HASCHEDULER_HTTP_PORT": "0"}
    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=5) as http,
        _running(built, words, output, **environment) as child,
    ):

        async def ready() -> bool:
            assert child.returncode is None, output.read_text()[-3_000:]
            try:
                return (await http.get("/readyz")).status_code == 200
            except httpx2.TransportError:
                return False

        await eventually(ready, "it is ready", limit_s=90)
        assert (await http.get("/livez")).status_code == 200
        if is_root():
            assert "Uid:\t65534\t65534" in _status(child)
            assert "NoNewPrivs:\t1" in _status(child)
        os.kill(child.pid, signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), 30) == 0, output.read_text()[-3_000:]
