"""The short rows, and the bugs that are planted in real processes; minutes of it, so only with ``-m chaos``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.mutants import PLANTED

_ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1_200)]


def chaos(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.chaos", *options]
    return subprocess.run(command, cwd=_ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)


def test_no_promise_is_broken_whatever_goes_wrong() -> None:
    run = chaos("--rows", "smoke")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_in_the_real_processes_turns_its_row_red(bug: str) -> None:
    run = chaos("--planted", bug)
    assert run.returncode == 0, run.stdout + run.stderr
