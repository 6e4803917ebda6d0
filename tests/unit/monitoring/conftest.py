"""promtool: Prometheus's own checker, from Debian's package `prometheus`. Without it, what needs it is skipped."""

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.manifests.rendering import SHORT_LIVED

Promtool = Callable[..., str]


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs it with arguments: "" when it is content, else what it says."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is missing; scripts/ensure-promtool installs it")

    def run(*arguments: object) -> str:
        command = [found, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **SHORT_LIVED})
        return "" if done.returncode == 0 else done.stdout + done.stderr

    return run
