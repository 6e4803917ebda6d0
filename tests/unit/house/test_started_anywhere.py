"""A run is the same wherever it is started from."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_TEST = """
import os, signal, subprocess, sys

def test_it() -> None:
    told = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "True\\n"
    assert not {name for name in os.environ if name in ("COLUMNS", "TZ", "HASCHEDULER_URL")}
"""


def test_in_the_background_of_a_shell_and_of_a_user(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(_TEST)
    plugins = ["-p", "no:cacheprovider", "-p", "tests.surroundings", "-p", "no:asyncio", "-p", "no:schemathesis"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", "--config-file=/dev/null", str(test)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "20", "TZ": "Asia/Kathmandu", "HASCHEDULER_URL": "http://127.0.0.1:1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell does
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
