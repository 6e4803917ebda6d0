"""What the image would hold, built here by the Dockerfile's own commands, and run as a pod would run it."""

import asyncio
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hascheduler.embedded.children import Child, free_port, start_daemon
from tests.manifests import dockerfile
from tests.manifests.building import Built, build
from tests.manifests.confinement import confined, is_root

# The environment is made again, with all its packages.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_TARGETS = {"serve": "scheduler", "processor": "processor"}
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


@pytest.mark.skipif(not is_root(), reason="only root can make the root read-only for a process")
def test_the_confinement_is_one(built: Built) -> None:
    tries = "\n".join(
        f"try: open({path!r}, 'w')\nexcept OSError as error: print(error.errno)"
        for path in ("/tmp/x", "/var/tmp/x", "/dev/shm/x", str(built.packages / "x"))
    )
    program = f"import os, sys\nprint(os.getuid(), os.environ.get('HOME'), sys.base_prefix)\n{tries}"
    command = confined(["python", "-c", program])
    done = subprocess.run(command, cwd="/", env=_environment(built), capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["65534", "None", sys.base_prefix, "30", "30", "30", "30"], done.stderr


@pytest.fixture
def servers(mongodb_uri: str, amqp_url: str, database_name: str) -> dict[str, str]:
    """Where they are, as settings."""
    return {
        "HASCHEDULER_MONGODB_URI": mongodb_uri,
        "HASCHEDULER_AMQP_URL": amqp_url,
        "HASCHEDULER_DATABASE": database_name,
    }


def _status(child: Child) -> str:
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
    port = free_port()
    environment = _environment(built, **servers, HASCHEDULER_HEALTH_PORT=str(port), HASCHEDULER_HTTP_PORT="0")
    url, program, folder = f"http://127.0.0.1:{port}", confined(["hascheduler"]), Path("/")
    log = tmp_path / "log"
    child = await start_daemon(words[0], words, log, environment=environment, url=url, program=program, folder=folder)
    try:
        await child.ready(90)
        check = confined(json.loads(dockerfile.last(_TARGETS[words[0]], "HEALTHCHECK").value.partition(" CMD ")[2]))
        asked = await asyncio.to_thread(
            subprocess.run, check, cwd="/", env=environment, capture_output=True, text=True, check=False
        )
        assert (asked.returncode, asked.stdout, asked.stderr) == (0, "alive\n", "")
        if is_root():
            assert "Uid:\t65534\t65534" in _status(child)
            assert "NoNewPrivs:\t1" in _status(child)
        assert await child.terminate(30) == 0, child.last_lines()
    finally:
        if child.running:
            await child.kill()
