"""promtool: Prometheus's own checker, from Debian's package `prometheus`. Without it, what needs it is skipped."""

import shutil
import subprocess
from collections.abc import Callable

import pytest

Promtool = Callable[..., str]


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs it with arguments: "" when it is content, else what it says."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is missing; scripts/ensure-promtool installs it")

    def run(*arguments: object) -> str:
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    return run
